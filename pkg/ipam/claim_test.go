package ipam

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
)

func TestAPodThatWaitsIsToldForWhatAndForWhom(t *testing.T) {
	pod := eni.Owner{Key: key("new"), Namespace: "db", Pod: "db-0", UID: "u-0"}
	for what, tt := range map[string]struct {
		topology, device string
		change           func(*State)
		want             string
	}{
		"a topology":    {"db", "", func(*State) {}, "pod db/db-0 waits for its address of topology db: operator: none is reserved for it on this node yet"},
		"a gated place": {"", "", func(s *State) { s.Settings.Gated = []string{"db"} }, "pod db/db-0 waits for an address reserved for it, as each pod of the namespace db must: none is reserved for it on this node yet; the agent does that for a pod without a topology, the operator for another one"},
		"nothing":       {"", "", func(*State) {}, "<nil>"},
		"another pod's": {"", "", func(s *State) { keep(s, "10.0.0.101", eni.Reservation{Namespace: "db", Pod: "db-1"}) }, "<nil>"},
		"an older pod's": {"db", "", func(s *State) { keep(s, "10.0.0.101", eni.Reservation{Namespace: "db", Pod: "db-0", UID: "u-x"}) },
			"pod db/db-0 waits for its address of topology db: operator: none is reserved for it on this node yet"},
		"another link": {"db", "eth1", func(s *State) { keep(s, "10.0.0.101", eni.Reservation{Namespace: "db", Pod: "db-0"}) },
			"pod db/db-0 waits for its address of topology db: what is reserved for it is not on the ENI of eth1"},
		"one family of two": {"", "", func(s *State) {
			s.Settings.Families = []eni.Family{eni.IPv4, eni.IPv6}
			keep(s, "10.0.0.101", eni.Reservation{Namespace: "db", Pod: "db-0"})
		}, "pod db/db-0 waits for its address: operator: not one address of each family is reserved for it on one ENI yet"},
		"its earlier sandbox": {"db", "", func(s *State) {
			keep(s, "10.0.0.101", eni.Reservation{Namespace: "db", Pod: "db-0"})
			claimed(t, s, "old", pod)
		}, "pod db/db-0 waits for its address of topology db: its earlier sandbox old has 10.0.0.101 until the runtime ends that"},
		"what goes back, and was its own": {"db", "", func(s *State) {
			keep(s, "10.0.0.101", eni.Reservation{Namespace: "db", Pod: "db-0"})
			s.Unreserve(addrs("10.0.0.101"), sec(1000))
		}, "pod db/db-0 waits for its address of topology db: operator: none is reserved for it on this node yet"},
		"its other interface": {"db", "", func(s *State) {
			keep(s, "10.0.0.101", eni.Reservation{Namespace: "db", Pod: "db-0"})
			other := pod
			other.IfName = "net1"
			claimed(t, s, "new", other)
		}, "pod db/db-0 waits for its address of topology db: its interface net1 has 10.0.0.101, and a pod gets one"},
	} {
		s := nodeState(t, 2, "10.0.0.101 0 free 1\n10.0.0.102 1 free 1")
		tt.change(s)
		l, err := s.AssignReserved(pod, tt.topology, tt.device, sec(1000))
		if fmt.Sprint(err) != tt.want || len(l.Addresses) > 0 {
			t.Errorf("%s: %v, want %s; got %v", what, err, tt.want, l.Addresses)
		}
	}
}

func keep(s *State, addr string, r eni.Reservation) {
	s.Reserve(map[netip.Addr]eni.Reservation{netip.MustParseAddr(addr): r}, sec(1000))
}

func claimed(t *testing.T, s *State, container string, o eni.Owner) {
	t.Helper()
	o.Container = container
	if l, err := s.AssignReserved(o, "", "", sec(1000)); err != nil || len(l.Addresses) == 0 {
		t.Fatalf("claimed %v, %v", l.Addresses, err)
	}
}

