package order

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// stateOf is a node state of machineENI's ENI "eni-a" with lines "number state", where state is as for show.
func stateOf(lines string) *ipam.State {
	_, nic := machineENI("eni-a")
	s := &ipam.State{Settings: ipam.Settings{MarkMask: ipam.DefaultMarkMask, Families: []eni.Family{eni.IPv4}}, ENIs: []eni.Interface{nic}}
	for line := range strings.FieldsSeq(strings.ReplaceAll(lines, " ", "_")) {
		s.Addresses = append(s.Addresses, lineOf(line))
	}
	return s
}

// lineOf reads "10_used" and the like: the last byte of an address and its state.
func lineOf(text string) eni.Address {
	var number int
	var state string
	fmt.Sscanf(strings.ReplaceAll(text, "_", " "), "%d %s", &number, &state)
	a := eni.Address{Addr: netip.AddrFrom4([4]byte{10, 0, 0, byte(number)}), Lost: state == "lost"}
	switch state {
	case "used", "lost":
		a.State, a.Owner = eni.Used, &eni.Owner{Key: eni.Key{Container: text}}
	case "reserved":
		a.State, a.HeldBy = eni.Held, Reserved{Topology: "db"}.cause()
	default:
		a.State, _ = eni.ParseState(state)
	}
	return a
}

// stateText is the inverse of stateOf.
func stateText(s *ipam.State) string {
	var lines []string
	for _, a := range s.Addresses {
		state := a.State.String()
		if a.Lost {
			state = "lost"
		}
		if IsReserved(a.HeldBy) {
			state = "reserved"
		}
		lines = append(lines, fmt.Sprintf("%d %s", a.Addr.As4()[3], state))
	}
	return strings.Join(lines, "\n")
}

// hosts returns addresses by their last bytes, as prefixes.
func hosts(numbers ...byte) (list []netip.Prefix) {
	for _, n := range numbers {
		list = append(list, host(netip.AddrFrom4([4]byte{10, 0, 0, n}))...)
	}
	return list
}

