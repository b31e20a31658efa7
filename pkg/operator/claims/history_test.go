package claims_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

var (
	historySteps = flag.Int("claims.steps", 100_000, "steps of the random histories of pods of topologies, over all seeds")
	historySeed  = flag.Uint64("claims.seed", 0, "replay this seed alone; 0 runs seeds from 1 on")
)

// stepsPerHistory is how long one history is.
const stepsPerHistory = 2000

// Whatever pods, kubelets, agents, nodes, networks, people, the cloud and leaders do: no pod has an address that is not on its node or that another pod
// has, a kept address stays with its name, none is taken from a sandbox before its agent had the time to end it; once all is well each gate
// opens for which its topology has room, each pod has its address, and without pods and StatefulSet each claim and each address ends.
//
// These are 100,000 steps, and a million with `make soak`; what it takes to bring a history to its end is not counted. A step is one thing that happens: a pod is made,
// classified, bound or ended, a node or an agent falls silent, a leader decides and writes, is paused or killed, a call takes effect, is answered or lost, a write lands late.
// The decisions are the product's: this package's, those of package topology for gates, those of package order on both sides of a node's object, and the node
// state of package ipam. Only effects are the test's. The same with all effects, by the real operator, is TestNoHistoryBreaksTheAddressesOfTopologies of
// package operator: it adds hundreds of steps, not many thousands.
func TestNoHistoryOfPodsBreaksWhatIsKept(t *testing.T) {
	if *historySeed != 0 {
		for _, note := range playHistory(t, *historySeed) {
			t.Log(note)
		}
		return
	}
	count := *historySteps / stepsPerHistory
	if testing.Short() {
		count /= 10
	}
	sum := map[string]int{}
	for seed := uint64(1); int(seed) <= max(1, count); seed++ {
		w := newWorld(seed, "")
		if bad := w.play(stepsPerHistory); len(bad) > 0 {
			t.Fatalf("seed %d: %s\nreplay with: go test ./pkg/operator/claims -run NoHistoryOfPods -claims.seed %d -v", seed, bad[0], seed)
		}
		for what, n := range w.counts {
			sum[what] += n
		}
	}
	for _, what := range []string{"address given", "address given again", "moved", "taken without word", "gate opened", "leader killed", "leader paused", "late effect", "answer lost", "claim ended", "crossed", "cross refused", "shown", "people change the address"} {
		if sum[what] == 0 && !testing.Short() {
			t.Errorf("it never happens: %s", what)
		}
	}
	t.Logf("%d histories of %d steps: %v", count, stepsPerHistory, sum)
}

// playHistory plays one seed and returns what happened in it.
func playHistory(t *testing.T, seed uint64) []string {
	w := newWorld(seed, "")
	w.traces = true
	for _, bad := range w.play(stepsPerHistory) {
		t.Errorf("seed %d: %s", seed, bad)
	}
	return w.notes
}

// play lets steps happen, and then brings all to rest. It returns what was wrong.
func (w *world) play(steps int) []string {
	list := w.events()
	sum := 0
	for _, e := range list {
		sum += e.often
	}
	for range steps {
		at := w.IntN(sum)
		for _, e := range list {
			if at -= e.often; at < 0 {
				e.do()
				break
			}
		}
		if w.check(); len(w.wrong) > 0 {
			return w.wrong
		}
	}
	w.comeToRest()
	return w.wrong
}

// comeToRest lets everything go well: in the end each pod has its address, and then, without pods, nothing is left.
func (w *world) comeToRest() {
	w.calm()
	w.until("each pod has its address", 20*time.Minute, w.lacks)
	for _, name := range w.names {
		w.deletePod(name)
	}
	w.setThere = false
	w.until("without pods nothing is left", 20*time.Minute, w.remains)
}

// calm ends all that goes wrong. A leader that was paused is killed.
func (w *world) calm() {
	for _, l := range w.leaders[:len(w.leaders)-1] {
		l.dead = true
	}
	for _, n := range w.nodes {
		n.silent = false
		w.setCut(n, false)
	}
	w.well, w.uncrossed = true, false
	if l := w.leader(); l.dead || l.paused {
		l.dead = true
		w.now += lease.Duration
		w.lead()
	}
}

