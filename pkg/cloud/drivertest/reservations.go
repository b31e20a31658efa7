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
	{"Keeps: Reserve keeps a range for addresses by name", []need{keeps}, reservesForNames},
	{"Keeps: Reserve of a range that overlaps a reserved one, or is out of the subnet, is refused", []need{keeps}, reservesNoneTwice},
	{"Keeps: Unreserve ends a reservation, and who has an address of it keeps it", []need{keeps}, unreserves},
	{"Keeps: a reservation whose answer is lost is ErrUnknown, one that is throttled has not happened", []need{keeps, canFail}, reservesUnheard},
	{"without Keeps Reserve, Unreserve and Reservations fail with ErrForbidden", []need{keepsNone}, reservesNone},
}

func keeps(_ Subject, t driver.Traits) string {
	return unless(t.Keeps, "no range is kept for addresses by name")
}

func keepsNone(_ Subject, t driver.Traits) string {
	return unless(!t.Keeps, "ranges are kept for addresses by name")
}

// reserve reserves a range of the subnet.
func (a *account) reserve(r netip.Prefix) (string, error) {
	return a.Reserve(a.ctx, driver.Reservation{Subnet: a.in.ID, Range: r, Note: "of drivertest"})
}

// reserved are the subnet's reservations when it has settled.
func (a *account) reserved() []driver.Reservation {
	a.Helper()
	a.settle()
	list, err := a.Reservations(a.ctx, a.in.ID)
	a.must(err)
	return list
}

// twoOf is a range of an address that is free, and the one beside it.
func twoOf(free netip.Addr) netip.Prefix {
	return netip.PrefixFrom(free, free.BitLen()-1).Masked()
}

func reservesForNames(a *account) {
	on := a.ready()
	for _, f := range a.has {
		before := a.addresses(on.ID, f)
		free := a.free(on, f, 1)[0]
		in := twoOf(free)
		id, err := a.reserve(in)
		a.must(err)
		at := slices.IndexFunc(a.reserved(), func(r driver.Reservation) bool { return r.ID == id })
		if want := (driver.Reservation{ID: id, Subnet: a.in.ID, Range: in, Note: "of drivertest"}); at < 0 || a.reserved()[at] != want {
			a.Errorf("reservations %+v lack %+v", a.reserved(), want)
		}
		for _, got := range a.put(on, f, 2) {
			if in.Contains(got) {
				a.Errorf("%s of the reserved range %s is given out unasked", got, in)
			}
		}
		a.must(a.unassign(on, f, without(a.addresses(on.ID, f), before)...))
		_, err = a.byName(on, f, free)
		a.must(err)
		a.carries(on.ID, f, append(before, free))
	}
}

func reservesNoneTwice(a *account) {
	on := a.ready()
	free := a.free(on, a.has[0], 1)[0]
	in := twoOf(free)
	_, err := a.reserve(in)
	a.must(err)
	before := a.reserved()
	outside := twoOf(a.in.V4.Masked().Addr().Prev())
	if a.has[0] == eni.IPv6 {
		outside = twoOf(a.in.V6.Masked().Addr().Prev())
	}
	for _, bad := range []netip.Prefix{in, netip.PrefixFrom(free, free.BitLen()), outside} {
		_, err = a.reserve(bad)
		a.is(err, cloud.ErrForbidden)
	}
	if after := a.reserved(); !slices.Equal(before, after) {
		a.Errorf("what was refused made %+v of %+v", after, before)
	}
}

func unreserves(a *account) {
	on, f := a.ready(), a.has[0]
	before := a.addresses(on.ID, f)
	free := a.free(on, f, 1)[0]
	id, err := a.reserve(twoOf(free))
	a.must(err)
	_, err = a.byName(on, f, free)
	a.must(err)
	a.must(a.Unreserve(a.ctx, id))
	if slices.ContainsFunc(a.reserved(), func(r driver.Reservation) bool { return r.ID == id }) {
		a.Errorf("reservation %s is there after its end", id)
	}
	a.carries(on.ID, f, append(before, free))
	a.is(a.Unreserve(a.ctx, id), cloud.ErrNotFound, cloud.ErrForbidden)
}

func reservesUnheard(a *account) {
	in := twoOf(a.free(a.ready(), a.has[0], 1)[0])
	a.s.Inject("Reserve", Throttled)
	_, err := a.reserve(in)
	a.is(err, cloud.ErrThrottled)
	if got := a.reserved(); len(got) > 0 {
		a.Errorf("a call that was throttled made %+v", got)
	}
	a.s.Inject("Reserve", Lost)
	_, err = a.reserve(in)
	a.is(err, cloud.ErrUnknown)
	got := a.reserved()
	if len(got) != 1 || got[0].Range != in {
		a.Fatalf("a call whose answer was lost made %+v", got)
	}
	a.s.Inject("Unreserve", Lost)
	a.is(a.Unreserve(a.ctx, got[0].ID), cloud.ErrUnknown)
	if got := a.reserved(); len(got) > 0 {
		a.Errorf("the end of a reservation whose answer was lost leaves %+v", got)
	}
}

func reservesNone(a *account) {
	for _, call := range []func(context.Context) error{
		func(context.Context) error { _, err := a.reserve(twoOf(a.in.V4.Addr())); return err },
		func(ctx context.Context) error { return a.Unreserve(ctx, "scr-1") },
		func(ctx context.Context) error { _, err := a.Reservations(ctx, a.in.ID); return err },
	} {
		a.is(call(a.ctx), cloud.ErrForbidden)
	}
}
