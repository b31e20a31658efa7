package claims

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/topology"
)

const moveFence = 6 * time.Minute

var moved = netip.MustParseAddr("10.0.0.9")

// mover knows a claim that is on its way from node a, which has ended with its address, to the pod on node b or c.
type mover struct {
	*testing.T
	*Known
	Moves
	version int
}

func newMover(t *testing.T, pod string, now time.Duration) *mover {
	t.Helper()
	object := claimOf("u", "1", "Moving")
	object.Status.PodUID, object.Status.Node, object.Status.Interface, object.Status.To = "2", "a", "eni-a", pod
	none := []Pod{{Name: Name{"db", "db-0"}, UID: "2", Node: pod, Topology: "t"}}
	m := &mover{T: t, Known: knownWith(t, Event{Claim: object}, Event{Pods: &none}, Event{Pods: &none}, Event{Complete: true}), version: 1,
		Moves: Moves{Now: now, Described: now, Fence: moveFence, Reserved: map[string][]netip.Prefix{"s": nil}}}
	room := map[eni.Family]int{eni.IPv4: 3}
	m.SetNode(Node{Name: "a", Told: true, Serves: true, Releasing: map[netip.Addr]bool{moved: true}, Published: map[netip.Addr]bool{moved: true},
		ENIs: []ENI{{ID: "eni-a", Subnet: "s", Addresses: []netip.Addr{moved}, Room: room}}})
	for _, name := range []string{"b", "c"} {
		m.SetNode(Node{Name: name, Told: true, Serves: true, ENIs: []ENI{{ID: "eni-" + name, Subnet: "s", Room: room}}})
	}
	return m
}

func (m *mover) decide() Steps {
	m.SetMoves(m.Moves)
	return m.Decide(noon, true)
}

// write does the only write that follows.
func (m *mover) write(s Steps) topology.Status {
	m.Helper()
	if len(s.Writes) != 1 || m.orders(s) != "" {
		m.Fatalf("it writes %+v, and orders %s", s.Writes, m.orders(s))
	}
	before := m.Object(moved)
	next := before.DeepCopy()
	m.version++
	next.ResourceVersion = fmt.Sprint(m.version)
	next.Status.Write(s.Writes[0].Status)
	next.Status.Message = s.Writes[0].Message
	if err := m.Take(Event{Claim: next}); err != nil {
		m.Fatal(err)
	}
	was, err := before.Status.Read()
	if err != nil {
		m.Fatal(err)
	}
	m.NoteWritten(moved, was, s.Writes[0].Status)
	return s.Writes[0].Status
}

// orders are the calls that follow, in words.
func (m *mover) orders(s Steps) (text string) {
	for _, node := range []string{"a", "b", "c"} {
		o := s.Nodes[node]
		for id, list := range o.Take {
			text += fmt.Sprint("take ", list, " from ", id, ";")
		}
		for id, list := range o.Assign {
			text += fmt.Sprint("give ", list, " to ", id, ";")
		}
		for id, move := range o.Move {
			text += fmt.Sprint("move ", move.Addrs, " from ", move.ENI, " to ", id, ";")
		}
	}
	return text
}

const inOne = "move [10.0.0.9] from eni-a to eni-b;"

func TestOneCallIsOrderedWhenTheClaimSaysSo(t *testing.T) {
	m := newMover(t, "b", time.Hour)
	if is := m.write(m.decide()); is.ToENI != "eni-b" {
		t.Fatalf("%+v", is)
	}
	s := m.decide()
	if got := m.orders(s); got != inOne {
		t.Errorf("it orders %q", got)
	}
	if kept := s.Nodes["b"].Reserved; len(kept) != 1 || kept[0] != (order.Reserved{Addr: moved, Topology: "t", Namespace: "db", Pod: "db-0", UID: "2"}) || len(s.Nodes["a"].Reserved) > 0 {
		t.Errorf("b keeps %+v, a %+v", kept, s.Nodes["a"].Reserved)
	}
	// One is under way: nothing else happens, though describes show it where it was.
	m.NoteMoving([]netip.Addr{moved})
	m.SetOpen("b", map[netip.Addr]bool{moved: true})
	if s := m.decide(); m.orders(s) != "" || len(s.Writes) > 0 || len(s.Nodes["b"].Reserved) != 1 || len(s.Nodes["a"].Reserved) > 0 {
		t.Errorf("%+v", s)
	}
	m.NoteMoved([]netip.Addr{moved}, func(netip.Addr) bool { return false }, m.Now)
	m.SetOpen("b", nil)
	m.SetNode(Node{Name: "a", Told: true, Serves: true})
	m.SetNode(Node{Name: "b", Told: true, Serves: true, ENIs: []ENI{{ID: "eni-b", Subnet: "s", Addresses: []netip.Addr{moved}}}})
	if is := m.write(m.decide()); is != (topology.Status{Phase: topology.Bound, PodUID: "2", Node: "b", ENI: "eni-b", Moves: 1}) {
		t.Errorf("%+v", is)
	}
}

