package sim

import (
	"net/netip"
	"slices"
	"testing"
)

func reserve(a *Account, subnet, in string) (id string, err error) {
	err = a.Update(func(tx *Tx) error {
		r, err := tx.Reserve(Reservation{Subnet: subnet, Range: netip.MustParsePrefix(in)})
		id = r.ID
		return err
	})
	return id, err
}

func TestARangeThatIsReservedIsGivenOutByNameAlone(t *testing.T) {
	a := newAccount(t, Options{})
	one := create(t, a.Node("n1"), "t1", 1)
	id, err := reserve(a, "a", "10.0.0.4/30") // of which that ENI has some already
	must(t, err)
	before := a.Snapshot()
	for _, bad := range []struct {
		subnet, in string
		want       Reason
	}{
		{"a", "10.0.0.0/28", Invalid}, {"a", "10.0.0.5/32", Invalid}, {"a", "10.0.1.0/30", OutsideSubnet}, {"a", "10.0.0.0/16", OutsideSubnet},
		{"a", "10.0.0.9/30", OutsideSubnet}, {"c", "10.0.0.8/30", NoSuchSubnet}, {"a", "fd00:10::/70", NotSupported},
	} {
		_, err := reserve(a, bad.subnet, bad.in)
		wantReason(t, err, bad.want)
	}
	in := netip.MustParsePrefix("10.0.0.4/30")
	for range 2 { // the next process keeps it, too
		got := assign(t, a.Node("n1"), one.ID, 2)
		if slices.ContainsFunc(got, in.Contains) {
			t.Errorf("%v are given out of %s", got, in)
		}
		must(t, a.Node("n1").UnassignAddresses(t.Context(), one.ID, got))
		if got, err := give(t, a, one.ID, AddressRequest{V4: addrs("10.0.0.7")}); err != nil || len(got.V4) != 1 {
			t.Errorf("by name %v are given out, %v", got, err)
		}
		must(t, takeBack(t, a, one.ID, Got{V4: addrs("10.0.0.7")}))
		must(t, a.Check())
		if now := a.Snapshot(); now.Subnets[0].Free != before.Subnets[0].Free {
			t.Errorf("%d are free, and %d were", now.Subnets[0].Free, before.Subnets[0].Free)
		}
		a = whole(t, saveAndLoad(t, a, Options{}))
	}
	must(t, a.Update(func(tx *Tx) error { _, err := tx.Unreserve(id); return err }))
	wantReason(t, a.Update(func(tx *Tx) error { _, err := tx.Unreserve(id); return err }), NoSuchReservation)
	if got := assign(t, a.Node("n1"), one.ID, 4); !slices.ContainsFunc(got, in.Contains) {
		t.Errorf("%v are given out, and %s is free for all", got, in)
	}
	must(t, a.Check())
}
