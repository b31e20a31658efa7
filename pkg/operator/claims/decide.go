package claims

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/topology"
)

// decision is one in the making.
type decision struct {
	*Known
	now     time.Time
	settled bool // everything was described by this leader
	steps   Steps
	orders  map[string]*Orders
	leaves  map[netip.Addr]bool // nobody is to get it any more where it is
	room    map[place]int       // what the orders take of ENIs
	open    map[netip.Addr]bool // of all nodes
	waits   map[Name]Waiting
	alike   map[alike]topology.Wait // what became of the first pod of its kind
}

// place is where on a node an address lies.
type place struct {
	eni    string
	family eni.Family
}

// Decide says what follows. settled: a describe of everything has begun and ended since this leader may go by one.
func (k *Known) Decide(now time.Time, settled bool) Steps {
	d := &decision{Known: k, now: now, settled: settled, orders: map[string]*Orders{}, leaves: map[netip.Addr]bool{}, room: map[place]int{},
		open: map[netip.Addr]bool{}, waits: map[Name]Waiting{}, alike: map[alike]topology.Wait{}}
	d.steps.Nodes = map[string]Orders{}
	if !k.complete || k.lists == 0 {
		return d.steps
	}
	for _, n := range k.nodes { // few have any
		for at := range n.Open {
			d.open[at] = true
		}
	}
	for _, at := range slices.SortedFunc(maps.Keys(k.claims), netip.Addr.Compare) {
		d.stepClaim(k.claims[at])
	}
	d.stepElastic()
	d.choose()
	d.reserve()
	for name := range d.nodes {
		d.steps.Nodes[name] = Orders{} // what is known of it was decided by
	}
	for name, o := range d.orders {
		d.steps.Nodes[name] = *o
	}
	for _, w := range d.waits {
		d.steps.Waits = append(d.steps.Waits, w)
	}
	return d.steps
}

// of returns a node's orders.
func (d *decision) of(node string) *Orders {
	if d.orders[node] == nil {
		d.orders[node] = &Orders{Assign: map[string][]netip.Addr{}, Take: map[string][]netip.Addr{}}
	}
	return d.orders[node]
}

// wakeAt has it decided again then.
func (d *decision) wakeAt(at time.Time) {
	if at.After(d.now) && (d.steps.Next.IsZero() || at.Before(d.steps.Next)) {
		d.steps.Next = at
	}
}

// podFacts returns what is known of the pod of a name. One that was never seen is not absent before two lists lack it.
func (k *Known) podFacts(of Name) (f topology.PodFacts) {
	p, is := k.pods[of]
	switch {
	case is:
		return topology.PodFacts{Presence: topology.Present, UID: p.UID, Node: p.Node, Topology: p.Topology, Ended: p.Ended}
	case k.lists >= 2:
		f.Presence = topology.Absent
	}
	return f
}

// attachment returns where an address is.
func (d *decision) attachment(at netip.Addr, target string) (a topology.Attachment) {
	if d.open[at] {
		return a
	}
	switch on := d.where[at]; len(on) {
	case 0:
		// A call of an earlier leader may still take it from an ENI of the node that says so, and from no other.
		a.Known = d.settled && !d.nodes[target].Quarantined[at]
	case 1:
		n := d.nodes[on[0]]
		a = topology.Attachment{Known: n.Told && !n.Quarantined[at], Node: n.Name, NodeGone: n.Gone, Asked: d.asked[at]}
		// Until its agent says so a pod that comes back may have it: the node's plugin gives it what the node cache has, whatever is accepted by then.
		a.Released = n.Releasing[at] && n.Published[at]
		for _, e := range n.ENIs {
			if slices.Contains(e.Addresses, at) {
				a.ENI = e.ID
			}
		}
	}
	return a
}

// mostMessage is how many bytes of a message the schema takes.
const mostMessage = 256

