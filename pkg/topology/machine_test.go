package topology

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/enipool/enipool/pkg/eni"
)

// world is a zone of three nodes with the pods of a StatefulSet, whose addresses are Fixed, and some others, whose are Sticky. What
// the operator knows of it is in listed, seen, known and asked; the rest is the truth.
type world struct {
	*rapid.T
	now     time.Time
	k       *Cluster
	oneCall bool

	pods     map[string]*PodFacts
	created  int
	setThere bool
	gone     map[string]bool // nodes
	cloud    map[netip.Addr]string
	boxes    map[string]sandbox // by the pod's uid; what is left of ended ones too
	hidden   map[string]bool    // whose address its kubelet has yet to show
	deleted  map[netip.Addr]bool
	released map[netip.Addr]bool

	listed bool
	seen   Presence // of the StatefulSet
	known  map[netip.Addr]bool
	asked  map[netip.Addr]time.Time

	lateCalls
}

// lateCalls are calls in one of which nobody knows how they ended, and until when the one who leads goes by that.
type lateCalls struct {
	sent  []lateCall
	until map[netip.Addr]time.Time
	term  time.Time // until when those of leaders before it may take effect

	accepted map[netip.Addr]bool // that it leaves the node that has it
}

// lateCall moves an address from wherever it is, if it comes in time.
type lateCall struct {
	addr  netip.Addr
	node  string
	until time.Time
}

// fence is for how long a call may take effect.
const fence = 6 * time.Minute

// sandbox is one on a node that has an address.
type sandbox struct {
	node, pod string
	addr      netip.Addr
}

var (
	worldNodes = []string{"a", "b", "c"}
	worldPods  = []string{"db-0", "db-1", "db-2", "web-0", "web-1", "web-2"}
)

func newWorld(t *rapid.T) *world {
	db := Topology{Name: "db", Strategy: Fixed, Pods: selects("app", "db"), Sources: []Source{{"s-z", ranges("16-19")}}}
	web := Topology{Name: "web", Strategy: Sticky, TTL: time.Minute, Pods: selects("app", "web"), Sources: []Source{{"s-z", ranges("24-27")}}}
	return &world{T: t, now: noon, oneCall: rapid.Bool().Draw(t, "one call"),
		k:    &Cluster{Topologies: []Topology{db, web}, Subnets: []Subnet{inZone("s-z", "z")}, Families: []eni.Family{eni.IPv4}, Taken: map[netip.Addr]bool{}, Freed: map[netip.Addr]time.Time{}},
		pods: map[string]*PodFacts{}, setThere: true, gone: map[string]bool{}, cloud: map[netip.Addr]string{}, boxes: map[string]sandbox{}, hidden: map[string]bool{},
		deleted: map[netip.Addr]bool{}, released: map[netip.Addr]bool{}, known: map[netip.Addr]bool{}, asked: map[netip.Addr]time.Time{},
		lateCalls: lateCalls{until: map[netip.Addr]time.Time{}, accepted: map[netip.Addr]bool{}},
	}
}

// draw returns one of a list.
func draw(w *world, list []string, what string) string {
	return rapid.SampledFrom(list).Draw(w.T, what)
}

// claims returns all in order.
func (w *world) claims() []Claim {
	return slices.SortedFunc(maps.Values(w.k.Claims.byAddr), func(a, b Claim) int { return a.Addr.Compare(b.Addr) })
}

// asPod returns a pod as topologies see it.
func (w *world) asPod(name string) Pod {
	p := Pod{Namespace: "ns", Name: name, UID: w.pods[name].UID, Labels: labels("app", w.pods[name].Topology)}
	if p.Labels["app"] == "db" {
		p.StatefulSet = Workload{Name: "db"}
	}
	return p
}

func (w *world) createPod(name, node string) {
	if w.pods[name] == nil && (w.setThere || name[:2] == "we") {
		w.created++
		app := "web"
		if name[:2] == "db" {
			app = "db"
		}
		w.pods[name] = &PodFacts{Presence: Present, UID: fmt.Sprint(w.created), Node: node, Topology: app}
	}
}

