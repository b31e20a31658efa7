package agent

import (
	"net/netip"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// carryENI is an ENI of 10.0.1.0/24.
func carryENI(id string, index int, device, primary string) eni.Interface {
	return eni.Interface{ID: id, Index: index, Device: device, MTU: 1500,
		V4: eni.Net{Primary: netip.MustParsePrefix(primary + "/24"), Gateway: netip.MustParseAddr("10.0.1.1")}}
}

func carryLine(addr string, index int, pod string) eni.Address {
	line := eni.Address{Addr: netip.MustParseAddr(addr), ENI: index, State: eni.Free}
	if pod != "" {
		line.State, line.Owner = eni.Used, &eni.Owner{Key: eni.Key{Network: "pods", Container: pod, IfName: "eth0"}, Pod: pod}
	}
	return line
}

// Whatever the cloud shows now, what an old cache knows makes a cache with it. Each case was one
// that stopped the rebuild for good.
func TestWhatTheOldCacheKnowsGoesWithWhatTheCloudShows(t *testing.T) {
	own := carryENI("eni-own", 0, "eth0", "10.0.1.2")
	both := own
	both.V6 = eni.Net{Primary: netip.MustParsePrefix("2001:db8::2/64"), Gateway: netip.MustParseAddr("2001:db8::1")}
	for name, tt := range map[string]struct {
		want, old ipam.State
		lines     map[string]bool // of the new cache, and whether they are lost
		index     map[string]int  // of its ENIs
	}{
		"another ENI has the link and the index": {
			want: ipam.State{ENIs: []eni.Interface{own, carryENI("eni-new", 1, "eth1", "10.0.1.4")}, Addresses: []eni.Address{carryLine("10.0.1.10", 1, "")}},
			old: ipam.State{ENIs: []eni.Interface{own, carryENI("eni-old", 1, "eth1", "10.0.1.3")},
				Addresses: []eni.Address{carryLine("10.0.1.10", 1, "web"), carryLine("10.0.1.11", 1, "db"), carryLine("10.0.1.12", 1, "")}},
			lines: map[string]bool{"10.0.1.10": false}, index: map[string]int{"eni-own": 0, "eni-new": 1},
		},
		"another ENI has the index alone": {
			want: ipam.State{ENIs: []eni.Interface{own, carryENI("eni-new", 1, "eth2", "10.0.1.4")}, Addresses: []eni.Address{carryLine("10.0.1.20", 1, "")}},
			old: ipam.State{ENIs: []eni.Interface{own, carryENI("eni-old", 1, "eth1", "10.0.1.3")},
				Addresses: []eni.Address{carryLine("10.0.1.10", 1, "web"), carryLine("10.0.1.11", 1, "")}},
			lines: map[string]bool{"10.0.1.20": false, "10.0.1.10": false, "10.0.1.11": false},
			index: map[string]int{"eni-own": 0, "eni-new": 2, "eni-old": 1},
		},
		"its primary address is one for pods by now": {
			want:  ipam.State{ENIs: []eni.Interface{own}, Addresses: []eni.Address{carryLine("10.0.1.3", 0, "")}},
			old:   ipam.State{ENIs: []eni.Interface{own, carryENI("eni-old", 1, "eth1", "10.0.1.3")}, Addresses: []eni.Address{carryLine("10.0.1.11", 1, "web")}},
			lines: map[string]bool{"10.0.1.3": false}, index: map[string]int{"eni-own": 0},
		},
		"a pod's address is an ENI's primary one by now": {
			want:  ipam.State{ENIs: []eni.Interface{own, carryENI("eni-new", 1, "eth1", "10.0.1.10")}},
			old:   ipam.State{ENIs: []eni.Interface{own}, Addresses: []eni.Address{carryLine("10.0.1.10", 0, "web"), carryLine("10.0.1.11", 0, "db")}},
			lines: map[string]bool{"10.0.1.10": true, "10.0.1.11": false}, index: map[string]int{"eni-own": 0, "eni-new": 1},
		},
		"a pod's address is on another ENI by now": {
			want: ipam.State{ENIs: []eni.Interface{own, carryENI("eni-b", 1, "eth1", "10.0.1.4")}, Addresses: []eni.Address{carryLine("10.0.1.10", 1, "")}},
			old: ipam.State{ENIs: []eni.Interface{own, carryENI("eni-b", 1, "eth1", "10.0.1.4")},
				Addresses: []eni.Address{carryLine("10.0.1.10", 0, "web"), carryLine("10.0.1.12", 1, "db")}},
			lines: map[string]bool{"10.0.1.10": true, "10.0.1.12": false}, index: map[string]int{"eni-own": 0, "eni-b": 1},
		},
		"an ENI has no IPv6 any more": {
			want:  ipam.State{ENIs: []eni.Interface{own}},
			old:   ipam.State{ENIs: []eni.Interface{both}, Addresses: []eni.Address{carryLine("2001:db8::10", 0, "web")}},
			lines: map[string]bool{"2001:db8::10": false}, index: map[string]int{"eni-own": 0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tt.want.Settings = testConfig("n1").Settings
			next, err := anew(tt.want, &tt.old, nil, time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range next.Addresses {
				if lost, expected := tt.lines[line.Addr.String()]; !expected || lost != line.Lost {
					t.Errorf("the cache has %+v", line)
				}
			}
			for _, nic := range next.ENIs {
				if index, expected := tt.index[nic.ID]; !expected || index != nic.Index {
					t.Errorf("the cache has %s with index %d", nic.ID, nic.Index)
				}
			}
			if len(next.Addresses) != len(tt.lines) || len(next.ENIs) != len(tt.index) {
				t.Errorf("the cache has %d addresses on %d ENIs", len(next.Addresses), len(next.ENIs))
			}
		})
	}
}
