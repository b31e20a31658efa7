package ipam

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/google/go-cmp/cmp"
)

func addrs(names ...string) []netip.Addr {
	var list []netip.Addr
	for _, n := range names {
		list = append(list, netip.MustParseAddr(n))
	}
	return list
}

const resizable = `
	10.0.0.11 0 used 1 web
	10.0.0.12 0 free 1
	10.0.0.13 0 cooling 80
	10.0.0.14 0 cooling 10
	10.0.0.21 1 releasing 1
	10.0.0.22 1 free 1`

func TestMovesOfLinesChangeJustWhatTheyMay(t *testing.T) {
	all := addrs("10.0.0.11", "10.0.0.12", "10.0.0.13", "10.0.0.14", "10.0.0.21", "10.0.0.22", "10.0.9.9")
	for _, tt := range []struct {
		name    string
		move    func(*State) []netip.Addr
		changed []netip.Addr
		want    string
	}{
		{"drain takes what is free, cooled down or not given yet", func(s *State) []netip.Addr { return s.StartRelease(all, sec(100)) },
			addrs("10.0.0.12", "10.0.0.14", "10.0.0.22"), `
			10.0.0.11 0 used 1 web
			10.0.0.12 0 releasing 100
			10.0.0.13 0 cooling 80
			10.0.0.14 0 releasing 100
			10.0.0.21 1 releasing 1
			10.0.0.22 1 releasing 100`},
		{"restore takes back what is on its way", func(s *State) []netip.Addr { return s.CancelRelease(all, sec(100)) },
			addrs("10.0.0.21"), `
			10.0.0.11 0 used 1 web
			10.0.0.12 0 free 1
			10.0.0.13 0 cooling 80
			10.0.0.14 0 cooling 10
			10.0.0.21 1 free 100
			10.0.0.22 1 free 1`},
		{"lose leaves a used address its owner", func(s *State) []netip.Addr { return s.MarkLost(all[:3], sec(100)) },
			all[:3], `
			10.0.0.11 0 used 1 web
			10.0.0.12 0 releasing 100
			10.0.0.13 0 releasing 100
			10.0.0.14 0 cooling 10
			10.0.0.21 1 releasing 1
			10.0.0.22 1 free 1`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := nodeState(t, 2, resizable)
			if d := cmp.Diff(tt.changed, tt.move(s), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(text(tt.want), show(s.Addresses)); d != "" {
				t.Error(d)
			}
			if len(slices.Compact(s.Touched())) != len(tt.changed) {
				t.Errorf("touched %v, want one for each of %v", s.Touched(), tt.changed)
			}
			if err := s.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestALostAddressIsNobodysAfterItsPod(t *testing.T) {
	for name, end := range map[string]func(*State){
		"release": func(s *State) { s.Free(key("web"), sec(100)) },
		"gc":      func(s *State) { s.FreeIf(func(eni.Address) bool { return true }, sec(100)) },
	} {
		t.Run(name, func(t *testing.T) {
			s := nodeState(t, 1, "10.0.0.11 0 used 1 web")
			s.MarkLost(addrs("10.0.0.11"), sec(50))
			if _, err := s.AssignPod(owner("db"), "", sec(1000)); err == nil {
				t.Error("a lost address was handed out")
			}
			end(s)
			if got := s.Addresses[0]; got.State != eni.Releasing || got.Lost || got.Owner != nil {
				t.Errorf("after its pod: %+v, want releasing", got)
			}
		})
	}
	s := nodeState(t, 1, "10.0.0.11 0 used 1 web")
	s.MarkLost(addrs("10.0.0.11"), sec(50))
	s.UnmarkLost(addrs("10.0.0.11"))
	if s.Free(key("web"), sec(60)); s.Addresses[0].State != eni.Cooling {
		t.Errorf("after it came back: %s, want cooling", s.Addresses[0].State)
	}
}

func TestAnUndoneLeaseOfALostAddressGoesToTheCloud(t *testing.T) {
	s := nodeState(t, 1, "10.0.0.11 0 free 1")
	l, err := s.AssignPod(owner("web"), "", sec(10))
	if err != nil {
		t.Fatal(err)
	}
	s.MarkLost(addrs("10.0.0.11"), sec(11))
	if s.UndoLease(l); s.Addresses[0].State != eni.Releasing {
		t.Errorf("it is %s, want releasing", s.Addresses[0].State)
	}
}

func TestAddKeepsAllocationOrderAndOwners(t *testing.T) {
	s := nodeState(t, 2, "10.0.0.11 0 free 1\n10.0.0.21 1 free 1")
	s.AddAddresses(0, addrs("10.0.0.12", "10.0.0.11", "10.0.0.12"), map[netip.Addr]eni.Owner{addrs("10.0.0.12")[0]: owner("web")}, sec(5))
	s.AddAddresses(1, addrs("10.0.0.22"), nil, sec(6))
	want := `
		10.0.0.11 0 free 1
		10.0.0.12 0 used 5 web
		10.0.0.21 1 free 1
		10.0.0.22 1 free 6`
	if d := cmp.Diff(text(want), show(s.Addresses)); d != "" {
		t.Error(d)
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

func TestAnENIComesOnceAndGoesWhenNothingHoldsIt(t *testing.T) {
	s := nodeState(t, 1, "10.0.0.11 0 free 1")
	if err := s.AddENI(nic(1)); err != nil {
		t.Fatal(err)
	}
	if err := s.AddENI(nic(1)); err != nil || len(s.ENIs) != 2 {
		t.Errorf("a second time: %v, %d ENIs", err, len(s.ENIs))
	}
	other := nic(1)
	other.ID = "eni-other"
	if err := s.AddENI(other); err == nil {
		t.Error("two ENIs at one index")
	}
	s.AddAddresses(1, addrs("10.0.0.21", "10.0.0.22"), map[netip.Addr]eni.Owner{addrs("10.0.0.21")[0]: owner("web")}, sec(1))
	s.StartRelease(addrs("10.0.0.21", "10.0.0.22"), sec(2))
	if err := s.DropENI(nic(1).ID); err == nil {
		t.Error("an ENI with a used address was dropped")
	}
	if got := s.DropReleased(addrs("10.0.0.11", "10.0.0.21", "10.0.0.22")); len(got) != 1 {
		t.Errorf("dropped %v, want the releasing one", got)
	}
	s.MarkLost(addrs("10.0.0.21"), sec(3))
	s.Free(key("web"), sec(3))
	if err := s.DropENI(nic(1).ID); err != nil || len(s.ENIs) != 1 || len(s.Addresses) != 1 {
		t.Errorf("drop: %v, left %v", err, s.Addresses)
	}
	if err := s.DropENI("eni-unknown"); err != nil {
		t.Errorf("one that is not there: %v", err)
	}
}

func TestACloneSharesNothing(t *testing.T) {
	s := nodeState(t, 1, "10.0.0.11 0 free 1")
	c := s.Clone()
	if _, err := c.AssignPod(owner("web"), "", sec(5)); err != nil {
		t.Fatal(err)
	}
	if s.Addresses[0].State != eni.Free || len(s.Touched()) != 0 || len(c.Touched()) != 1 {
		t.Error("a move on the clone changed the original")
	}
}

// What the cloud tells wrong would else keep every other change out of the node state.
func TestWidenAddsNoRangeThatCheckRefuses(t *testing.T) {
	s := nodeState(t, 2, `10.0.0.11 0 used 1 web`)
	s.ENIs[0].V6 = eni.Net{}
	good := netip.MustParsePrefix("10.64.1.0/24")
	s.WidenENI(eni.Interface{ID: "eni-a", Pods: []netip.Prefix{netip.MustParsePrefix("10.65.1.7/24"), {}, good, netip.MustParsePrefix("2001:db8:1::/64"), good}})
	if got := s.ENIs[0].Pods; !slices.Equal(got, []netip.Prefix{good}) || s.ENIs[1].Pods != nil {
		t.Errorf("it has %v", got)
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}
