package agent

import (
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/pkg/pool"
)

var (
	soakSteps = flag.Int("soak.steps", 100_000, "steps of the random simulation, over all seeds")
	soakSeed  = flag.Uint64("soak.seed", 0, "replay this seed alone; 0 runs seeds from 1 on")
)

// stepsPerSeed is how long one world lives.
const stepsPerSeed = 1000

// steps is how many steps the random simulations take, over all seeds. With -short, as the race detector runs them, it is a tenth: what could
// race is the same in all of them.
func steps() int {
	if testing.Short() {
		return *soakSteps / 10
	}
	return *soakSteps
}

// TestNothingIsLostOrHandedOutTwice lets random things happen to two nodes that
// share subnets: pods, faults of the cloud, restarts, kills at every effect. Then
// it lets the world be and demands that all comes right.
func TestNothingIsLostOrHandedOutTwice(t *testing.T) {
	if *soakSeed != 0 {
		soak(t, *soakSeed)
		return
	}
	for seed := uint64(1); int(seed) <= max(1, steps()/stepsPerSeed); seed++ {
		if !t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { soak(t, seed) }) {
			t.Fatalf("replay with: go test ./pkg/agent -run NothingIsLost -soak.seed %d", seed)
		}
	}
}

func soak(t *testing.T, seed uint64) {
	synctest.Test(t, func(t *testing.T) {
		s := newSoaker(t, seed, func(*testNode) {})
		for range stepsPerSeed {
			s.step()
			s.after()
		}
		s.calm()
	})
}

// soaker makes things happen.
type soaker struct {
	*world
	t     *testing.T
	r     *rand.Rand
	seed  uint64
	vain  int      // calls in half an hour of calm that may fail again and again
	log   []string // what happened last, for a failure
	steps int      // so far
	hasty bool     // who was killed starts again at once, before all is shown that it did
}

func newSoaker(t *testing.T, seed uint64, prepare func(*testNode)) *soaker {
	return newSoakerOf(t, seed, func(l eni.Limits, _ *rand.Rand) eni.Limits { return l }, prepare)
}

// newSoakerOf is newSoaker for instances whose limits are changed first.
func newSoakerOf(t *testing.T, seed uint64, change func(eni.Limits, *rand.Rand) eni.Limits, prepare func(*testNode)) *soaker {
	r := rand.New(rand.NewPCG(seed, 1))
	lag := time.Duration(r.IntN(4)) * 3 * time.Second
	w := newWorld(t, sim.Options{Seed: seed, Lag: lag, BlockV4: 30, Latency: map[string]sim.Latency{"": {Base: 20 * time.Millisecond, Jitter: 500 * time.Millisecond}, sim.ActAttach: {Base: time.Second, Jitter: 10 * time.Second}},
		CreateTime: time.Duration(r.IntN(2)) * 300 * time.Millisecond, AttachTime: time.Duration(r.IntN(3)) * 2 * time.Second, DetachTime: time.Duration(r.IntN(3)) * 2 * time.Second},
		subnet("subnet-a", "10.0.1.0/24"), subnet("subnet-b", "10.0.2.0/25"))
	if *soakSeed != 0 { // a replay tells all
		w.log, w.trace = slog.New(slog.NewTextHandler(t.Output(), nil)), t.Output()
	}
	s := &soaker{world: w, t: t, r: r, seed: seed, hasty: r.IntN(2) == 0}
	families := []eni.Family{eni.IPv4}
	if r.IntN(4) == 0 {
		families = append(families, eni.IPv6)
	}
	for i := range 2 {
		conf := testConfig(fmt.Sprintf("n%d", i+1))
		conf.Settings.Families = families
		if seed%2 == 0 { // as on a real cloud: a restarted agent may put off its first describe
			conf.Cloud.Describe = 5 * time.Minute
		}
		conf.Pool.Mode = []pool.Mode{pool.Batch, pool.Batch, pool.Burstable, pool.BestEffort}[r.IntN(4)]
		conf.Pool.Multiple, conf.Pool.ReturnENIs, conf.Pool.Partial = 1, true, r.IntN(2) == 0
		conf.Pool.PreAllocate, conf.Pool.MinAllocate, conf.Pool.MaxAboveWatermark = 4, 6, 0
		if conf.Pool.Mode == pool.BestEffort {
			conf.Pool.MaxAboveWatermark = 4
		}
		if s.hasty { // what goes and comes again does so while it is still shown
			conf.Pool.Scale.Stable, conf.Pool.Scale.Delay, conf.Pool.Scale.ReleaseInterval = 10*time.Second, 15*time.Second, 5*time.Second
		}
		if r.IntN(3) == 0 {
			conf.Cloud.CallsPerSec, conf.Cloud.CallsBurst = 1, 3
		}
		limits := eni.Limits{ENIs: 2 + r.IntN(4), V4: 4 + r.IntN(14)}
		limits.V6 = limits.V4
		limits = change(limits, r)
		m := sim.NodeSpec{Limits: limits, Subnet: "subnet-a"}
		if seed%2 == 0 && limits.V4Block.Size == 0 { // BCE has no blocks
			m.LikeBCE, m.Limits.NoPrimary = true, true
		}
		n := w.addNode(conf, m)
		prepare(n)
		s.startNode(n)
		s.sleep(time.Second)
	}
	return s
}

