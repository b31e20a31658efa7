package agent

import (
	"net/netip"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// An ADD writes its address into the cache before it sets up the kernel: until then the cache
// alone knows that the address is used. Another ENI has the link of the old one, and the address.
func TestARebuildGivesNoAddressAwayThatAnADDHasTakenMeanwhile(t *testing.T) {
	own, addr := carryENI("eni-own", 0, "eth0", "10.0.1.2"), netip.MustParseAddr("10.0.1.10")
	key := func(pod string) eni.Owner { return *carryLine("10.0.1.10", 1, pod).Owner }
	for name, tt := range map[string]struct {
		owners map[netip.Addr]eni.Owner // as the kernel shows them
		want   string                   // the pod that has the address then
	}{
		"the kernel does not show the pod yet":      {nil, "web"},
		"the kernel shows the pod":                  {map[netip.Addr]eni.Owner{addr: key("web")}, "web"},
		"the kernel shows another pod":              {map[netip.Addr]eni.Owner{addr: key("db")}, "db"},
		"the kernel shows the pod at another place": {map[netip.Addr]eni.Owner{netip.MustParseAddr("10.0.1.11"): key("web")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			want := ipam.State{Settings: testConfig("n1").Settings, ENIs: []eni.Interface{own, carryENI("eni-new", 1, "eth1", "10.0.1.4")},
				Addresses: []eni.Address{carryLine("10.0.1.10", 1, ""), carryLine("10.0.1.11", 1, "")}}
			old := ipam.State{ENIs: []eni.Interface{own, carryENI("eni-old", 1, "eth1", "10.0.1.3")}, Addresses: []eni.Address{carryLine("10.0.1.10", 1, "web")}}
			next, err := anew(want, &old, tt.owners, time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if line := next.Addresses[0]; line.Owner != nil {
				got = line.Owner.Pod
			}
			if next.Addresses[0].Addr != addr || got != tt.want {
				t.Errorf("the cache has %+v, want %s for %q", next.Addresses[0], addr, tt.want)
			}
		})
	}
}

// An ENI has no IPv6 any more, and what was its primary address is one for pods on another.
func TestARebuildPassesAPrimaryIPv6AddressThatMovedToAnotherENI(t *testing.T) {
	six := func(nic eni.Interface, primary string) eni.Interface {
		nic.V6 = eni.Net{Primary: netip.MustParsePrefix(primary + "/64"), Gateway: netip.MustParseAddr("2001:db8::1")}
		return nic
	}
	own, a, b := carryENI("eni-own", 0, "eth0", "10.0.1.2"), carryENI("eni-a", 1, "eth1", "10.0.1.3"), six(carryENI("eni-b", 2, "eth2", "10.0.1.4"), "2001:db8::4")
	next, err := anew(
		ipam.State{Settings: testConfig("n1").Settings, ENIs: []eni.Interface{own, a, b},
			Addresses: []eni.Address{carryLine("10.0.1.10", 1, ""), carryLine("2001:db8::3", 2, ""), carryLine("2001:db8::11", 2, "")}},
		&ipam.State{ENIs: []eni.Interface{own, six(a, "2001:db8::3"), b},
			Addresses: []eni.Address{carryLine("10.0.1.10", 1, "web"), carryLine("2001:db8::10", 1, "web"), carryLine("2001:db8::11", 1, "db")}}, nil, time.Hour)
	if err != nil {
		t.Fatalf("every rebuild ends so: %v", err)
	}
	pods := map[string]string{"10.0.1.10": "web", "2001:db8::3": "", "2001:db8::11": "db"}
	for _, line := range next.Addresses {
		got := ""
		if line.Owner != nil {
			got = line.Owner.Pod
		}
		if pod, expected := pods[line.Addr.String()]; !expected || got != pod || line.Lost {
			t.Errorf("the cache has %+v", line)
		}
	}
	if len(next.Addresses) != len(pods) {
		t.Errorf("the cache has %d addresses, want %d", len(next.Addresses), len(pods))
	}
}