func TestWhatANodeStateBecomesByAStatus(t *testing.T) {
	for _, test := range []struct {
		name, state string
		change      func(*View)
		want        string
	}{
		{"new ones are free", "10 used", func(v *View) { v.Status.ENIs[0].Addresses = hosts(10, 11) }, "10 used\n11 free"},
		{"a prefix is all of its addresses", "", func(v *View) {
			v.Status.ENIs[0].Addresses = []netip.Prefix{netip.MustParsePrefix("10.0.0.64/30")}
		}, "64 free\n65 free\n66 free\n67 free"},
		{"missing ones go, under a pod they are lost", "10 free\n11 used\n12 cooling\n13 releasing\n14 reserved", func(*View) {}, "11 lost"},
		{"a lost one is there again", "10 lost", func(v *View) { v.Status.ENIs[0].Addresses = hosts(10) }, "10 used"},
		{"but not while it is quarantined", "10 lost", func(v *View) {
			v.Status.ENIs[0].Addresses, v.Status.Quarantined = hosts(10), []Quarantined{{Prefix: hosts(10)[0]}}
		}, "10 lost"},
		{"a new one that is quarantined waits", "", func(v *View) {
			v.Status.ENIs[0].Addresses, v.Status.Quarantined = hosts(10, 11), []Quarantined{{Prefix: hosts(10)[0]}}
		}, "11 free"},
		{"after a boot what is published or accepted is releasing", "", func(v *View) {
			v.Status.ENIs[0].Addresses, v.Status.Releasing, v.Spec.Release = hosts(10, 11, 12), hosts(10), hosts(11)
		}, "12 free\n10 releasing\n11 releasing"},
		{"a releasing one becomes free by no status", "10 releasing", func(v *View) { v.Status.ENIs[0].Addresses = hosts(10) }, "10 releasing"},
		{"reserved ones", "10 free\n11 reserved", func(v *View) {
			v.Status.ENIs[0].Addresses, v.Status.Reserved = hosts(10, 11, 12), []Reserved{{Addr: hosts(10)[0].Addr()}, {Addr: hosts(12)[0].Addr()}}
		}, "10 reserved\n11 cooling\n12 reserved"},
		{"an ENI that leaves", "10 free\n11 used", func(v *View) {
			v.Status.ENIs[0].Addresses, v.Status.LeavingInterfaces = hosts(10, 11, 12), []string{"eni-a"}
		}, "10 releasing\n11 used\n12 releasing"},
		{"outside of the ENI's subnet", "", func(v *View) { v.Status.ENIs[0].Addresses = host(netip.MustParseAddr("192.0.2.1")) }, ""},
		{"a stale status (S5)", "10 free", func(v *View) { v.Status.Revision = 4 }, "10 free"},
		{"another boot's lists", "10 free", func(v *View) { v.Spec.Boot = "before" }, "10 free"},
		{"the operator has not begun", "10 free", func(v *View) { v.Status.Mode = Joining }, "10 free"},
	} {
		t.Run(test.name, func(t *testing.T) {
			made, _ := machineENI("eni-a")
			v := View{Spec{Mode: Operator, Boot: "boot"}, Status{Mode: Operator, Revision: 5, ENIs: []ENI{made}}}
			test.change(&v)
			state := stateOf(test.state)
			for range 2 { // the second time changes nothing
				if err := Adopt(state, Head{Revision: 5}, "boot", v).Apply(state, Node{}, time.Hour); err != nil {
					t.Fatal(err)
				}
				if got := stateText(state); got != test.want {
					t.Fatalf("got:\n%s\nwant:\n%s", got, test.want)
				}
			}
			if err := state.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestADamagedStateGetsNothing(t *testing.T) {
	made, _ := machineENI("eni-a")
	made.Addresses = hosts(10)
	state := stateOf("")
	state.Damaged = []ipam.Damage{{Cause: "checksum"}}
	if c := Adopt(state, Head{}, "", View{Status: Status{Mode: Operator, ENIs: []ENI{made}}}); len(c.Add) > 0 {
		t.Errorf("%+v: one of them may be a pod's", c.Add)
	}
}

func TestENIsComeWhenTheirLinksAreThereAndGo(t *testing.T) {
	made, _ := machineENI("eni-a")
	second, nic := machineENI("eni-b")
	second.Index, second.Addresses, nic.Index, nic.Device = 1, hosts(20), 1, "eth1"
	nic.V4.Primary = netip.MustParsePrefix("10.0.0.3/24")
	v := View{Status: Status{Mode: Operator, Revision: 1, ENIs: []ENI{made, second}}}
	state := stateOf("")
	steps := []struct {
		links map[string]eni.Interface
		want  string
	}{{nil, ""}, {map[string]eni.Interface{"eni-b": nic}, "20 free"}, {nil, "20 free"}}
	for _, s := range steps {
		if err := Adopt(state, Head{}, "", v).Apply(state, Node{Links: s.links}, 0); err != nil || stateText(state) != s.want {
			t.Fatalf("%q, %v; want %q", stateText(state), err, s.want)
		}
	}
	v.Status.ENIs = v.Status.ENIs[:1]
	if err := Adopt(state, Head{}, "", v).Apply(state, Node{}, 0); err != nil || len(state.ENIs) != 1 || stateText(state) != "" {
		t.Errorf("%v: %+v", err, state)
	}
}

// Of an ENI in a state of a later release pods keep what they have and get no more; the others are served.
func TestAnENIOfAnUnknownStateServesWhomItServes(t *testing.T) {
	m := newMachine("", 1, x)
	m.addPod(0)
	n := m.nodes[0]
	other := ENI{ID: "eni-b", Index: 1, State: Attached, V4: n.versions[0].Status.ENIs[0].V4, Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.20/32")}}
	v := n.current()
	v.Status = v.Status.clone()
	v.Status.ENIs[0].State, v.Status.ENIs[0].Said = Unknown, "Parked"
	v.Status.ENIs[0].Addresses = append(v.Status.ENIs[0].Addresses, netip.MustParsePrefix("10.0.0.11/32"))
	v.Status.ENIs = append(v.Status.ENIs, other)
	v.Status.Revision++
	c := Adopt(n.agent.state, Head{Revision: 1}, "boot-0", v)
	if len(c.Lost)+len(c.Drop)+len(c.Gone) > 0 || len(c.ENIs) != 1 || len(c.Add) != 1 || c.Add[0].ENI != "eni-b" {
		t.Errorf("%+v", c)
	}
	if s := Snapshot(v.Spec, v.Status, Facts{}); s.Unmanaged != 1 || len(s.ENIs) != 1 {
		t.Errorf("%+v", s)
	}
}