// chooseFor makes the claim of a pod that has none.
func (w *world) chooseFor(name string) {
	p := w.pods[name]
	if p == nil || p.Node == "" || p.Ended || !w.listed {
		return
	}
	of, _ := Find(w.asPod(name), w.k.Topologies)
	for at := range w.cloud {
		w.k.Taken[at] = true
	}
	c, why := Choose(of, w.asPod(name), Node{Name: p.Node, Zone: "z", Anywhere: true}, eni.IPv4, w.k)
	clear(w.k.Taken)
	if why.Cause == None && !w.k.Claims.Put(c) {
		w.Fatalf("%s is chosen for %s, and another one has it", c.Addr, name)
	}
}

func (w *world) factsOf(c Claim) Facts {
	f := Facts{Deleted: w.deleted[c.Addr], StatefulSet: w.seen, OneCall: w.oneCall}
	f.Late = c.ToENI != "" && (w.now.Before(w.until[c.Addr]) || w.now.Before(w.term))
	switch p := w.pods[c.Pod]; {
	case !w.listed:
	case p == nil:
		f.Pod.Presence = Absent
	default:
		f.Pod, f.Target = *p, "eni-"+p.Node
		f.Pod.Shows = w.boxes[p.UID].addr == c.Addr && !w.hidden[p.UID]
	}
	if w.known[c.Addr] {
		f.At = Attachment{Known: true, Accepted: w.accepted[c.Addr] || w.released[c.Addr], Released: w.released[c.Addr], Asked: w.asked[c.Addr]}
		if node := w.cloud[c.Addr]; node != "" {
			f.At.Node, f.At.ENI, f.At.NodeGone = node, "eni-"+node, w.gone[node]
		}
	}
	return f
}

// reconcile does a step of a claim.
func (w *world) reconcile(c Claim) {
	f := w.factsOf(c)
	step := Next(c, f, w.now)
	if step.Claim != c {
		w.checkWrite(c, step.Claim)
		if again := Next(step.Claim, f, w.now); again.Claim != step.Claim {
			w.Fatalf("%+v becomes %+v, and at once %+v", c, step.Claim, again.Claim)
		}
		w.k.Claims.Put(step.Claim)
		return
	}
	lost := rapid.SampledFrom([]string{"", "", "", "the call", "the answer"}).Draw(w.T, "lost")
	if step.Action == Reassign && c.ToENI == "" {
		w.accepted[c.Addr] = true
		return
	}
	if lost != "" && step.Action == Reassign {
		w.until[c.Addr] = w.now.Add(fence)
	}
	if lost == "the call" {
		if w.known[c.Addr] = false; step.Action == Reassign { // it may come later
			w.sent = append(w.sent, lateCall{c.Addr, f.Target[len("eni-"):], w.now.Add(fence)})
		}
		return
	}
	w.do(c, f, step.Action)
	if lost == "the answer" {
		w.known[c.Addr] = false
	}
}

// checkWrite knows when a claim may end.
func (w *world) checkWrite(was, is Claim) {
	if is.Phase != Releasing || was.Phase == Releasing || w.deleted[is.Addr] {
		return
	}
	if p := w.pods[is.Pod]; p != nil && !p.Ended {
		w.Fatalf("%+v ends under its pod", was)
	}
	if is.Keep == Fixed && w.setThere {
		w.Fatalf("%+v ends, and its StatefulSet is there", was)
	}
	if is.Keep == Sticky && w.now.Sub(is.FreeSince) < is.TTL {
		w.Fatalf("%+v ends before its time", was)
	}
}

