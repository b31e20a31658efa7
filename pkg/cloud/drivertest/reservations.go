package drivertest

import (
	"context"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/eni"
)

// reservations is what the comments of Reserve, Unreserve and Reservations say.
var reservations = []sentence{
	{"Keeps: Reserve keeps a range for addresses by name", []need{keepsRanges}, reservesForNames},
	{"Keeps: Reserve of a range that overlaps a reserved one, or is out of the subnet, is refused", []need{keepsRanges}, reservesNoneTwice},
	{"Keeps: Unreserve ends a reservation, and who has an address of it keeps it", []need{keepsRanges}, endsReservation},
	{"Keeps: a reservation whose answer is lost is ErrUnknown, one that is throttled has not happened", []need{keepsRanges, canFail}, reservesUnheard},
	{"without Keeps Reserve, Unreserve and Reservations fail with ErrForbidden", []need{keepsNone}, reservesNone},
}

func keepsRanges(_ Subject, t driver.Traits) string {
	return reasonUnless(t.Keeps, "no range is kept for addresses by name")
}

func keepsNone(_ Subject, t driver.Traits) string {
	return reasonUnless(!t.Keeps, "ranges are kept for addresses by name")
}

// reserveRange reserves a range of the subnet.
func (a *account) reserveRange(r netip.Prefix) (string, error) {
	return a.Reserve(a.ctx, driver.Reservation{Subnet: a.in.ID, Range: r, Note: "of drivertest"})
}

// reservationsNow returns the subnet's reservations after the lag.
func (a *account) reservationsNow() []driver.Reservation {
	a.Helper()
	a.waitForLag()
	list, err := a.Reservations(a.ctx, a.in.ID)
	a.must(err)
	return list
}

// twoOf returns the range of two addresses that has this one.
func twoOf(free netip.Addr) netip.Prefix {
	return netip.PrefixFrom(free, free.BitLen()-1).Masked()
}

func reservesForNames(account *account) {
	on := account.readyENI()
	for _, family := range account.has {
		before := account.singlesOf(on.ID, family)
		free := account.freeAddresses(on, family, 1)[0]
		in := twoOf(free)
		id, err := account.reserveRange(in)
		account.must(err)
		at := slices.IndexFunc(account.reservationsNow(), func(r driver.Reservation) bool { return r.ID == id })
		if want := (driver.Reservation{ID: id, Subnet: account.in.ID, Range: in, Note: "of drivertest"}); at < 0 || account.reservationsNow()[at] != want {
			account.Errorf("reservations %+v lack %+v", account.reservationsNow(), want)
		}
		for _, got := range account.assignSingles(on, family, 2) {
			if in.Contains(got) {
				account.Errorf("%s of the reserved range %s is given out unasked", got, in)
			}
		}
		account.must(account.unassignFrom(on, family, without(account.singlesOf(on.ID, family), before)...))
		_, err = account.byName(on, family, free)
		account.must(err)
		account.checkCarries(on.ID, family, append(before, free))
	}
}

func reservesNoneTwice(account *account) {
	on := account.readyENI()
	free := account.freeAddresses(on, account.has[0], 1)[0]
	in := twoOf(free)
	_, err := account.reserveRange(in)
	account.must(err)
	before := account.reservationsNow()
	outside := twoOf(account.in.V4.Masked().Addr().Prev())
	if account.has[0] == eni.IPv6 {
		outside = twoOf(account.in.V6.Masked().Addr().Prev())
	}
	for _, bad := range []netip.Prefix{in, netip.PrefixFrom(free, free.BitLen()), outside} {
		_, err = account.reserveRange(bad)
		account.checkKind(err, cloud.ErrForbidden)
	}
	if after := account.reservationsNow(); !slices.Equal(before, after) {
		account.Errorf("what was refused made %+v of %+v", after, before)
	}
}

func endsReservation(account *account) {
	on, family := account.readyENI(), account.has[0]
	before := account.singlesOf(on.ID, family)
	free := account.freeAddresses(on, family, 1)[0]
	id, err := account.reserveRange(twoOf(free))
	account.must(err)
	_, err = account.byName(on, family, free)
	account.must(err)
	account.must(account.Unreserve(account.ctx, id))
	if slices.ContainsFunc(account.reservationsNow(), func(r driver.Reservation) bool { return r.ID == id }) {
		account.Errorf("reservation %s is there after its end", id)
	}
	account.checkCarries(on.ID, family, append(before, free))
	account.checkKind(account.Unreserve(account.ctx, id), cloud.ErrNotFound, cloud.ErrForbidden)
}

func reservesUnheard(account *account) {
	in := twoOf(account.freeAddresses(account.readyENI(), account.has[0], 1)[0])
	account.s.Inject("Reserve", Throttled)
	_, err := account.reserveRange(in)
	account.checkKind(err, cloud.ErrThrottled)
	if got := account.reservationsNow(); len(got) > 0 {
		account.Errorf("a call that was throttled made %+v", got)
	}
	account.s.Inject("Reserve", Lost)
	_, err = account.reserveRange(in)
	account.checkKind(err, cloud.ErrUnknown)
	got := account.reservationsNow()
	if len(got) != 1 || got[0].Range != in {
		account.Fatalf("a call whose answer was lost made %+v", got)
	}
	account.s.Inject("Unreserve", Lost)
	account.checkKind(account.Unreserve(account.ctx, got[0].ID), cloud.ErrUnknown)
	if got := account.reservationsNow(); len(got) > 0 {
		account.Errorf("the end of a reservation whose answer was lost leaves %+v", got)
	}
}

func reservesNone(account *account) {
	for _, call := range []func(context.Context) error{
		func(context.Context) error { _, err := account.reserveRange(twoOf(account.in.V4.Addr())); return err },
		func(ctx context.Context) error { return account.Unreserve(ctx, "scr-1") },
		func(ctx context.Context) error { _, err := account.Reservations(ctx, account.in.ID); return err },
	} {
		account.checkKind(call(account.ctx), cloud.ErrForbidden)
	}
}
