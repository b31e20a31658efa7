package e2e

import (
	"bytes"
	"flag"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
)

var killEvery = flag.Bool("kills.all", false, "kill the agent at every system call of a tick, and not at some")

// killSample is at how many system calls of a tick an agent is killed where not at all.
const killSample = 3

// An agent that is killed at any system call of a tick that grows or shrinks the pool leaves
// a node that the next one sets right: the pods that ran before don't notice, those that
// wait get their addresses, nobody has an address of somebody else, and the cloud has
// nothing that the node cache does not have.
//
// Growing is to assign an address to an ENI and to make a second ENI with two, shrinking is
// to give back the same. Which system calls count is said in killat's comment. A run has
// others in another order than the next, because goroutines have; the nth call of the run
// in which it is killed is what counts.
func TestKilledAtAnySystemCallOfATickTheNextAgentRepairs(t *testing.T) {
	t.Parallel()
	for name, conf := range map[string]string{"map": "snat: true", "rule": "routing: rule"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newKills(t, name, conf).run()
		})
	}
}

// kills is a site whose agents are killed.
type kills struct {
	*site
	flows   *flows
	addr    string // of the pod that stays
	waiting []string
	killed  int
	at      string // where the last one was
}

// Pools of the site, without and with the pods that come and go. An agent that finds a part
// of the shrinking done may leave it at that: with 4 free addresses its strategy is content.
const (
	smallPool  = 3
	shrunkPool = 5
	largePool  = 6
)

func newKills(t *testing.T, name, conf string) *kills {
	slow := sim.Latency{Base: 20 * time.Millisecond} // long enough for a request to be on its way when its agent dies
	latency := map[string]sim.Latency{}
	for _, action := range []string{sim.ActCreate, sim.ActAttach, sim.ActDetach, sim.ActDelete, sim.ActAssign, sim.ActUnassign} {
		latency[action] = slow
	}
	s := newSite(t, plan{name: "killed-" + name, limits: eni.Limits{ENIs: 3, V4: 5, V6: 5}, options: sim.Options{Latency: latency}, heeds: true})
	// No other strategy shrinks before it has watched the pods for 5 s, with each agent again.
	s.configure(conf, "resync: 300ms", "pool.strategy: reactive", "pool.batch: 3", "pool.minFree: 34%", "pool.maxFree: 134%")
	k := &kills{site: s, flows: &flows{t: t, told: s.fail, pause: 2 * time.Millisecond}, waiting: names("pod", 4)}
	s.start()
	s.poolOf(smallPool)
	s.add("a")
	s.poolOf(smallPool)
	k.addr = s.address("a", false)
	k.flows.connect("a's connection", s.pods["a"], internet4+":7000", s.far, internet4+":7000")
	k.flows.ping("a's ping", s.pods["a"], internet4)
	s.agent.terminate()
	return k
}

// run kills at as many moments of each tick as is wanted.
func (k *kills) run() {
	grow, shrink := &tick{pool: largePool, most: largePool, does: k.addThem}, &tick{pool: smallPool, most: shrunkPool, does: k.delThem}
	agent := k.startDoomed()
	k.settled(smallPool, smallPool)
	for !grow.done() || !shrink.done() {
		agent = k.kill(agent, grow)
		agent = k.kill(agent, shrink)
		for k.wrong(smallPool, smallPool) != nil { // each tick begins with the same pool
			if k.tickAfter(); k.wrong(smallPool, smallPool) != nil {
				agent = k.kill(agent, grow.whole())
				agent = k.kill(agent, shrink.whole())
			}
		}
	}
	agent.kill()
	k.start()
	k.ready()
	k.settled(smallPool, smallPool)
	k.flows.unbroken()
	k.t.Logf("%d kills; a growing tick has up to %d calls, a shrinking one %d", k.killed, grow.calls, shrink.calls)
	if k.killed < killSample { // a run may be shorter than the one whose calls were counted
		k.fail("only %d kills", k.killed)
	}
}

// tick is one of the ticks in which the agent is killed.
type tick struct {
	pool    int           // that it leads to
	most    int           // the largest pool that the next agent may leave
	does    func() func() // begins what leads to it, and returns what waits for that
	next    moment
	started bool
	sample  []moment // still to come, if not all
	calls   int      // of the longest run
	passed  int      // moments in a row that did not come
}