// subnet is a dual-stack subnet.
func subnet(id, cidr string) sim.Subnet {
	v4 := netip.MustParsePrefix(cidr)
	b := v4.Addr().As4()
	v6 := netip.PrefixFrom(netip.MustParseAddr(fmt.Sprintf("2001:db8:0:%x::", b[2])), 64)
	return sim.Subnet{ID: id, V4: v4, V6: v6}
}

func (s *soaker) note(format string, args ...any) {
	s.log = append(s.log, fmt.Sprintf("%8.1fs ", (s.now()-time.Hour).Seconds())+fmt.Sprintf(format, args...))
	s.log = s.log[max(0, len(s.log)-40):]
}

func (s *soaker) startNode(n *testNode) {
	killAt, before, after := -1, s.r.IntN(2) == 0, ""
	switch s.r.IntN(4) {
	case 0:
		killAt = 1 + s.r.IntN(60)
	case 1:
		killAt, after = 1+s.r.IntN(6), changes[s.r.IntN(len(changes))]
	}
	n.serial++
	n.startUntil(killAt, before, after)
	synctest.Wait()
	s.note("%s: agent starts, killed at effect %d after %q", n.name, killAt, after)
}

// changes are the requests that change something in the cloud.
var changes = []string{sim.ActCreate, sim.ActAttach, sim.ActModify, sim.ActAssign, sim.ActUnassign, sim.ActDetach, sim.ActDelete}

// sleep sleeps up to d, to a nanosecond that nothing else happens in. Where agents are hasty
// the next process begins while describes do not show yet what the last one did.
func (s *soaker) sleep(d time.Duration) {
	left := time.Duration(s.r.Int64N(int64(d)))
	for ; s.hasty && left > restart; left -= restart {
		time.Sleep(restart)
		synctest.Wait()
		for _, n := range s.nodes {
			if n.isDead() {
				n.kill()
				s.startNode(n)
			}
		}
	}
	time.Sleep(left)
}

// restart is how soon an agent is started again that was killed.
const restart = 700 * time.Millisecond

func (s *soaker) step() {
	n := s.nodes[s.r.IntN(len(s.nodes))]
	if n.isDead() && s.r.IntN(3) == 0 {
		n.kill()
		s.startNode(n)
	}
	switch d := s.r.IntN(100); {
	case d < 40:
		n.retry()
		s.sleep(8 * time.Second)
	case d < 60:
		for range 1 + s.r.IntN(1+s.r.IntN(25)) {
			_ = n.add()
		}
	case d < 80:
		keys := n.keys()
		s.r.Shuffle(len(keys), func(i, k int) { keys[i], keys[k] = keys[k], keys[i] })
		for _, k := range keys[:min(len(keys), s.r.IntN(1+s.r.IntN(20)))] {
			n.del(k)
		}
	case d < 84: // its sandbox dies without a DEL
		if keys := n.keys(); len(keys) > 0 {
			n.mu.Lock()
			n.pods[keys[s.r.IntN(len(keys))]].dead = true
			n.mu.Unlock()
		}
	case d < 87: // those that wait give up
		n.mu.Lock()
		clear(n.waiting)
		n.mu.Unlock()
	case d < 91:
		s.faults()
	case d < 93:
		s.sleep(5 * time.Minute)
	case d < 95:
		n.stop()
		s.startNode(n)
	case d < 97:
		n.kill()
		s.startNode(n)
	case d < 98:
		if s.r.IntN(2) == 0 {
			s.damage(n)
		} else {
			s.tear(n)
		}
	case d < 99:
		n.mu.Lock()
		n.full = !n.full && n.cacheErr == nil
		s.note("%s: no room for the agent's memory: %v", n.name, n.full)
		n.mu.Unlock()
	default:
		s.takeAway(n)
	}
}

