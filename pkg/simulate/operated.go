package simulate

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/pool"
	"github.com/enipool/enipool/pkg/quota"
)

// operated is a fleet being served.
type operated struct {
	clock *clock
	meter *meter
	world World // in which the rates are the operator's
	tolls *tolls
	rng   *rand.Rand
	fleet Fleet
	conf  pool.Config
	slots int // that a node asks for
	warm  int // addresses that it has from the start
	plan  nodePlan

	hosted hosting // the fleet's pods are those besides

	budget *quota.Budget
	queue  *quota.Queue
	nodes  []*fleetNode
	byName map[string]*fleetNode
	steps  map[string][]pool.Step // plans by what a node has: nodes of a fleet have much the same
	wakeAt time.Duration          // when the next token is asked for

	passed   map[string]int // requests by action
	atEnd    map[string]int // those when all pods had addresses
	servedAt time.Duration  // when that was
}

// fleetNode is a node with what waits and runs for it.
type fleetNode struct {
	name     string
	enis     []fleetENI
	own      hostENIs
	making   int // slots of an ENI on its way
	short    time.Duration
	fresh    []quota.Request
	begun    map[string]*fleetJob // that wait for the token of their next request, by its name
	requests []quota.Request      // of those
	jobs     int                  // so far

	running int // of them
}

// fleetENI is an ENI by how many addresses it has, and how many are on their way.
type fleetENI struct{ count, coming int }

// fleetStep is a call that a node needs.
type fleetStep struct {
	pool.Step
	method string
	own    bool // for pods of topologies
	moved  bool // that came of another node
}

// call is what it costs.
func (s fleetStep) call() part { return part{s.method, s.Count} }

// fleetJob is a call.
type fleetJob struct {
	node    *fleetNode
	name    string
	step    fleetStep
	at      int // the ENI, -1 for a new one
	request quota.Request
	under   bool   // its request is under way
	token   string // that was granted and not used yet
	course
	next   int           // request
	jitter time.Duration // that it takes more
}

func newOperated(w World, f Fleet, s Setting, length time.Duration) *operated {
	c := &clock{}
	if f.Topologies.Places > 0 {
		s.Config.Pool.TopologyPlaces = 0 // the fleet's are kept, and none twice
	}
	o := &operated{clock: c, meter: newMeter(c, length), world: w.share(f.Share), rng: rand.New(rand.NewPCG(w.Seed, 3)), fleet: f,
		conf: order.PoolFor(s.Config.Pool, w.MaxPods, 0), hosted: newHosting(f.Topologies, w.Limits),
		byName: map[string]*fleetNode{}, steps: map[string][]pool.Step{}, passed: map[string]int{}}
	o.tolls = newTolls(o.world)
	o.fleet.Pods -= f.Topologies.Pods
	families := []eni.Family{eni.IPv4}
	most := s.Config.Pool.Most(w.Limits, families, w.MaxPods)
	o.slots = s.Config.Pool.Sizing(w.Limits, families).Settled(o.fleet.Pods, 1, min(most, max(0, s.Config.Pool.Most(w.Limits, families, 0)-o.hosted.slots(w.Limits))))
	o.warm = o.warmPool()
	o.plan = o.firstPlan()
	o.meter.used = f.Nodes * min(o.warm, o.fleet.Pods)
	return o
}

// begin makes the nodes, and lets the operator begin to look.
func (o *operated) begin() {
	limits := map[string]quota.Limit{}
	for _, action := range o.world.sortedActions() {
		limits[action] = o.world.limit(action)
	}
	o.budget = quota.NewBudget(limits, quota.Limit{Burst: 1, PerSecond: 1}, 0)
	o.queue = quota.NewQueue(o.budget)
	m, f := o.meter, o.fleet
	for i := range f.Nodes {
		n := &fleetNode{name: nodeName(i), enis: []fleetENI{{count: o.warm}}, begun: map[string]*fleetJob{}}
		o.nodes, o.byName[n.name] = append(o.nodes, n), n
		if f.Topologies.Pods > 0 {
			o.addGuests(n, &guests{count: f.Topologies.Pods})
		}
	}
	all := f.Nodes * (f.Pods + f.Topologies.Pods)
	m.pods, m.demand, m.target = all, all, f.Nodes*o.slots
	m.owned, m.enis, m.waiting = f.Nodes*o.warm, f.Nodes, m.demand-m.used
	m.bin.Waiting = m.waiting
	for range m.used {
		m.noteWait(0)
	}
	if m.waiting == 0 {
		o.atEnd, o.servedAt = map[string]int{}, time.Nanosecond
	}
	if !f.Cold {
		o.settleAll()
		return
	}
	var looks []string
	for _, look := range []struct {
		part  string
		times int
	}{{"Page", o.pages()}, {"Shapes", 1}, {"Subnets", 1}} {
		if list := o.world.Driver.ActionsOf(look.part); len(list) > 0 {
			looks = append(looks, slices.Repeat(list[:1], look.times)...)
		}
	}
	o.look(looks)
}

// look makes requests that describe, one after the other, and then decides for all nodes.
func (o *operated) look(actions []string) {
	if len(actions) == 0 {
		o.settleAll()
		return
	}
	if !o.budget.Take(actions[0], o.clock.now) {
		o.clock.planAt(o.budget.Next(actions[0], o.clock.now), func() { o.look(actions) })
		return
	}
	o.meter.noteCall(&o.meter.calls.Describe, true)
	o.passed[actions[0]]++
	o.clock.planAt(o.clock.now+o.takes(interfaces), func() { o.look(actions[1:]) })
}

