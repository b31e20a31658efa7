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

// stateOf is a node state of machineENI's ENI "eni-a" with lines "number state", where state is as for show: "reserved:db-0" is kept for
// the pod db-0, "reserved:" for nobody yet.
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
	switch state, pod, kept := strings.Cut(state, ":"); {
	case state == "used" || state == "lost":
		a.State, a.Owner = eni.Used, &eni.Owner{Key: eni.Key{Container: text}}
	case state == "claimed":
		a.State, a.Owner, a.Reservation = eni.Used, &eni.Owner{Key: eni.Key{Container: text}, Namespace: "db", Pod: pod}, &eni.Reservation{Topology: "db", Namespace: "db", Pod: pod}
	default:
		a.State, _ = eni.ParseState(state)
		if kept && pod != "" {
			a.Reservation = &eni.Reservation{Topology: "db", Namespace: "db", Pod: pod}
		} else if kept {
			a.Reservation = &eni.Reservation{Topology: "db"}
		}
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
		if r := a.Reservation; r != nil {
			if a.IsClaimed() && !a.Lost {
				state = "claimed"
			}
			state += ":" + r.Pod
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

// kept is what a status reserves, by lines "last byte:pod".
func kept(lines ...string) (list []Reserved) {
	for _, line := range lines {
		number, pod, _ := strings.Cut(line, ":")
		r := Reserved{Addr: netip.MustParseAddr("10.0.0." + number), Topology: "db"}
		if pod != "" {
			r.Namespace, r.Pod = "db", pod
		}
		list = append(list, r)
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
		{"missing ones go, under a pod they are lost", "10 free\n11 used\n12 cooling\n13 releasing\n14 reserved:db-0\n15 claimed:db-1", func(*View) {}, "11 lost\n15 lost:db-1"},
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
		{"reserved ones", "10 free\n11 reserved:", func(v *View) {
			v.Status.ENIs[0].Addresses, v.Status.Reserved = hosts(10, 11, 12), kept("10", "11:db-1", "12:db-2")
		}, "10 reserved:\n11 reserved:db-1\n12 reserved:db-2"},
		{"one for another pod", "10 reserved:db-0\n11 claimed:db-1", func(v *View) {
			v.Status.ENIs[0].Addresses, v.Status.Reserved = hosts(10, 11), kept("10:db-5", "11:db-6")
		}, "10 reserved:db-5\n11 claimed:db-1"}, // that pod's until its DEL
		{"what is reserved no more goes back, but for what a pod has", "10 reserved:db-0\n11 claimed:db-1\n12 free", func(v *View) {
			v.Status.ENIs[0].Addresses = hosts(10, 11, 12)
		}, "10 releasing:db-0\n11 claimed:db-1\n12 free"},
		{"what an ENI that carries a topology has is nobody else's", "10 free", func(v *View) {
			v.Status.ENIs[0].Addresses, v.Status.ENIs[0].Topology, v.Status.Reserved = hosts(10, 11, 12), "db", kept("12")
		}, "10 free\n12 reserved:"},
		{"what cools after a pod is nobody's first", "10 cooling", func(v *View) {
			v.Status.ENIs[0].Addresses, v.Status.Reserved = hosts(10), kept("10:db-0")
		}, "10 reserved:"},
		{"what others hold is not kept, and what another pod has neither", "10 held\n11 used", func(v *View) {
			v.Status.ENIs[0].Addresses, v.Status.Reserved = hosts(10, 11), kept("10:db-0", "11:db-1")
		}, "10 held\n11 used"},
		{"a kept one that may be taken away serves nobody", "10 reserved:db-0\n11 reserved:db-1", func(v *View) {
			v.Status.ENIs[0].Addresses, v.Status.Quarantined = hosts(10, 11), []Quarantined{{Prefix: hosts(10)[0]}}
			v.Status.Reserved, v.Status.Releasing = kept("10:db-0", "11:db-1"), hosts(11)
		}, "10 releasing:db-0\n11 releasing:db-1"},
		{"a kept one that is lost is there again", "10 lost", func(v *View) {
			v.Status.ENIs[0].Addresses, v.Status.Reserved = hosts(10), kept("10:db-0")
		}, "10 used"},
		{"an ENI that leaves", "10 free\n11 used", func(v *View) {
			v.Status.ENIs[0].Addresses, v.Status.LeavingInterfaces = hosts(10, 11, 12), []string{"eni-a"}
		}, "10 releasing\n11 used\n12 releasing"},
		{"outside of the ENI's subnet", "", func(v *View) { v.Status.ENIs[0].Addresses = host(netip.MustParseAddr("192.0.2.1")) }, ""},
		{"kept, and of another subnet", "", func(v *View) {
			v.Status.ENIs[0].Addresses, v.Status.Reserved = host(otherSubnets), []Reserved{{Addr: otherSubnets, Namespace: "db", Pod: "db-0"}}
		}, "1 reserved:db-0"},
		{"of another subnet, and it goes back", "", func(v *View) {
			v.Status.ENIs[0].Addresses, v.Status.Releasing = host(otherSubnets), host(otherSubnets)
		}, "1 releasing"},
		{"a stale status (S5)", "10 free", func(v *View) { v.Status.Revision = 4 }, "10 free"},
		{"another boot's lists", "10 free", func(v *View) { v.Spec.Boot = "before" }, "10 free"},
		{"the operator has not begun", "10 free", func(v *View) { v.Status.Mode = Joining }, "10 free"},
	} {
		t.Run(test.name, func(t *testing.T) {
			made, _ := machineENI("eni-a")
			v := View{Spec{Mode: Operator, Boot: "boot"}, Status{Mode: Operator, Revision: 5, ENIs: []ENI{made}}}
			test.change(&v)
			state := stateOf(test.state)
			state.Settings.CoolDown = coolDown
			for i := range state.Addresses {
				if state.Addresses[i].State == eni.Cooling {
					state.Addresses[i].Since = time.Hour - coolDown/2
				}
			}
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

// otherSubnets is an address that is not of the ENI's subnet.
var otherSubnets = netip.MustParseAddr("192.0.2.1")

// The node state has a range for each address of another subnet, as long as it has that.
func TestARangeForAnAddressOfAnotherSubnetGoesWithIt(t *testing.T) {
	made, _ := machineENI("eni-a")
	made.Addresses = append(hosts(10), host(otherSubnets)...)
	v := View{Status: Status{Mode: Operator, Revision: 1, ENIs: []ENI{made}, Reserved: []Reserved{{Addr: otherSubnets, Namespace: "db", Pod: "db-0"}}}}
	state := stateOf("")
	for _, want := range []bool{true, false} {
		shared := state.Clone()
		if err := Adopt(state, Head{}, "", v).Apply(state, Node{}, 0); err != nil || state.ENIs[0].MayHave(otherSubnets) != want || state.Check() != nil {
			t.Errorf("%v, %v: %+v", err, state.Check(), state.ENIs[0])
		}
		if shared.ENIs[0].MayHave(otherSubnets) == want {
			t.Error("a copy of before has changed")
		}
		v.Status.Revision, v.Status.ENIs[0].Addresses, v.Status.Reserved = 2, hosts(10), nil
	}
}

const coolDown = 30 * time.Second

// What is not to be done yet is no change to write: it would be written at each look.
func TestWhatAPodHasOrCoolsIsNotDue(t *testing.T) {
	made, _ := machineENI("eni-a")
	made.Addresses = hosts(10, 11, 12, 13)
	v := View{Status: Status{Mode: Operator, Revision: 1, ENIs: []ENI{made}, Reserved: kept("11:db-9", "13:db-3")}}
	state := stateOf("10 claimed:db-0\n11 claimed:db-1\n12 reserved:db-2\n13 reserved:db-0")
	state.Settings.CoolDown = coolDown
	for i := range state.Addresses {
		state.Addresses[i].Since = time.Hour
	}
	if c := Adopt(state, Head{}, "", v).Due(state, time.Hour+coolDown-1); len(c.Reserve)+len(c.Unreserve) > 0 {
		t.Errorf("%+v", c)
	}
	if at := state.CooledAt(time.Hour); at != time.Hour+coolDown {
		t.Errorf("the first has cooled at %s", at)
	}
	c := Adopt(state, Head{}, "", v).Due(state, time.Hour+coolDown)
	if fmt.Sprint(c.Reserve, c.Unreserve) != fmt.Sprint(kept("13:db-3"), []netip.Addr{hosts(12)[0].Addr()}) {
		t.Errorf("%+v", c)
	}
	state.FreeIf(func(eni.Address) bool { return true }, 2*time.Hour)
	c = Adopt(state, Head{}, "", v).Due(state, 3*time.Hour)
	if len(c.Reserve) != 2 || len(c.Unreserve) != 2 {
		t.Errorf("after the pods: %+v", c)
	}
}

// What is accepted the next pod of the name does not get, though it has yet to cool down: the address may be elsewhere by then. A pod that has it keeps it, and
// so does one that is named by its uid.
func TestWhatGoesBackIsNobodysWhileItCools(t *testing.T) {
	made, _ := machineENI("eni-a")
	made.Addresses = hosts(10, 11, 12, 13)
	v := View{Status: Status{Mode: Operator, Revision: 1, ENIs: []ENI{made}, Releasing: hosts(10, 11, 12)}}
	state := stateOf("10 reserved:db-0\n11 reserved:db-1\n12 claimed:db-2\n13 reserved:db-3")
	state.Settings.CoolDown = coolDown
	state.Addresses[1].Reservation.UID = "uid-1"
	for i := range state.Addresses {
		state.Addresses[i].Since = time.Hour
	}
	adopt := func(now time.Duration) Changes {
		c := Adopt(state, Head{}, "", v).Due(state, now)
		if err := c.Apply(state, Node{}, now); err != nil {
			t.Fatal(err)
		}
		return c
	}
	owner := eni.Owner{Key: eni.Key{Container: "box"}, Namespace: "db", Pod: "db-0", UID: "next"}
	adopt(time.Hour)
	if got := stateText(state); got != "10 reserved:\n11 reserved:db-1\n12 claimed:db-2\n13 reserved:db-3" {
		t.Errorf("while it cools down:\n%s", got)
	}
	if lease, err := state.AssignReserved(owner, "db", "", time.Hour); err == nil {
		t.Errorf("the next pod of the name gets %+v", lease.Addresses)
	}
	if c := adopt(time.Hour + 1); len(c.Nobodys)+len(c.Unreserve)+len(c.Reserve) > 0 {
		t.Errorf("a second time: %+v", c)
	}
	if c := adopt(time.Hour + coolDown); len(c.Nobodys) > 0 || stateText(state) != "10 releasing:\n11 releasing:db-1\n12 claimed:db-2\n13 releasing:db-3" {
		t.Errorf("%+v:\n%s", c, stateText(state))
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