// until lets time pass until nothing is said to lack, at most for a while.
func (w *world) until(what string, most time.Duration, lacks func() string) {
	bad := ""
	for end := w.now + most; w.now < end; {
		w.round()
		if w.check(); len(w.wrong) > 0 {
			return
		}
		if bad = lacks(); bad == "" {
			return
		}
	}
	w.complain("it does not hold that %s: %s", what, bad)
}

// round has everybody do what there is to do once.
func (w *world) round() {
	w.now += 2 * time.Second
	late := w.late
	w.late = nil
	for _, do := range late {
		do()
	}
	for _, c := range slices.Clone(w.calls) {
		w.takeEffect(c)
		w.answer(c, true)
	}
	l := w.leader()
	l.describe()
	l.deliver(len(l.inbox))
	l.turn()
	for _, n := range w.nodes {
		w.runAgent(n)
		w.runKubelet(n)
	}
	for _, name := range w.names {
		w.classify(name)
		w.bind(name)
	}
}

// event is something that happens, so many times as often as others.
type event struct {
	often int
	do    func()
}

// events are all that may happen. What operator, agents and kubelets do by themselves happens most.
func (w *world) events() []event {
	onPod := func(do func(name), which func(*pod) bool) func() {
		return func() {
			at := w.IntN(len(w.names))
			for i := range w.names { // the next one to which that can happen
				if of := w.names[(at+i)%len(w.names)]; which(w.pods[of]) {
					do(of)
					return
				}
			}
		}
	}
	onNode := func(do func(*node)) func() { return func() { do(w.nodes[w.IntN(len(w.nodes))]) } }
	onCall := func(do func(*call)) func() {
		return func() {
			if len(w.calls) > 0 {
				do(w.calls[w.IntN(len(w.calls))])
			}
		}
	}
	anyLeader := func() *leader {
		if w.IntN(5) == 0 { // one of before, which may not know
			return w.leaders[max(0, len(w.leaders)-2)]
		}
		return w.leader()
	}
	return []event{
		{400, func() { anyLeader().turn() }}, {200, func() { anyLeader().deliver(1 + w.IntN(30)) }}, {100, func() { anyLeader().describe() }},
		{150, onNode(w.runAgent)}, {150, onNode(w.runKubelet)},
		{120, onCall(w.takeEffect)}, {120, onCall(func(c *call) { w.answer(c, w.IntN(12) > 0) })},
		{60, onPod(w.createPod, func(p *pod) bool { return p == nil })}, {80, onPod(w.classify, func(p *pod) bool { return p != nil && p.gated })},
		{60, onPod(w.bind, func(p *pod) bool { return p != nil && !p.gated && p.Node == "" })},
		{22, onPod(w.removePod, func(p *pod) bool { return p != nil && p.Node != "" })}, {2, onPod(w.removePod, func(p *pod) bool { return p != nil })}, {2, onPod(w.endPod, func(p *pod) bool { return p != nil })},
		{3, onNode(func(n *node) { n.silent = true })}, {6, onNode(func(n *node) { n.silent = false })},
		{4, onNode(func(n *node) { w.setCut(n, true) })}, {8, onNode(func(n *node) { w.setCut(n, false) })},
		{2, func() { w.uncrossed = w.cross && w.IntN(3) == 0 }}, {3, w.deleteClaim}, {6, w.changeAddress}, {1, w.toggleSet}, {20, w.landLate}, {2, w.killLeader}, {2, w.pauseLeader},
		{100, func() {
			w.now += []time.Duration{200 * time.Millisecond, time.Second, 3 * time.Second, 11 * time.Second, time.Minute}[min(w.IntN(5), w.IntN(5), w.IntN(5))]
		}},
	}
}

func (w *world) note(what string, format string, args ...any) {
	w.counts[what]++
	if w.traces {
		w.notes = append(w.notes, fmt.Sprintf("%s %s: ", w.now, what)+fmt.Sprintf(format, args...))
	}
}

func (w *world) complain(format string, args ...any) {
	w.wrong = append(w.wrong, fmt.Sprintf("%s: ", w.now)+fmt.Sprintf(format, args...))
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 5)) }