// takes is how long a call of a method takes, where nothing is known of its parts.
func (o *operated) takes(method string) time.Duration {
	return o.world.leastTime(method) + o.jitterOf(method)
}

func (o *operated) jitterOf(method string) time.Duration {
	l, own := o.world.Latency[method]
	if !own {
		l = o.world.Latency[""]
	}
	if l.Jitter <= 0 {
		return 0
	}
	return time.Duration(o.rng.Int64N(int64(l.Jitter) + 1))
}

func (o *operated) settleAll() {
	for _, n := range o.nodes {
		o.settle(n)
	}
	o.grantAll()
}

// mostJobs is how many calls of a node are under way at most, as for package operator.
const mostJobs = 2

// have is how many addresses a node has.
func (n *fleetNode) have() (sum int) {
	for _, e := range n.enis {
		sum += e.count
	}
	return sum
}

// settle tells the queue what a node waits for: one call an ENI, and one new ENI at a time, as the operator has it.
func (o *operated) settle(n *fleetNode) {
	class, since := quota.Short, n.short
	switch have := n.have(); {
	case have < o.fleet.Pods:
		class, since = quota.Starving, 0
	case have == 0:
		class = quota.Empty
	}
	n.fresh = n.fresh[:0]
	making, steps := n.making > 0 || n.own.making, o.stepsFor(n)
	if n.running >= mostJobs {
		steps = nil
	}
	for _, s := range steps {
		if s.method == create {
			if making {
				continue
			}
			making = true
		}
		w := quota.Request{Node: n.name, Action: o.actionOf(s), Object: n.object(s), Class: class, Since: since}
		if s.own { // the operator decides about them all together, and counts from then
			w.Class, w.Since = quota.Starving, o.clock.now
		}
		n.fresh = append(n.fresh, w)
	}
	o.tell(n)
}

// stepsFor returns all that the operator does for a node now.
func (o *operated) stepsFor(n *fleetNode) []fleetStep {
	list := o.ownSteps(n)
	for _, s := range o.stepsOf(n) {
		list = append(list, fleetStep{Step: s, method: methodOf(s)})
	}
	return list
}

// object names the ENI that a step is about among those of all nodes.
func (n *fleetNode) object(s fleetStep) string {
	switch {
	case s.method == create:
		return ""
	case s.own:
		return n.name + " " + s.ENI + strconv.Itoa(s.Index)
	}
	return n.name + " " + s.ENI
}

func methodOf(s pool.Step) string {
	if s.Do == pool.Create {
		return create
	}
	return assign
}

// actionOf returns what the first request of a call that changes something counts as.
func (o *operated) actionOf(s fleetStep) string {
	describing := o.tolls.w.describing()
	for _, r := range o.tolls.courseOf(s.call()).requests {
		if !describing[r.action] {
			return r.action
		}
	}
	return s.method
}

func (o *operated) tell(n *fleetNode) {
	o.queue.Set(n.name, append(slices.Clone(n.fresh), n.requests...))
}

// stepsOf returns what the operator does so that the node gets what it asks for: the operator's own function, by what the node has.
func (o *operated) stepsOf(n *fleetNode) []pool.Step {
	key := strconv.Itoa(n.making) + "/" + strconv.Itoa(n.own.attached())
	for _, e := range n.enis {
		key += " " + strconv.Itoa(e.count) + "+" + strconv.Itoa(e.coming)
	}
	steps, known := o.steps[key]
	if !known {
		steps = o.decide(n)
		o.steps[key] = steps
	}
	return steps
}

func (o *operated) decide(n *fleetNode) []pool.Step {
	spec := order.Spec{Mode: order.Operator, Families: []eni.Family{eni.IPv4}, Slots: o.slots, Pool: o.conf, Waiting: max(0, o.fleet.Pods-n.have())}
	status, facts := order.Status{Mode: order.Operator, Limits: o.world.Limits}, order.Facts{Calls: map[string]order.ENICall{}}
	home := o.world.Subnets[0].ID
	facts.Subnets = append(facts.Subnets, pool.Subnet{ID: home, Free: 1 << 24, New: true})
	for i, e := range n.enis {
		one := order.ENI{ID: "eni-" + strconv.Itoa(i), Index: i, Subnet: home, State: order.Attached, Addresses: madeUp(o.world.Limits, i, e.count)}
		status.ENIs = append(status.ENIs, one)
		call := order.ENICall{Kept: i == 0, Busy: e.coming > 0}
		if e.coming > 0 {
			call.Coming = []pool.Coming{{Family: eni.IPv4, Count: e.coming}}
		}
		facts.Calls[one.ID] = call
	}
	facts.Unmanaged = n.own.attached() // they only take room
	if n.making > 0 {
		facts.Pending = append(facts.Pending, pool.Pending{Subnet: home, Slots: n.making})
	}
	return slices.DeleteFunc(order.Plan(spec, status, facts), func(s pool.Step) bool {
		return s.Do == pool.Assign && n.enis[indexOf(s.ENI)].coming > 0
	})
}

// indexOf is the number of an ENI by its ID.
func indexOf(id string) int {
	i, _ := strconv.Atoi(id[len("eni-"):])
	return i
}

// madeUp returns addresses of an ENI, or prefixes where those are delegated. Only their number counts.
func madeUp(l eni.Limits, index, count int) (list []netip.Prefix) {
	bits, each := 32, max(1, l.Block(eni.IPv4).Size)
	if each > 1 {
		bits = l.Block(eni.IPv4).Bits
	}
	for at := 0; at < count; at += each {
		n := index<<16 | at/each<<(32-bits)
		list = append(list, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)}), bits))
	}
	return list
}
