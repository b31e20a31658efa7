package e2e

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/isolate"
	"github.com/enipool/enipool/pkg/nettest"
	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/test/history"
)

var (
	historyCalls = flag.Int("history.calls", 2*callsPerHistory, "calls whose histories are checked, over all seeds")
	historySeed  = flag.Uint64("history.seed", 0, "draw what this seed draws, alone; 0 runs seeds from 1 on")
)

const (
	// callsPerHistory is how long one site lives.
	callsPerHistory = 600
	// processes run at the same time on a node.
	processes = 16
	// historyCoolDown is long enough for many calls to fall into it, and short enough for
	// addresses to be used again and again.
	historyCoolDown = 250 * time.Millisecond
)

// 16 processes add and delete pods, collect garbage and look, for more pods than there are
// addresses, while some of them and the agent are killed at random moments. Whatever the
// order was, no address had two owners or too short a rest, and no pod lost its own.
func TestTheHistoryOfManyProcessesHasARightOrder(t *testing.T) {
	t.Parallel()
	if *historySeed != 0 {
		runHistory(t, *historySeed)
		return
	}
	for seed := uint64(1); int(seed) <= max(1, *historyCalls/callsPerHistory); seed++ {
		if !t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { runHistory(t, seed) }) {
			t.Fatalf("the same choices, though not the same moments: go test ./test/e2e -run TheHistory -history.seed %d", seed)
		}
	}
}

// chronicle is a history that is being made.
type chronicle struct {
	s    *site
	seed uint64
	pods []*chronicled

	left atomic.Int64  // calls still to make
	beat chan struct{} // one for each call that ends, for who kills the agent

	mu     sync.Mutex
	calls  []history.Call
	took   map[history.Kind]time.Duration // the longest of the calls that nobody killed
	told   map[string]int                 // how often calls ended how
	broken []error                        // of the test itself, or of a node cache that can't be read
}

// chronicled is a pod. As a runtime does, who calls the plugin for it holds its lock.
type chronicled struct {
	sync.Mutex
	id   string
	ns   isolate.Namespace
	last history.Call
	gone bool            // it has no sandbox
	died []time.Duration // when sandboxes began to go whose addresses may not be free yet
}

func runHistory(t *testing.T, seed uint64) {
	began := time.Now()
	// Where addresses are scarce ADDs mostly stand in the queue, one after the other. Where they are
	// not several take one at the same time.
	perENI, free := 12, 10
	if seed%2 == 0 {
		perENI, free = 7, 4
	}
	// Without a cool-down an address is another pod's while a GC that saw the first is still at work.
	coolDown := historyCoolDown
	if seed%3 == 0 {
		coolDown = 0
	}
	s := newSite(t, plan{name: fmt.Sprintf("history-%d", seed), limits: eni.Limits{ENIs: 3, V4: perENI, V6: perENI}})
	// The pool grows and shrinks while that goes on, in this mode by single addresses.
	s.configure(fmt.Sprintf("coolDown: %s", coolDown), "pool.mode: besteffort", fmt.Sprintf("pool.preAllocate: %d", free),
		"pool.maxAboveWatermark: 1", "resync: 200ms")
	c := &chronicle{s: s, seed: seed, beat: make(chan struct{}), took: map[history.Kind]time.Duration{}, told: map[string]int{}}
	c.left.Store(callsPerHistory)
	c.makePods(2 * processes)
	s.start()
	s.ready()
	done := c.startWorkers()
	kills := c.killAgents(done)
	c.look(0)
	c.endDeaths()
	ran := time.Since(began)
	if err := history.Check(c.calls, coolDown); err != nil {
		s.fail("seed %d, the whole history is in %s: %v", seed, c.write(), err)
	}
	for _, err := range c.broken {
		s.fail("seed %d: %v", seed, err)
	}
	c.podsWork()
	t.Logf("seed %d: %d calls of %d processes and %d kills of the agent in %s, checked in %s: %v",
		seed, len(c.calls), processes, kills, ran.Round(time.Millisecond), (time.Since(began) - ran).Round(time.Millisecond), c.told)
}

func (c *chronicle) makePods(count int) {
	c.s.t.Helper()
	for i := range count {
		p := &chronicled{id: fmt.Sprintf("p%d", i), gone: true}
		p.ns = isolate.Namespace{Name: c.s.node.Name + "-" + p.id}
		c.s.must(p.makeSandbox())
		c.s.pods[p.id] = nettest.Netns{Namespace: p.ns, Path: p.ns.Path()}
		c.pods = append(c.pods, p)
	}
}

// makeSandbox makes the pod's sandbox if it has none.
func (p *chronicled) makeSandbox() error {
	if !p.gone {
		return nil
	}
	p.gone = false
	return p.ns.Create()
}

