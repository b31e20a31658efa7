package claims

import (
	"net/netip"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/topology"
)

// People may make a claim of an address that a pod has. Nothing is taken from under that pod before its agent has said a word.
func TestAnAddressThatAPodShowsIsNotTakenWithoutAWord(t *testing.T) {
	at := netip.MustParseAddr("10.0.0.9")
	for shown, want := range map[netip.Addr]int{at: 0, netip.MustParseAddr("10.0.0.8"): 1} {
		k := New(v4, 10*time.Second)
		claim := claimOf("a", "1", "Moving")
		claim.Status.To, claim.Status.PodUID = "n2", "u-0"
		pods := []Pod{{Name: Name{"db", "db-0"}, UID: "u-0", Node: "n2", Topology: "t"}, {Name: Name{"db", "other"}, UID: "u-1", Node: "n", Topology: "e", V4: shown}}
		for _, e := range []Event{{Claim: claim}, {Pods: &pods}, {Pods: &pods}, {Complete: true}} {
			if err := k.Take(e); err != nil {
				t.Fatal(err)
			}
		}
		k.SetSubnets([]topology.Subnet{{ID: "s", Zone: "z", V4: netip.MustParsePrefix("10.0.0.0/24"), Ready: true}})
		room := map[eni.Family]int{eni.IPv4: 9}
		k.SetNode(Node{Name: "n", Zone: "z", Told: true, Serves: true, ENIs: []ENI{{ID: "eni-1", Subnet: "s", Room: room, Addresses: []netip.Addr{at}}}, Releasing: map[netip.Addr]bool{at: true}})
		k.SetNode(Node{Name: "n2", Zone: "z", Told: true, Serves: true, ENIs: []ENI{{ID: "eni-2", Subnet: "s", Room: room}}})
		var took []netip.Addr
		for i := range 3 {
			now := noon.Add(time.Duration(i) * time.Minute)
			s := k.Decide(now, true)
			for _, of := range s.Reads {
				k.NoteRead(of, &pods[0], now)
			}
			took = s.Nodes["n"].Take["eni-1"]
		}
		if len(took) != want {
			t.Errorf("a pod there shows %s: took %v", shown, took)
		}
	}
}

// A pod may show an address that is kept for nobody any more: its node's agent was away when that ended. No other pod is given it, as long as that one shows it.
func TestAnAddressThatAPodShowsIsNotChosenForAnother(t *testing.T) {
	first, second := netip.MustParseAddr("10.0.0.4"), netip.MustParseAddr("10.0.0.5")
	shows := Pod{Name: Name{"db", "old"}, UID: "u-old", Node: "away", Topology: "t", V4: first}
	ended, other := shows, shows
	ended.Ended, other.V4 = true, netip.MustParseAddr("10.0.0.9")
	for _, tt := range []struct {
		name string
		then Event
		want netip.Addr
	}{
		{"it shows it", Event{Pod: &shows}, second},
		{"it has ended", Event{Pod: &ended}, first},
		{"it shows another one", Event{Pod: &other}, first},
		{"it is gone", Event{Pod: &shows, Deleted: true}, first},
		{"a list lacks it", Event{Pods: &[]Pod{{Name: Name{"db", "db-0"}, UID: "u-0", Node: "n", Topology: "t"}}}, first},
		{"a list has it", Event{Pods: &[]Pod{shows, {Name: Name{"db", "db-0"}, UID: "u-0", Node: "n", Topology: "t"}}}, second},
	} {
		for what, decide := range map[string]func(*Known) Steps{
			"all":     func(k *Known) Steps { return k.Decide(noon, true) },
			"changed": func(k *Known) Steps { s, _ := k.DecideChanged(noon, true); return s },
		} {
			k := elasticOf(t, 0, Node{ENIs: []ENI{{ID: "eni-1", Subnet: "s", Room: map[eni.Family]int{eni.IPv4: 9}}}}, v4, "db-0")
			for _, e := range []Event{{Pod: &shows}, tt.then} {
				if err := k.Take(e); err != nil {
					t.Fatal(err)
				}
			}
			if got := decide(k).Nodes["n"].Assign["eni-1"]; len(got) != 1 || got[0] != tt.want {
				t.Errorf("%s, by %s: %v, want %s", tt.name, what, got, tt.want)
			}
		}
	}
}
