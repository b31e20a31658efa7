package sim

import (
	"slices"
	"testing"
	"time"
)

func TestAnENIHasAddressesOfAnotherSubnetByNameAlone(t *testing.T) {
	a := newHalves(Options{Lag: time.Second})
	one, two := makeENI(t, a, Create{Subnet: "a"}), makeENI(t, a, Create{Subnet: "b"})
	named := addrs("10.0.1.9")
	for _, bad := range []struct {
		asked AddressRequest
		want  Reason
	}{
		{AddressRequest{V4: named}, OutsideSubnet}, {AddressRequest{V4: named, Subnet: "a"}, OutsideSubnet}, {AddressRequest{V4: addrs("10.0.0.9"), Subnet: "b"}, OutsideSubnet},
		{AddressRequest{V4: addrs("10.0.2.9"), Subnet: "z"}, OutsideSubnet}, {AddressRequest{V6: addrs("fd00::9"), Subnet: "b"}, OutsideSubnet},
		{AddressRequest{V4: named, Subnet: "c"}, NoSuchSubnet}, {AddressRequest{V4: addrs("10.0.1.3"), Subnet: "b"}, ReservedAddress},
	} {
		_, err := give(t, a, one.ID, bad.asked)
		wantReason(t, err, bad.want)
	}
	free := func() int { return a.Snapshot().Subnets[1].Free }
	before := free()
	for range 2 { // the next process has lent it, too
		_, err := give(t, a, one.ID, AddressRequest{V4: named, Subnet: "b"})
		must(t, err)
		_, err = give(t, a, two.ID, AddressRequest{V4: named})
		wantReason(t, err, AddressInUse)
		a = whole(t, saveAndLoad(t, a, Options{Lag: time.Second, Reserve: EC2Reserve}))
		if free() != before-1 || !slices.Equal(a.byID[one.ID].V4, named) {
			t.Errorf("ENI %+v has %v of a subnet in which %d are free, and %d were", one, named, free(), before)
		}
		must(t, takeBack(t, a, one.ID, Got{V4: named}))
		if free() != before {
			t.Errorf("%d are free, and %d were before one was lent", free(), before)
		}
	}
	_, err := give(t, a, one.ID, AddressRequest{V4: named, Subnet: "b"})
	must(t, err)
	must(t, a.Update(func(tx *Tx) error { return tx.Delete(one.ID) }))
	if free() != before {
		t.Errorf("with the ENI deleted %d are free, and %d were before one was lent", free(), before)
	}
}