// Its peers know the address as this pod's: nothing has to be forgotten first. To another pod it may not go before.
func TestThePodOfAnAddressHasItAgainAtOnceAndAnotherAfterTheCoolDown(t *testing.T) {
	s := nodeState(t, 1, "10.0.0.101 0 free 1")
	s.Settings.CoolDown = 30 * time.Second
	addr := netip.MustParseAddr("10.0.0.101")
	pod := eni.Owner{Key: key("first"), Namespace: "db", Pod: "db-0", UID: "u-0"}
	keep(s, "10.0.0.101", eni.Reservation{Namespace: "db", Pod: "db-0"})
	claimed(t, s, "first", pod)
	s.Free(key("first"), sec(1010))
	claimed(t, s, "second", pod)
	s.Free(key("second"), sec(1020))
	other := map[netip.Addr]eni.Reservation{addr: {Namespace: "db", Pod: "db-1"}}
	if got := s.Reserve(other, sec(1049)); len(got) > 0 {
		t.Error("another pod may have it before it has cooled down")
	}
	if got := s.Reserve(other, sec(1050)); len(got) != 1 {
		t.Error("another pod may not have it after the cool-down")
	}
}

// What the cloud took away is no pod's to wait for, and if it comes back nobody else's.
func TestALostAddressIsWithdrawnAfterItsPod(t *testing.T) {
	s := nodeState(t, 1, "10.0.0.101 0 free 1\n10.0.0.102 0 free 1")
	pod := eni.Owner{Key: key("first"), Namespace: "db", Pod: "db-0"}
	for _, a := range []string{"10.0.0.101", "10.0.0.102"} {
		keep(s, a, eni.Reservation{Namespace: "db", Pod: "db-0"})
	}
	claimed(t, s, "first", pod)
	s.MarkLost(addrs("10.0.0.101"), sec(1000))
	claimed(t, s, "second", pod) // it moved, and this is what it has now
	s.Free(key("first"), sec(1010))
	if a := s.Addresses[0]; a.State != eni.Releasing || a.Reservation == nil {
		t.Errorf("after its pod it is %s, reserved for %v", a.State, a.Reservation)
	}
	s.CancelRelease(addrs("10.0.0.101"), sec(1011))
	if a := s.Addresses[0]; a.State != eni.Reserved {
		t.Errorf("it is %s when it is not released after all", a.State)
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

func TestCheckFindsWhatIsKeptForAnother(t *testing.T) {
	for want, change := range map[string]func(*eni.Address){
		"address 10.0.0.101: is reserved but it is not said for whom": func(a *eni.Address) { a.State = eni.Reserved },
		"address 10.0.0.101: is free but noted as reserved for db/db-0": func(a *eni.Address) {
			a.Reservation = &eni.Reservation{Namespace: "db", Pod: "db-0"}
		},
		"address 10.0.0.101: is reserved for db/db-0 but db/db-1 has it": func(a *eni.Address) {
			a.State, a.Owner = eni.Used, &eni.Owner{Key: key("x"), Namespace: "db", Pod: "db-1"}
			a.Reservation = &eni.Reservation{Namespace: "db", Pod: "db-0"}
		},
	} {
		s := nodeState(t, 1, "10.0.0.101 0 free 1")
		change(&s.Addresses[0])
		if err := s.Check(); fmt.Sprint(err) != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A pod that is made again while its namespace has no label is of no topology. The operator gives the address of its name to others, so it must not have it.
func TestAPodOfNoTopologyGetsNothingThatIsKeptForOneOfItsName(t *testing.T) {
	for _, gated := range []bool{false, true} {
		s := nodeState(t, 1, "10.0.0.101 0 free 1\n10.0.0.102 0 free 2")
		pod := eni.Owner{Key: key("new"), Namespace: "db", Pod: "db-0", UID: "u-1"}
		keep(s, "10.0.0.101", eni.Reservation{Topology: "db", Namespace: "db", Pod: "db-0"})
		if gated {
			s.Settings.Gated = []string{"db"}
			s.SetAside([]eni.Pod{{Namespace: "db", Name: "db-0", UID: "u-1"}}, sec(1000))
		}
		l, err := s.AssignSetAside(pod, "", sec(1001))
		if !gated && err == nil && len(l.Addresses) == 0 {
			l, err = s.AssignPod(pod, "", sec(1001))
		}
		if err != nil || len(l.Addresses) != 1 || l.Addresses[0].Addr.String() != "10.0.0.102" {
			t.Errorf("gated %v: %+v, %v", gated, l.Addresses, err)
		}
	}
}