// takeEffect has a call come late. What a pod on another node uses by then it must not take.
func (w *world) takeEffect(i int) {
	call := w.sent[i]
	w.sent = slices.Delete(w.sent, i, i+1)
	if !w.now.Before(call.until) {
		return
	}
	for uid, box := range w.boxes {
		if p := w.pods[box.pod]; box.addr == call.addr && box.node != call.node && p != nil && p.UID == uid && !p.Ended {
			w.Fatalf("a late call takes %s from its pod on %s", call.addr, box.node)
		}
	}
	if _, claimed := w.k.Claims.byAddr[call.addr]; !claimed {
		w.Fatalf("a late call moves %s to %s, and nobody knows of it", call.addr, call.node)
	}
	if w.cloud[call.addr] == call.node {
		return
	}
	w.cloud[call.addr] = call.node
	delete(w.released, call.addr)
	delete(w.accepted, call.addr)
	delete(w.asked, call.addr)
	w.known[call.addr] = false // a describe is asked before anything else is done: what was described before counts no more
}

func (w *world) do(c Claim, f Facts, a Action) {
	at := w.cloud[c.Addr]
	switch a {
	case Withdraw:
		w.asked[c.Addr] = w.now
	case Unassign, Reassign:
		for uid, box := range w.boxes {
			if p := w.pods[box.pod]; box.addr == c.Addr && box.node == at && p != nil && p.UID == uid && !p.Ended {
				w.Fatalf("%+v is taken from its pod, which runs on %s", c, at)
			}
		}
		delete(w.cloud, c.Addr)
		delete(w.released, c.Addr)
		delete(w.accepted, c.Addr)
		delete(w.asked, c.Addr)
		if a == Reassign {
			w.cloud[c.Addr] = f.Target[len("eni-"):]
		}
	case Assign:
		if at != "" {
			w.Fatalf("%+v is assigned to %s, and %s has it", c, f.Target, at)
		}
		w.cloud[c.Addr] = f.Target[len("eni-"):]
	case Delete:
		w.deleted[c.Addr] = true
	case Forget:
		if at != "" {
			w.Fatalf("%+v is forgotten, and %s has it", c, at)
		}
		w.k.Claims.Remove(c.Addr)
		delete(w.deleted, c.Addr)
	}
}

// runAgent is what a node's agent and plugin do by themselves: they end sandboxes, release what they are asked to, and start pods with
// addresses that are reserved for them there.
func (w *world) runAgent(node string) {
	if w.gone[node] {
		return
	}
	inUse := map[netip.Addr]bool{}
	for uid, box := range w.boxes {
		if p := w.pods[box.pod]; box.node == node && (p == nil || p.UID != uid || p.Ended) {
			delete(w.boxes, uid)
		} else if box.node == node {
			inUse[box.addr] = true
		}
	}
	for _, c := range w.claims() {
		at := c.Addr
		if w.cloud[at] != node {
			continue
		}
		_, asked := w.asked[at]
		if asked && !inUse[at] && !c.Serves() {
			w.released[at] = true
		}
		p := w.pods[c.Pod]
		if p == nil || p.Node != node || p.Ended || inUse[at] || w.released[at] || w.accepted[at] || w.boxes[p.UID].pod != "" {
			continue
		}
		// Without a pod's uid it is reserved for any of the name, until that is withdrawn.
		if c.Serves() && c.PodUID == p.UID || !c.Serves() && !asked && p.Topology == c.Topology {
			w.boxes[p.UID], w.hidden[p.UID] = sandbox{node, c.Pod, at}, true
		}
	}
}

// settle lets everything go well for a while.
func (w *world) settle() {
	clear(w.gone)
	w.listed = true
	for range 80 {
		clear(w.hidden)
		w.seen = Present
		if !w.setThere {
			w.seen = Absent
		}
		w.now = w.now.Add(MoveGrace)
		for _, node := range worldNodes {
			w.runAgent(node)
		}
		for _, name := range worldPods {
			w.chooseFor(name)
		}
		for _, c := range w.claims() {
			w.known[c.Addr] = true
			f := w.factsOf(c)
			if step := Next(c, f, w.now); step.Claim != c {
				w.checkWrite(c, step.Claim)
				w.k.Claims.Put(step.Claim)
			} else if step.Action == Reassign && c.ToENI == "" {
				w.accepted[c.Addr] = true
			} else {
				w.do(c, f, step.Action)
			}
		}
	}
}