// after lets all come to rest after a step, and checks it. What the next one sets going goes on
// at times of its own: what two nodes do at the same time comes in any order.
func (s *soaker) after() {
	s.steps++
	s.sleep(time.Millisecond)
	synctest.Wait()
	s.check()
}

// faults lets the cloud go wrong in some new way, or be well.
func (s *soaker) faults() {
	s.account.Refuse(nil)
	kind := s.r.IntN(10)
	s.note("cloud faults of kind %d", kind)
	switch kind {
	case 0:
		s.account.SetFaults()
	case 1:
		s.account.SetFaults(sim.Chance{Percent: 50, Fault: sim.Fault{Err: &sim.Error{Reason: sim.Throttled, RetryAfter: 2 * time.Second}}})
	case 2:
		s.account.SetFaults(sim.Chance{Percent: 30, Fault: sim.Fault{Answer: sim.Lost}})
	case 3:
		s.account.SetFaults(sim.Chance{Percent: 30, Fault: sim.Fault{Answer: sim.Lost, Later: 4 * time.Second}})
	case 4:
		s.account.SetFaults(sim.Chance{Action: sim.ActAssign, Percent: 40, Fault: sim.Fault{Partial: true}}, sim.Chance{Percent: 30, Fault: sim.Fault{Partial: true, Answer: sim.Lost}})
	case 5:
		lost := sim.Fault{Answer: sim.Lost}
		s.account.SetFaults(sim.Chance{Action: sim.ActCreate, Percent: 50, Fault: lost}, sim.Chance{Action: sim.ActAttach, Percent: 50, Fault: lost},
			sim.Chance{Action: sim.ActModify, Percent: 50, Fault: sim.Fault{Err: cloud.ErrForbidden}})
	case 6:
		s.account.Refuse([]error{cloud.ErrForbidden, cloud.ErrUnavailable}[s.r.IntN(2)])
	case 7:
		_ = s.account.SetUnmanaged("subnet-b", s.r.IntN(200))
	case 8: // what was begun is refused for good
		refused := sim.Fault{Err: []error{cloud.ErrForbidden, cloud.ErrLimit}[s.r.IntN(2)]}
		s.account.SetFaults(sim.Chance{Action: sim.ActAssign, Percent: 40, Fault: refused}, sim.Chance{Action: sim.ActAttach, Percent: 30, Fault: refused},
			sim.Chance{Action: sim.ActModify, Percent: 50, Fault: refused})
	case 9: // and of what was made nobody has heard
		lost, refused := sim.Fault{Answer: sim.Lost}, sim.Fault{Err: cloud.ErrForbidden}
		s.account.SetFaults(sim.Chance{Action: sim.ActCreate, Percent: 40, Fault: lost}, sim.Chance{Action: sim.ActCreate, Percent: 30, Fault: refused},
			sim.Chance{Action: sim.ActAssign, Percent: 40, Fault: refused}, sim.Chance{Action: sim.ActDetach, Percent: 30, Fault: lost})
	}
}

// damage makes a node's cache unusable, unless the memory can't be written either: nothing
// would be left that knows what went a moment ago, and describes may show it still.
func (s *soaker) damage(n *testNode) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.full {
		return
	}
	s.note("%s: cache is damaged", n.name)
	n.cacheErr = nodecache.ErrDamaged
	n.wake()
}

// tear damages the record of one address of a node's cache: the others can be read.
func (s *soaker) tear(n *testNode) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cacheErr != nil || len(n.cached.Addresses) == 0 || n.full {
		return
	}
	i := s.r.IntN(len(n.cached.Addresses))
	s.note("%s: the record of %s (%s) is torn", n.name, n.cached.Addresses[i].Addr, n.cached.Addresses[i].State)
	n.tear(i)
}

// takeAway takes an address from a node behind its back. If a pod has it, that is
// nobody's fault.
func (s *soaker) takeAway(n *testNode) {
	nics := n.attached()
	nic := nics[s.r.IntN(len(nics))]
	if len(nic.Addresses) == 0 {
		return
	}
	addr := nic.Addresses[s.r.IntN(len(nic.Addresses))]
	s.note("%s: %s is taken away", n.name, addr)
	if err := s.account.TakeAway(addr); err != nil {
		s.t.Fatal(err)
	}
	left := map[netip.Addr]bool{}
	for _, nic := range n.attached() {
		for _, a := range nic.Addresses {
			left[a] = true
		}
	}
	for _, a := range nic.Addresses { // a block goes as a whole
		s.taken[a] = s.taken[a] || !left[a]
	}
}

