package ipam

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"pgregory.net/rapid"
)

// podNamed is a pod of the gated namespace.
func podNamed(name, uid string) eni.Pod { return eni.Pod{UID: uid, Namespace: "gated", Name: name} }

// ownerOfPod is a sandbox of a pod, as a runtime tells of it: with its uid or without.
func ownerOfPod(p eni.Pod, container string, tellsUID bool) eni.Owner {
	o := eni.Owner{Key: key(container), Namespace: p.Namespace, Pod: p.Name}
	if tellsUID {
		o.UID = p.UID
	}
	return o
}

func gatedState(t *testing.T) *State {
	s := nodeState(t, 2, "10.0.0.101 0 free 1\n10.0.0.102 0 free 2\n10.0.0.103 1 free 1")
	s.Settings.Gated = []string{"gated"}
	return s
}

// From the moment at which the agent sees a pod to the end of that: nobody else has the address in between, and it cools down after it as any.
func TestAPodOfAGatedNamespaceGetsWhatWasSetAsideForIt(t *testing.T) {
	s := gatedState(t)
	a, b := podNamed("a", "u-a"), podNamed("b", "u-b")
	if set, freed := s.SetAside([]eni.Pod{a, b}, sec(1000)); fmt.Sprint(set, freed) != "[10.0.0.101 10.0.0.102] []" {
		t.Fatalf("set aside %v, freed %v", set, freed)
	}
	if set, freed := s.SetAside([]eni.Pod{a, b}, sec(1001)); len(set)+len(freed) > 0 {
		t.Errorf("again: set aside %v, freed %v", set, freed)
	}
	if l, err := s.AssignPod(eni.Owner{Key: key("other")}, "", sec(1002)); err != nil || l.Addresses[0].Addr.String() != "10.0.0.103" {
		t.Errorf("another namespace's pod: %v, %v", l.Addresses, err)
	}
	l, err := s.AssignReserved(ownerOfPod(a, "box-a", true), "", "", sec(1003))
	if err != nil || len(l.Addresses) != 1 || l.Addresses[0].Addr.String() != "10.0.0.101" || l.Addresses[0].IsClaimed() || l.Addresses[0].IsKept() {
		t.Fatalf("%+v, %v", l.Addresses, err)
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	s.Free(key("box-a"), sec(1010))
	if line := s.Addresses[0]; line.State != eni.Cooling || line.Reservation != nil || line.Since != sec(1010) {
		t.Errorf("after its pod: %+v", line)
	}
	if set, freed := s.SetAside(nil, sec(1011)); fmt.Sprint(set, freed) != "[] [10.0.0.102]" {
		t.Errorf("b is gone: set aside %v, freed %v", set, freed)
	}
	if line := s.Addresses[1]; line.State != eni.Cooling || line.Reservation != nil || line.Since != sec(1000) {
		t.Errorf("it cools from when it was set aside: %+v", line)
	}
}

// A firewall goes by the addresses of topologies, so a pod of one must not get what was set aside for a pod of its name that is of none, whatever the
// runtime tells of it.
func TestAPodOfATopologyGetsNothingThatWasSetAside(t *testing.T) {
	s := gatedState(t)
	was, is := podNamed("db-0", "u-1"), podNamed("db-0", "u-2")
	s.SetAside([]eni.Pod{was}, sec(1000))
	for _, tt := range []struct {
		what, topology string
		tellsUID       bool
	}{{"by its uid", "", true}, {"by its annotation", "db", false}} {
		l, err := s.AssignReserved(ownerOfPod(is, "box", tt.tellsUID), tt.topology, "", sec(1001))
		if _, waits := errors.AsType[*Awaited](err); !waits {
			t.Errorf("%s: got %v, %v", tt.what, l.Addresses, err)
		}
	}
	if set, freed := s.SetAside(nil, sec(1002)); len(set) != 0 || len(freed) != 1 { // the agent sees that the first has gone
		t.Errorf("set aside %v, freed %v", set, freed)
	}
	if _, err := s.AssignReserved(ownerOfPod(is, "box", false), "", "", sec(1003)); err == nil {
		t.Error("without a word of who it is: it has an address")
	}
}

// Part of a set is left where a write was cut short, or the cloud took one away.
func TestAPartOfWhatIsSetAsideIsSetAsideAnew(t *testing.T) {
	s := nodeState(t, 2, "10.0.0.101 0 free 1\n10.0.0.102 0 free 2\n2001:db8::101 0 free 1\n2001:db8::102 0 free 1", eni.IPv4, eni.IPv6)
	s.Settings.Gated = []string{"gated"}
	p := podNamed("a", "u-a")
	set, _ := s.SetAside([]eni.Pod{p}, sec(1000))
	if len(set) != 2 || set[0].Is4() == set[1].Is4() {
		t.Fatalf("set aside %v", set)
	}
	s.MarkLost(set[:1], sec(1001))
	if line := s.Addresses[slices.IndexFunc(s.Addresses, func(a eni.Address) bool { return a.Addr == set[0] })]; line.State != eni.Releasing || line.Reservation != nil {
		t.Errorf("the cloud took it: %+v", line)
	}
	again, freed := s.SetAside([]eni.Pod{p}, sec(1002))
	if len(again) != 2 || len(freed) != 1 || freed[0] != set[1] || again[0] == set[0] || again[1] == set[0] {
		t.Errorf("set aside %v, freed %v", again, freed)
	}
	if l, err := s.AssignReserved(ownerOfPod(p, "box", true), "", "", sec(1003)); err != nil || len(l.Addresses) != 2 {
		t.Errorf("%v, %v", l.Addresses, err)
	}
}

// Whatever comes in whatever order: a pod has one set at most, what is set aside only its pod gets, and nothing stays set aside for a pod that is gone.
func TestWhatIsSetAsideIsOfItsPodAlone(t *testing.T) {
	outer := t
	rapid.Check(t, func(t *rapid.T) {
		s := nodeState(outer, 2, "10.0.0.101 0 free 1\n10.0.0.102 0 free 2\n10.0.0.103 1 free 1\n10.0.0.104 1 free 1")
		s.Settings.Gated = []string{"gated"}
		all := []eni.Pod{podNamed("a", "u-1"), podNamed("a", "u-2"), podNamed("b", "u-3"), podNamed("c", "u-4")}
		now, boxes := sec(1000), 0
		for range 40 {
			now += sec(rapid.IntRange(0, 40).Draw(t, "s"))
			p := rapid.SampledFrom(all).Draw(t, "pod")
			switch rapid.IntRange(0, 4).Draw(t, "do") {
			case 0:
				var wanted []eni.Pod
				for _, p := range all {
					if rapid.Bool().Draw(t, "wanted") {
						wanted = append(wanted, p)
					}
				}
				s.SetAside(wanted, now)
				for _, line := range s.Addresses {
					if line.State == eni.Reserved && !slices.Contains(wanted, podOf(line.Reservation)) {
						t.Fatalf("%s is set aside for %s, which nobody wants", line.Addr, line.Reservation.PodName())
					}
				}
			case 1:
				boxes++
				l, err := s.AssignReserved(ownerOfPod(p, fmt.Sprint("box-", boxes), true), "", "", now)
				if err == nil && (len(l.Addresses) != 1 || podOf(l.Addresses[0].Reservation) != p) {
					t.Fatalf("%s has %+v", p.Name, l.Addresses)
				}
				if err == nil && rapid.Bool().Draw(t, "undo") {
					s.UndoLease(l)
				}
			case 2:
				s.Free(key(fmt.Sprint("box-", rapid.IntRange(0, boxes).Draw(t, "box"))), now)
			case 3:
				boxes++
				if l, err := s.AssignPod(eni.Owner{Key: key(fmt.Sprint("box-", boxes))}, "", now); err == nil && l.Addresses[0].Reservation != nil {
					t.Fatalf("any pod has %+v", l.Addresses)
				}
			case 4:
				for _, line := range s.Addresses {
					if line.State == eni.Reserved && len(s.StartRelease([]netip.Addr{line.Addr}, now)) > 0 {
						t.Fatalf("%s is set aside, and released", line.Addr)
					}
				}
			}
			if err := s.Check(); err != nil {
				t.Fatal(err)
			}
			sets := map[eni.Pod]int{}
			for _, line := range s.Addresses {
				if line.State == eni.Reserved {
					sets[podOf(line.Reservation)]++
				}
			}
			for p, n := range sets {
				if n > 1 {
					t.Fatalf("%s has %d sets", p.Name, n)
				}
			}
		}
	})
}