// stepClaim decides about one claim.
func (d *decision) stepClaim(c held) {
	of := Name{c.Namespace, c.Pod}
	f := topology.Facts{Deleted: c.object.DeletionTimestamp != nil, Pod: d.podFacts(of), StatefulSet: d.setFacts(c.Claim), Refused: d.refused[c.Addr].at, Refusal: d.refused[c.Addr].why}
	f.At = d.attachment(c.Addr, f.Pod.Node)
	d.forgetAttached(c.Addr, f.At)
	if n, is := d.nodes[f.Pod.Node]; is && c.Phase == topology.OnItsWay && f.At.Known && f.At.Node != n.Name {
		f.Target = d.targetOn(n, c.Claim)
	}
	step := topology.Next(c.Claim, f, d.now)
	if step.Claim == c.Claim && c.Phase == topology.OnItsWay && f.At.Known && f.At.ENI != "" && f.At.Node != f.Pod.Node && f.Target == "" {
		// It stays where it is until it can be where it is to go: nobody else gets it there meanwhile, not even an ENI that is made for it.
		step = topology.Step{Claim: c.Claim, Wait: topology.Wait{Cause: topology.NoSlot, Message: fmt.Sprintf("no ENI of %s can carry %s", c.To, c.Addr)}}
	}
	if c.Keep == topology.Fixed && step.Claim.Phase == topology.Free {
		d.steps.Sets = true
	}
	if end, ends := step.Claim.EndsAt(); ends {
		d.wakeAt(end)
	}
	d.wakeAt(step.Wait.Until)
	message := step.Wait.Message
	if len(message) > mostMessage { // else it would differ from what is written for ever
		message = strings.ToValidUTF8(message[:mostMessage], "")
	}
	if f.Pod.Presence == topology.Unknown || !f.At.Known {
		message = c.object.Status.Message // nothing new is known
	}
	if step.Claim != c.Claim || message != c.object.Status.Message {
		d.steps.Writes = append(d.steps.Writes, Write{c.Addr, step.Claim.Status, message})
	}
	if step.Claim == c.Claim {
		d.act(c.Claim, f, step)
	}
	if n := d.nodes[f.At.Node]; f.At.ENI != "" && n.Releasing[c.Addr] {
		d.leaves[c.Addr] = true
		if o := d.of(n.Name); n.Published[c.Addr] && f.At.Known && !slices.Contains(o.Take[f.At.ENI], c.Addr) {
			o.Take[f.At.ENI] = append(o.Take[f.At.ENI], c.Addr) // whatever comes next: a pod gets it after that
		}
	}
	if p, is := d.pods[of]; is && step.Wait.Cause != topology.None && f.Pod.UID == c.PodUID {
		if step.Wait.Cause != topology.NoSlot || d.of(p.Node).Make.Subnet == "" { // one that is being made is no news
			d.waits[p.Name] = Waiting{p, step.Wait}
		}
	}
}

// forgetAttached drops what was remembered of an address for as long as it was somewhere, or nowhere.
func (d *decision) forgetAttached(at netip.Addr, a topology.Attachment) {
	if a.Known && a.ENI != "" {
		delete(d.refused, at)
	}
	if a.Known && a.ENI == "" {
		delete(d.asked, at)
		delete(d.wanted, at)
	}
}

// act has a step's action done.
func (d *decision) act(c topology.Claim, f topology.Facts, s topology.Step) {
	switch s.Action {
	case topology.Withdraw:
		// An agent that has never known that it was kept would take for general what its status no longer keeps: so it is accepted at once, and
		// nobody new gets it. The agent's time counts from when the node's status says so.
		if o := d.of(f.At.Node); !d.nodes[f.At.Node].Releasing[c.Addr] {
			d.leaves[c.Addr] = true
			o.Seize = append(o.Seize, c.Addr)
			return
		}
		d.asked[c.Addr] = d.now
		d.wakeAt(d.now.Add(topology.MoveGrace))
	case topology.Unassign:
		d.take(c, f)
	case topology.Assign:
		if n := d.nodes[f.Pod.Node]; n.Serves {
			o := d.of(n.Name)
			o.Assign[f.Target] = append(o.Assign[f.Target], c.Addr)
		}
	case topology.Delete:
		d.steps.Deletes = append(d.steps.Deletes, c.Addr)
	case topology.Forget:
		d.steps.Forgets = append(d.steps.Forgets, c.Addr)
		d.freed[c.Addr] = d.now
	}
}