// event is something that happens in a world, so many times as often as others.
type event struct {
	often int
	do    func()
}

// events are all that may happen. What operator and agents do by themselves happens most.
func (w *world) events() (list []func()) {
	onClaim := func(do func(Claim)) func() {
		return func() {
			if all := w.claims(); len(all) > 0 {
				do(rapid.SampledFrom(all).Draw(w.T, "claim"))
			}
		}
	}
	onPod := func(do func(string)) func() { return func() { do(draw(w, worldPods, "pod")) } }
	onNode := func(do func(string)) func() { return func() { do(draw(w, worldNodes, "node")) } }
	for _, e := range []event{
		{20, onClaim(w.reconcile)}, {6, onPod(w.chooseFor)}, {10, onNode(w.runAgent)},
		{6, onPod(func(name string) { w.createPod(name, draw(w, append([]string{""}, worldNodes...), "node")) })},
		{3, onPod(func(name string) {
			if p := w.pods[name]; p != nil && p.Node == "" {
				p.Node = draw(w, worldNodes, "node")
			}
		})},
		{3, onPod(func(name string) { delete(w.pods, name) })},
		{1, onPod(func(name string) {
			if p := w.pods[name]; p != nil {
				p.Ended = true
			}
		})},
		{1, onNode(func(node string) { w.gone[node] = true })},
		{2, onNode(func(node string) { w.gone[node] = false })},
		{1, onClaim(func(c Claim) { w.deleted[c.Addr] = true })},
		{6, onClaim(func(c Claim) { w.known[c.Addr] = true })},
		{2, func() { clear(w.hidden) }},
		{3, func() { w.listed = true }},
		{1, func() { // a leader that is new knows nothing yet
			w.listed, w.seen = false, Unknown
			clear(w.known)
			clear(w.asked)
			clear(w.until)
			w.term = w.now.Add(fence)
		}},
		{3, func() {
			if len(w.sent) > 0 {
				w.takeEffect(rapid.IntRange(0, len(w.sent)-1).Draw(w.T, "late call"))
			}
		}},
		{4, func() {
			w.now = w.now.Add(rapid.SampledFrom([]time.Duration{time.Second, 7 * time.Second, time.Minute}).Draw(w.T, "passes"))
		}},
		// The pods of a StatefulSet may outlive it; and that it is gone is seen a while later.
		{1, func() { w.setThere, w.seen = !w.setThere, Unknown }},
		{3, func() {
			if w.seen = Present; !w.setThere {
				w.seen = Absent
			}
		}},
	} {
		for range e.often {
			list = append(list, e.do)
		}
	}
	return list
}

// Whatever pods, nodes, people and operators do: no address is with two claims or on two nodes, none is taken from a pod that runs, no
// claim ends while its StatefulSet is there or before its time, each pod gets its address in the end, and each claim ends.
func TestNoHistoryBreaksAClaim(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		events := w.events()
		for range rapid.SampledFrom([]int{20, 200, 2000}).Draw(t, "steps") {
			rapid.SampledFrom(events).Draw(t, "event")()
		}

		w.settle()
		for name, p := range w.pods {
			if box := w.boxes[p.UID]; p.Node != "" && !p.Ended && (box.node != p.Node || w.cloud[box.addr] != p.Node) {
				w.Fatalf("%s %+v is not served: %+v of %+v", name, *p, box, w.k.Claims.byAddr)
			}
		}
		clear(w.pods)
		w.setThere = false
		w.settle()
		if len(w.k.Claims.byAddr)+len(w.k.Claims.byPod)+len(w.cloud) > 0 {
			w.Fatalf("claims that never end: %+v, on ENIs: %v", w.k.Claims, w.cloud)
		}
	})
}