func TestTwoCallsAreOrderedWhereOneIsNotSafe(t *testing.T) {
	for name, change := range map[string]func(*mover){
		"its range is reserved":           func(m *mover) { m.Reserved["s"] = []netip.Prefix{netip.MustParsePrefix("10.0.0.8/30")} },
		"others have addresses there too": func(m *mover) { m.Reserved = map[string][]netip.Prefix{"another": nil} },
		"the cloud can't":                 func(m *mover) { m.Reserved = nil },
		"the cloud has refused it":        func(m *mover) { m.NoteUnmovable(moved, m.Now) },
		"the claim knows another ENI":     func(m *mover) { m.claims[moved].object.Status.Interface = "eni-x"; m.reread() },
	} {
		m := newMover(t, "b", time.Hour)
		m.SetMoves(m.Moves)
		change(m)
		if got := m.orders(m.decide()); got != "take [10.0.0.9] from eni-a;" {
			t.Errorf("%s: it orders %q", name, got)
		}
	}
	m := newMover(t, "b", time.Hour)
	m.SetMoves(m.Moves)
	m.NoteUnmovable(moved, m.Now)
	m.Now += topology.ConflictRetry
	if is := m.write(m.decide()); is.ToENI != "eni-b" {
		t.Errorf("a while after the refusal: %+v", is)
	}
}

// reread takes in the claim's object as it was changed.
func (m *mover) reread() {
	m.version++
	next := m.Object(moved).DeepCopy()
	next.ResourceVersion = fmt.Sprint(m.version)
	if err := m.Take(Event{Claim: next}); err != nil {
		m.Fatal(err)
	}
}

// What a leader before it has sent may take effect for a fence, and after that a describe has to show what it did. Then its pod has the address.
func TestALeaderWaitsForTheCallsOfThoseBefore(t *testing.T) {
	m := newMover(t, "c", 20*time.Second)
	m.claims[moved].object.Status.ToInterface = "eni-b"
	m.reread()
	for _, at := range []struct {
		now, described time.Duration
		waits          bool
	}{{20 * time.Second, 10 * time.Second, true}, {moveFence + time.Second, moveFence - time.Second, true}, {moveFence + time.Second, moveFence, false}} {
		m.Now, m.Described = at.now, at.described
		s := m.decide()
		if len(s.Writes) == 1 && s.Writes[0].Status.ToENI == "eni-b" && at.waits { // what people read
			m.write(s)
			s = m.decide()
		}
		if got := m.orders(s); got != "" || len(s.Writes) > 0 == at.waits || len(s.Waits) != 1 && at.waits {
			t.Errorf("%+v: it orders %q, and writes %+v", at, got, s.Writes)
		}
	}
	if is := m.write(m.decide()); is.ToENI != "eni-c" {
		t.Errorf("%+v", is)
	}
	if got := m.orders(m.decide()); got != "move [10.0.0.9] from eni-a to eni-c;" {
		t.Errorf("it orders %q", got)
	}
}

// A call whose answer is lost is late for a fence, though another one has moved the address.
func TestALostAnswerCountsForAFence(t *testing.T) {
	m := newMover(t, "b", time.Hour)
	m.write(m.decide())
	for _, doubt := range []bool{true, false} {
		m.NoteMoving([]netip.Addr{moved})
		m.NoteMoved([]netip.Addr{moved}, func(netip.Addr) bool { return doubt }, m.Now)
	}
	if got := m.orders(m.decide()); got != inOne {
		t.Errorf("it is not asked for again: %q", got)
	}
	m.Now, m.Described = m.Now+moveFence, m.Now+moveFence-time.Second
	if m.SetMoves(m.Moves); !m.isLate(m.claims[moved].Claim) {
		t.Error("a fence later, before a describe, none is late")
	}
	m.Described = m.Now
	if m.SetMoves(m.Moves); m.isLate(m.claims[moved].Claim) {
		t.Error("one is late for ever")
	}
}

// The watch may be late to tell that a leader before has written that it calls. So in its first minutes a leader does nothing for a claim that it has not
// written itself.
func TestALeaderConfirmsWhatItActsOn(t *testing.T) {
	m := newMover(t, "b", 20*time.Second)
	m.Reserved = map[string][]netip.Prefix{}
	if is := m.write(m.decide()); is != m.claims[moved].Status || is.ToENI != "" {
		t.Errorf("%+v", is)
	}
	if got := m.orders(m.decide()); got != "take [10.0.0.9] from eni-a;" {
		t.Errorf("then it orders %q", got)
	}
}

// Addresses of one ENI go in one call; those of another one wait for the next.
func TestACallTakesFromOneENI(t *testing.T) {
	d := &decision{Known: New(nil, 0), orders: map[string]*Orders{}}
	for i, from := range []string{"eni-a", "eni-x", "eni-a"} {
		d.move("b", "eni-b", Move{"n", from, []netip.Addr{netip.AddrFrom4([4]byte{10, 0, 0, byte(i)})}})
	}
	if is := d.orders["b"].Move["eni-b"]; is.ENI != "eni-a" || fmt.Sprint(is.Addrs) != "[10.0.0.0 10.0.0.2]" {
		t.Errorf("%+v", is)
	}
}