// whole is the tick without a kill.
func (t *tick) whole() *tick { return &tick{pool: t.pool, most: t.most, does: t.does} }

// done tells whether there was enough of it.
func (t *tick) done() bool { return t.started && t.next == never }

// choose sets the next moment, after a run with these calls.
func (t *tick) choose(calls []string, killed bool) {
	t.calls = max(t.calls, len(calls))
	if killed {
		t.passed = 0
	} else {
		t.passed++
	}
	switch {
	case !t.started && *killEvery:
		t.next = moment{nth: 1}
	case !t.started:
		t.sample = sampled(calls)
		fallthrough
	case !*killEvery:
		t.next = never
		if len(t.sample) > 0 {
			t.next, t.sample = t.sample[0], t.sample[1:]
		}
	case t.passed == 3: // runs differ in length
		t.next = never
	case t.next == never:
	case killed && !t.next.after && len(calls) >= t.next.nth && isRequest(calls[t.next.nth-1]):
		t.next.after = true // its cloud has the request, and nobody takes the answer
	default:
		t.next = moment{nth: t.next.nth + 1}
	}
	t.started = true
}

// sampled draws moments from the calls of a run: one of a request to the cloud that is under
// way, and others all over.
func sampled(calls []string) (list []moment) {
	for i := range killSample {
		at := moment{nth: 1 + i*len(calls)/killSample}
		if next := slices.IndexFunc(calls[at.nth-1:], isRequest); i%2 == 1 && next >= 0 {
			at = moment{nth: at.nth + next, after: true}
		}
		list = append(list, at)
	}
	return list
}

// isRequest tells whether the call asks the cloud to change something.
func isRequest(call string) bool {
	_, rest, _ := strings.Cut(call, ` request {"method":"`)
	method, _, _ := strings.Cut(rest, `"`)
	return slices.Contains([]string{"Create", "Attach", "Bind", "Detach", "Delete", "Assign", "Unassign"}, method)
}

// kill has the agent make the tick, in which it is killed if the moment comes, and the next
// agent set the node right. It returns that one.
func (k *kills) kill(agent doomed, t *tick) doomed {
	k.t.Helper()
	if !t.started {
		t.next = never
	}
	agent.set(t.next)
	wait := t.does()
	k.deadOrDone(agent, t)
	calls, killed := agent.calls(), !agent.Alive()
	k.at = "not killed"
	if killed {
		k.at = fmt.Sprintf("killed %v %s", t.next, calls[len(calls)-1])
		k.killed++
	} else {
		agent.kill()
	}
	next := k.startDoomed()
	wait()
	k.settled(t.pool, t.most)
	k.ready() // it has made a tick of its own
	k.noticedNothing()
	if k.t.Failed() {
		k.t.Logf("%s, after the calls:\n%s", k.at, strings.Join(calls, "\n"))
		k.t.FailNow()
	}
	t.choose(calls, killed)
	return next
}

// deadOrDone waits until the agent was killed or the tick has ended: the pool is what it
// leads to, and the agent rests.
func (k *kills) deadOrDone(agent doomed, t *tick) {
	k.t.Helper()
	resting, made := 0, 0
	k.eventually("the agent is dead or done", func() error {
		if resting++; len(agent.calls()) != made {
			resting, made = 0, len(agent.calls())
		}
		if err := k.wrong(t.pool, t.pool); agent.Alive() && (err != nil || resting < 20) {
			return fmt.Errorf("%d calls, %v", made, err)
		}
		return nil
	})
}

// addThem starts the ADDs of all pods that wait.
func (k *kills) addThem() func() { return k.callAll("ADD", 20*time.Second) }

// delThem starts their DELs.
func (k *kills) delThem() func() { return k.callAll("DEL", 0) }

func (k *kills) callAll(command string, patience time.Duration) func() {
	k.t.Helper()
	var cmds []*exec.Cmd
	for _, id := range k.waiting {
		cmd := k.call(command, id, patience)
		cmd.Stdout = &bytes.Buffer{}
		k.must(k.node.Do(cmd.Start))
		cmds = append(cmds, cmd)
	}
	return func() {
		for i, cmd := range cmds {
			if err := cmd.Wait(); err != nil {
				k.fail("%s %s: %v: %s", command, k.waiting[i], err, cmd.Stdout)
			}
		}
	}
}
