package pool

import (
	"net/netip"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/google/go-cmp/cmp"
)

// counts is a snapshot as one looks at it: ENIs with their addresses of each family
// and those that are going back.
func counts(s Snapshot) map[string][3]int {
	all := map[string][3]int{}
	for _, e := range s.ENIs {
		going := func(a Address) bool { return a.State == eni.Releasing }
		all[e.ID] = [3]int{number(e, eni.IPv4, anyway), number(e, eni.IPv6, anyway), number(e, eni.IPv4, going) + number(e, eni.IPv6, going)}
	}
	return all
}

func TestApplyDoesWhatTheStepsSay(t *testing.T) {
	s := node(both, card(0, both, 4, 2).plus(goingBack(lines(eni.IPv4, eni.Free, 90, 2), false)), card(1, both, 2, 0), card(2, both, 3, 0))
	before := counts(s)
	addr := func(e ENI, i int) netip.Addr { return e.Addresses[i].Addr }
	next := applied(s, []Step{
		{Do: Restore, ENI: "eni-a", Subnet: "subnet-a", Addrs: []netip.Addr{addr(s.ENIs[0], 12)}},
		{Do: Assign, ENI: "eni-a", Subnet: "subnet-a", Family: eni.IPv4, Count: 3},
		{Do: Assign, ENI: "eni-a", Subnet: "subnet-a", Family: eni.IPv6, Count: 5},
		{Do: Create, Index: -1, Subnet: "subnet-a", Count: 7, V4: 7, V6: 7},
		{Do: Release, ENI: "eni-b", Subnet: "subnet-a", Addrs: []netip.Addr{addr(s.ENIs[1], 0), addr(s.ENIs[1], 2)}},
		{Do: Delete, ENI: "eni-c", Subnet: "subnet-a"},
		{Do: Assign, ENI: "eni-gone", Subnet: "subnet-a", Family: eni.IPv4, Count: 3},
	})
	want := map[string][3]int{"eni-a": {11, 11, 1}, "eni-b": {1, 1, 0}, "new-1": {7, 7, 0}}
	if diff := cmp.Diff(want, counts(next)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// Of IPv6 more was taken: 5, 7 and a primary; 1, 3 and a primary came back.
	if got := next.Subnets[0].Free; got != 200-13+5 {
		t.Errorf("%d addresses left in the subnet, want 192", got)
	}
	if diff := cmp.Diff(before, counts(s)); diff != "" {
		t.Errorf("the snapshot changed:\n%s", diff)
	}
	if e := next.ENIs[2]; e.Index != 3 || e.Subnet != "subnet-a" {
		t.Errorf("the new ENI is %s %d in %s", e.ID, e.Index, e.Subnet)
	}
	seen := map[netip.Addr]bool{}
	for _, e := range applied(next, []Step{{Do: Create, Subnet: "subnet-a", Count: 300}}).ENIs {
		for _, a := range e.Addresses {
			if seen[a.Addr] || a.ENI != e.Index && e.ID[:3] == "new" {
				t.Fatalf("%s is there twice, or on ENI %d instead of %d", a.Addr, a.ENI, e.Index)
			}
			seen[a.Addr] = true
		}
	}
}