// endSandbox ends it as a crash does: there was no DEL.
func (p *chronicled) endSandbox() error {
	p.died = append(p.died, nodecache.SinceBoot())
	p.gone, p.last = true, history.Call{Kind: history.Death}
	return p.ns.Remove()
}

// startWorkers lets the processes begin. The channel is closed when all calls are made.
func (c *chronicle) startWorkers() (done <-chan struct{}) {
	var all sync.WaitGroup
	for i := range processes {
		w := &worker{c, i + 1, rand.New(rand.NewPCG(c.seed, uint64(i)))}
		all.Go(func() {
			for c.left.Add(-1) >= 0 {
				w.step()
				select {
				case c.beat <- struct{}{}:
				default: // the agent is just being started
				}
			}
		})
	}
	ended := make(chan struct{})
	go func() { all.Wait(); close(ended) }()
	return ended
}

// killAgents kills the agent after some calls and starts another one after some more, until
// all calls are made. In the end one runs.
func (c *chronicle) killAgents(done <-chan struct{}) (kills int) {
	c.s.t.Helper()
	random := rand.New(rand.NewPCG(c.seed, processes))
	for {
		if !c.pass(10+random.IntN(90), done) {
			return kills
		}
		select {
		case <-c.s.agent.Ended:
			c.s.fail("seed %d: the agent has ended by itself", c.seed)
		default:
		}
		c.s.agent.kill()
		kills++
		c.pass(random.IntN(20), done)
		c.s.start()
	}
}

// pass lets so many calls end, and tells whether they did before all were made.
func (c *chronicle) pass(calls int, done <-chan struct{}) bool {
	for range calls {
		select {
		case <-c.beat:
		case <-done:
			return false
		}
	}
	return true
}

// mayTake returns how long a call of the kind has been seen to take.
func (c *chronicle) mayTake(kind history.Kind) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.took[kind]
}

func (c *chronicle) record(call history.Call, how string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, call)
	if call.Outcome == history.Done {
		c.took[call.Kind] = max(c.took[call.Kind], call.End-call.Begin)
	}
	c.told[how]++
}

func (c *chronicle) isBroken(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken = append(c.broken, err)
}

// look notes who has which address.
func (c *chronicle) look(process int) {
	call := history.Call{Process: process, Kind: history.Look, Owners: map[netip.Addr]string{}, Begin: nodecache.SinceBoot()}
	cached, err := c.s.view()
	call.End = nodecache.SinceBoot()
	if err == nil && len(cached.Damaged) > 0 {
		err = fmt.Errorf("damaged: %v", cached.Damaged)
	}
	if err != nil {
		c.isBroken(fmt.Errorf("look into the node cache: %w", err))
		return
	}
	for _, a := range cached.Used() {
		call.Owners[a.Addr] = a.Owner.Container
	}
	c.record(call, "look")
}

// endDeaths notes the sandboxes that went and whose addresses no call has freed since, and
// makes all that are missing.
func (c *chronicle) endDeaths() {
	c.s.t.Helper()
	for _, p := range c.pods {
		c.endDeath(p, nodecache.SinceBoot())
		c.s.must(p.makeSandbox())
	}
}

// endDeath notes that sandboxes of the pod went, for which its address was freed until then or
// not at all.
func (c *chronicle) endDeath(p *chronicled, end time.Duration) {
	for _, begin := range p.died {
		c.record(history.Call{Kind: history.Death, Pods: []string{p.id}, Begin: begin, End: end}, "death")
	}
	p.died = nil
}

// podsWork wants each pod whose ADD came last to have the address that it was given, and to
// reach the world from it.
func (c *chronicle) podsWork() {
	c.s.t.Helper()
	var ids []string
	for _, p := range c.pods {
		if last := p.last; last.Kind == history.Add && last.Outcome == history.Done {
			ids = append(ids, p.id)
			if addr := c.s.address(p.id, false); addr != last.Addr.String() {
				c.s.fail("seed %d: %s has %s, and its ADD said %s", c.seed, p.id, addr, last.Addr)
			}
		}
	}
	c.s.reach(internet4, ids...)
}

// pluginLog is where the plugin's processes write what they do.
func (c *chronicle) pluginLog() string { return filepath.Join(c.s.dir, "plugin.log") }

// write leaves the history, and behind it what the plugin said, in a file and returns its path.
func (c *chronicle) write() string {
	var text strings.Builder
	for _, call := range c.calls {
		fmt.Fprintln(&text, call)
	}
	log, err := os.ReadFile(c.pluginLog())
	c.s.must(err)
	text.Write(log)
	file := filepath.Join("..", "..", ".build", "failed", fmt.Sprintf("history-%d.txt", c.seed))
	c.s.must(os.MkdirAll(filepath.Dir(file), 0o755))
	c.s.must(os.WriteFile(file, []byte(text.String()), 0o644))
	return file
}