// take has an address taken that is accepted. Without its agent's word a read has to tell first which pod of the name there is.
func (d *decision) take(claim topology.Claim, facts topology.Facts) {
	orders, n := d.of(facts.At.Node), d.nodes[facts.At.Node]
	d.leaves[claim.Addr] = true
	switch {
	case !n.Releasing[claim.Addr]:
		orders.Seize = append(orders.Seize, claim.Addr)
		return
	case n.Published[claim.Addr]:
		orders.Take[facts.At.ENI] = append(orders.Take[facts.At.ENI], claim.Addr)
		return
	}
	since, before := d.wanted[claim.Addr]
	if !before {
		since = d.now
		d.wanted[claim.Addr] = since
	}
	of := Name{claim.Namespace, claim.Pod}
	if read, is := d.read[of]; !is || read.Before(since) {
		d.steps.Reads = append(d.steps.Reads, of)
		return
	}
	orders.Take[facts.At.ENI] = append(orders.Take[facts.At.ENI], claim.Addr)
}

func isReserved(n Node, at netip.Addr) bool {
	return slices.ContainsFunc(n.Reserved, func(r order.Reserved) bool { return r.Addr == at })
}

// targetOn returns the ENI of a node that is to carry an address, and takes its place there; "" if none can now. Then one is made if
// there may be one more.
func (d *decision) targetOn(n Node, c topology.Claim) string {
	f := c.Family()
	for _, e := range n.ENIs {
		if at := (place{e.ID, f}); e.Subnet == c.Subnet && e.Room[f] > d.room[at] {
			d.room[at]++
			return e.ID
		}
	}
	d.makeOn(n, c)
	return ""
}

// makeOn has an ENI made for an address, if there may be one more.
func (d *decision) makeOn(n Node, c topology.Claim) {
	sameZone := slices.ContainsFunc(d.subnets, func(s topology.Subnet) bool { return s.ID == c.Subnet && s.Zone == n.Zone })
	if o := d.of(n.Name); n.MayMake && n.Serves && sameZone && o.Make.Subnet == "" {
		o.Make = Make{c.Subnet, c.Topology, n.Created}
	}
}

// nodeFor returns a node as topologies go by it.
func (d *decision) nodeFor(n Node, f eni.Family) topology.Node {
	is := topology.Node{Name: n.Name, Zone: n.Zone}
	for _, e := range n.ENIs {
		if e.Room[f] > d.room[place{e.ID, f}] {
			is.Subnets = append(is.Subnets, e.Subnet)
		}
	}
	return is
}

// reserve says what each node's status keeps for whom.
func (d *decision) reserve() {
	for at, c := range d.claims {
		on := d.where[at]
		if c.Phase == topology.OnItsWay && d.nodes[c.To].Open[at] && len(on) == 0 { // the call is under way
			d.keep(c.To, order.Reserved{Addr: at, Topology: c.Topology, Namespace: c.Namespace, Pod: c.Pod, UID: c.PodUID})
		}
		if d.leaves[at] {
			continue
		}
		for _, node := range on {
			r := order.Reserved{Addr: at, Topology: c.Topology, Namespace: c.Namespace, Pod: c.Pod}
			if r.UID = c.PodUID; !c.Serves() && c.Phase != topology.OnItsWay || len(on) > 1 {
				r.UID = ""
			}
			d.keep(node, r)
		}
	}
	for name, n := range d.nodes {
		if len(n.Reserved) > 0 {
			d.of(name) // what is not kept any more goes
		}
	}
	for name, o := range d.orders {
		for _, addrs := range o.Assign { // before the call: whatever shows it first, it is nobody else's
			for _, at := range addrs {
				if c, is := d.claims[at]; is {
					d.keep(name, order.Reserved{Addr: at, Topology: c.Topology, Namespace: c.Namespace, Pod: c.Pod, UID: c.PodUID})
				}
			}
		}
	}
	for _, o := range d.orders {
		slices.SortFunc(o.Reserved, func(a, b order.Reserved) int { return a.Addr.Compare(b.Addr) })
		o.Reserved = slices.CompactFunc(o.Reserved, func(a, b order.Reserved) bool { return a.Addr == b.Addr })
		for _, addrs := range o.Assign {
			slices.SortFunc(addrs, netip.Addr.Compare)
		}
	}
}

func (d *decision) keep(node string, r order.Reserved) {
	o := d.of(node)
	o.Reserved = append(o.Reserved, r)
}

// list returns the topologies in order.
func (k *Known) list() []topology.Topology {
	return slices.SortedFunc(maps.Values(k.topologies), func(a, b topology.Topology) int { return cmp.Compare(a.Name, b.Name) })
}