func (s *soaker) check() {
	if err := s.world.check(); err != nil {
		s.fail("%v", err)
	}
	if s.t.Failed() {
		s.fail("see above")
	}
}

func (s *soaker) fail(format string, args ...any) {
	s.t.Helper()
	for _, n := range s.nodes {
		n.kill()
	}
	for _, line := range s.log {
		s.t.Log(line)
	}
	s.t.Fatalf("seed %d, step %d: %s", s.seed, s.steps, fmt.Sprintf(format, args...))
}

// calm ends all faults, gives the agents time, and demands that everything is as
// it should be and that they do nothing more.
func (s *soaker) calm() {
	s.account.Refuse(nil)
	s.account.SetFaults()
	_ = s.account.SetUnmanaged("subnet-b", 0)
	for _, n := range s.nodes {
		n.kill()
		n.mu.Lock()
		n.full, n.broken = false, nil
		clear(n.waiting)
		for k, p := range n.pods {
			if p.dead || slices.ContainsFunc(p.addrs, func(a netip.Addr) bool { return s.taken[a] }) {
				delete(n.pods, k)
			}
		}
		n.mu.Unlock()
		n.serial++
		n.start(-1, false)
		synctest.Wait()
		s.sleep(time.Second)
	}
	s.note("calm")
	s.settle(time.Hour)
	calls, there := s.mutations(), s.account.Snapshot().Owners
	s.settle(30 * time.Minute)
	if now := s.mutations(); now-calls > s.vain {
		s.fail("%d more calls that change something after an hour of calm", now-calls)
	}
	if now := s.account.Snapshot().Owners; !maps.Equal(there, now) {
		s.fail("after an hour of calm %d addresses have become %d", len(there), len(now))
	}
	for _, n := range s.nodes {
		if err := n.right(); err != nil {
			s.fail("%s: %v", n.name, err)
		}
	}
	for _, n := range s.nodes {
		n.stop()
	}
}

func (s *soaker) settle(d time.Duration) {
	for range 10 {
		time.Sleep(d / 10)
		synctest.Wait()
		s.check()
	}
}

func (s *soaker) mutations() int {
	sum := 0
	for action, n := range s.account.Calls() {
		if !strings.HasPrefix(action, "Describe") {
			sum += n
		}
	}
	return sum
}

// right returns an error unless cache and cloud agree, nothing is leaked, and the
// pool is as large as it should be.
func (n *testNode) right() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cacheErr != nil {
		return fmt.Errorf("no cache after an hour of calm: %v", n.cacheErr)
	}
	inCloud, inCache := map[netip.Addr]bool{}, map[netip.Addr]bool{}
	for _, nic := range n.attached() {
		if nic.Index < 0 {
			return fmt.Errorf("ENI %s is leaked", nic.ID)
		}
		for _, a := range nic.Addresses {
			inCloud[a] = true
		}
	}
	for _, line := range n.cached.Addresses {
		inCache[line.Addr] = true
		if !inCloud[line.Addr] && !line.Lost {
			return fmt.Errorf("%s is in the cache as %s and not in the cloud", line.Addr, line.State)
		}
		if line.State == eni.Releasing {
			return fmt.Errorf("%s is still releasing", line.Addr)
		}
		if line.State == eni.Used && n.pods[line.Owner.Key] == nil {
			return fmt.Errorf("%s is still used by a pod that is gone", line.Addr)
		}
	}
	for a := range inCloud {
		if !inCache[a] {
			return fmt.Errorf("%s is in the cloud and not in the cache", a)
		}
	}
	for _, pod := range n.pods {
		if len(n.cached.OwnedBy(pod.owner.Key)) == 0 {
			return fmt.Errorf("the cache lost %s", pod.owner.Container)
		}
	}
	for addr := range n.life.agent.mem.Begun {
		if i := slices.IndexFunc(n.cached.Addresses, func(line eni.Address) bool { return line.Addr == addr }); i < 0 || n.cached.Addresses[i].State != eni.Releasing {
			return fmt.Errorf("the memory has a release of %s, which is not on its way back", addr)
		}
	}
	if left := n.life.agent.mem.Leaving; len(left) > 0 {
		return fmt.Errorf("the memory has deletions: %v", left)
	}
	st := n.told
	owned := countDemand(n.cached, n.w.now(), 0).owned
	if len(st.TargetCauses) == 0 && owned < st.Target {
		return fmt.Errorf("owns %d slots, target %d: %+v", owned, st.Target, st)
	}
	return nil
}
