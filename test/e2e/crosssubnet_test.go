package e2e

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/nettest"
	"github.com/enipool/enipool/pkg/order"
)

// Some clouds carry an address on an ENI of another subnet. Such a pod's packets leave by that ENI, through the router of the ENI's own subnet: the VPC
// drops what leaves by another one.
func TestAPodHasAnAddressOfAnotherSubnetThanItsENI(t *testing.T) {
	for name, s := range variants(eni.IPv4, eni.IPv6) {
		t.Run(name, func(t *testing.T) {
			v := newVPC(t, s)
			others := []netip.Addr{netip.MustParseAddr("10.0.7.9"), netip.MustParseAddr("2001:db8:0:7::9")}
			v.must(v.net.AddSubnet(eni.Subnet{ID: "o4", CIDR: netip.MustParsePrefix("10.0.7.0/24"), Gateway: netip.MustParseAddr("10.0.7.1")}))
			v.must(v.net.AddSubnet(eni.Subnet{ID: "o6", CIDR: netip.MustParsePrefix("2001:db8:0:7::/64"), Gateway: netip.MustParseAddr("2001:db8:0:7::1")}))
			v.must(v.net.Assign("eni-1", others...))
			v.adoptOnSecond(others)
			v.pods["c"] = nettest.NewNetns(t, "pod-c")
			v.plugin("ADD", "c")
			t.Cleanup(func() { v.plugin("DEL", "c") })
			ping := func(from nettest.Netns, to string) {
				t.Helper()
				if out, err := from.Try("ping", "-c", "1", "-W", "2", to); err != nil {
					t.Errorf("%s -> %s: %s", from.Name, to, out)
				}
			}
			for i, f := range s.Families {
				mine := others[i].String()
				internet, node := internet4, "10.0.0.20"
				if f == eni.IPv6 {
					internet, node = internet6, "2001:db8::20"
				}
				ping(v.pods["c"], internet)
				ping(v.pods["c"], node)
				ping(v.node, mine)
				ping(v.internet, mine)
				for at, id := range []string{"a", "b"} {
					ping(v.pods["c"], v.addr(f, at).String())
					ping(v.pods[id], mine)
				}
			}
		})
	}
}

// adoptOnSecond puts addresses that are for one pod into the node state as an agent does, on the second ENI, and lets any pod have them.
func (v *vpc) adoptOnSecond(addrs []netip.Addr) {
	v.t.Helper()
	state := v.inv.State.Clone()
	for i := range state.Addresses {
		state.Addresses[i].State = eni.Free
	}
	add := order.Added{ENI: "eni-1"}
	for _, a := range addrs {
		add.Reserved = append(add.Reserved, order.Reserved{Addr: a, Namespace: "db", Pod: "db-0", UID: "uid"})
	}
	v.must(order.Changes{Add: []order.Added{add}}.Apply(state, order.Node{}, 0))
	v.must(state.Check())
	inv := v.inv
	inv.ENIs, inv.Addresses = state.ENIs, slices.Clone(v.inv.Addresses)
	for _, a := range addrs {
		inv.Addresses = append(inv.Addresses, eni.Address{Addr: a, ENI: v.second})
	}
	v.load(inv)
}
