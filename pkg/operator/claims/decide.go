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
	quiet   *quiet // what is not decided about, nil: all is
	now     time.Time
	settled bool // everything was described by this leader
	steps   Steps
	orders  map[string]*Orders
	leaves  map[netip.Addr]bool // nobody is to get it any more where it is
	room    map[place]int       // what the orders take of ENIs
	open    map[netip.Addr]int  // of all nodes
	yields  map[demand]bool     // pods for which an idle address makes room
	waits   map[Name]Waiting
	choice  *topology.Cluster       // see chooseFrom
	placed  map[onENI]string        // ENIs that are to carry an address
	targets map[netip.Addr]bool     // what has a place there
	alike   map[alike]topology.Wait // what became of the first pod of its kind
}

// place is where on a node an address lies.
type place struct {
	eni    string
	family eni.Family
}

// Decide says what follows. settled: a describe of everything has begun and ended since this leader may go by one.
func (k *Known) Decide(now time.Time, settled bool) Steps {
	d := k.newDecision(now, settled)
	if !k.complete || k.lists == 0 {
		return d.steps
	}
	for _, n := range k.nodes { // few have any
		for at := range n.Open {
			d.open[at]++
		}
	}
	d.decide()
	for name := range d.nodes {
		d.steps.Nodes[name] = Orders{} // what is known of it was decided by
	}
	for name, o := range d.orders {
		d.steps.Nodes[name] = *o
	}
	return d.steps
}

func (k *Known) newDecision(now time.Time, settled bool) *decision {
	d := &decision{Known: k, now: now, settled: settled, orders: map[string]*Orders{}, leaves: map[netip.Addr]bool{}, room: map[place]int{},
		open: map[netip.Addr]int{}, yields: map[demand]bool{}, waits: map[Name]Waiting{}, placed: map[onENI]string{}, targets: map[netip.Addr]bool{}, alike: map[alike]topology.Wait{}}
	d.steps.Nodes = map[string]Orders{}
	return d
}

// decide decides about all that is not quiet.
func (d *decision) decide() {
	for _, at := range d.busyClaims() {
		d.stepClaim(d.claims[at])
	}
	d.nameShown()
	d.stepElastic()
	d.choose()
	d.promise()
	d.stepWarm()
	d.reserve()
	d.tellPromised()
	for _, name := range slices.SortedFunc(maps.Keys(d.waits), Name.compare) {
		d.steps.Waits = append(d.steps.Waits, d.waits[name])
	}
}

// of returns a node's orders.
func (d *decision) of(node string) *Orders {
	if d.orders[node] == nil {
		d.orders[node] = newOrders()
		if d.quiet != nil {
			d.orders[node].Reserved = d.quiet.keptOn(node)
		}
	}
	return d.orders[node]
}

func newOrders() *Orders {
	return &Orders{Assign: map[string][]netip.Addr{}, Take: map[string][]netip.Addr{}, Move: map[string]Move{}}
}

// wakeAt has it decided again then.
func (d *decision) wakeAt(at time.Time) {
	if at.After(d.now) && (d.steps.Next.IsZero() || at.Before(d.steps.Next)) {
		d.steps.Next = at
	}
}

// podFacts returns what is known of the pod of a name for which an address is kept. One that was never seen is not absent before two lists lack it.
func (k *Known) podFacts(of Name, at netip.Addr) (f topology.PodFacts) {
	p, is := k.pods[of]
	switch {
	case is:
		return topology.PodFacts{Presence: topology.Present, UID: p.UID, Node: p.Node, Topology: p.Topology, Ended: p.Ended, Shows: p.V4 == at || p.V6 == at}
	case k.lists >= 2:
		f.Presence = topology.Absent
	}
	return f
}

// attachment returns where an address is.
func (d *decision) attachment(at netip.Addr, target string) (a topology.Attachment) {
	if d.open[at] > 0 || d.left.sought[at] {
		return a
	}
	switch on := d.where[at]; len(on) {
	case 0:
		// A call of an earlier leader may still take it from an ENI of the node that says so, and from no other.
		a.Known = d.settled && !d.nodes[target].Quarantined[at]
		a = d.leftAt(at, a)
	case 1:
		n := d.nodes[on[0]]
		a = topology.Attachment{Known: n.Told && !n.Quarantined[at], Node: n.Name, NodeGone: n.Gone, Asked: d.asked[at], Accepted: n.Releasing[at]}
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
	f := topology.Facts{Deleted: c.object.DeletionTimestamp != nil, Pod: d.podFacts(of, c.Addr), StatefulSet: d.setFacts(c.Claim), Surplus: d.isSurplus(c.Claim), Refused: d.refusalOf(c.Addr).at, Refusal: d.refusalOf(c.Addr).why}
	f.At = d.attachment(c.Addr, f.Pod.Node)
	d.forgetAttached(c.Addr, f.At)
	if f.At.Node != "" && !f.At.Accepted { // its agent has kept it, and has its time again when it is to go
		delete(d.asked, c.Addr)
		f.At.Asked = time.Time{}
	}
	if n, is := d.nodes[f.Pod.Node]; is && c.Phase == topology.OnItsWay && f.At.Known && f.At.Node != n.Name {
		f.Target = d.targetOn(n, c.Claim)
		f.OneCall = d.mayMove(c.Claim) && d.nodes[f.At.Node].isOwn(f.At.ENI, c.Subnet) && n.isOwn(f.Target, c.Subnet)
	}
	f.Late = d.isLate(c.Claim)
	step := topology.Next(c.Claim, f, d.now)
	if step.Claim == c.Claim && c.Phase == topology.OnItsWay && f.At.Known && f.At.ENI != "" && f.At.Node != f.Pod.Node && f.Target == "" && !f.Late {
		// It stays where it is until it can be where it is to go: nobody else gets it there meanwhile, not even an ENI that is made for it.
		step = topology.Step{Claim: c.Claim, Wait: topology.Wait{Cause: topology.NoSlot, Message: fmt.Sprintf("no ENI of %s can carry %s", c.To, c.Addr)}}
	}
	if step.Claim == c.Claim && (step.Wait.Cause == topology.None || step.Wait.Cause == topology.InUse) { // a pod has it, or may have it
		delete(d.asked, c.Addr)
	}
	if n, is := d.nodes[f.Pod.Node]; is && step.Wait.Cause == topology.NoSlot {
		step.Wait = d.awaitPlace(n, d.pods[of], []string{c.Subnet}, step.Wait)
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
	if step.Claim != c.Claim || message != c.object.Status.Message || d.mustConfirm(c.Addr, step.Action) {
		d.steps.Writes = append(d.steps.Writes, Write{c.Addr, step.Claim.Status, message})
	}
	if step.Claim == c.Claim && !d.mustConfirm(c.Addr, step.Action) {
		d.act(c.Claim, f, step)
	}
	if n := d.nodes[f.At.Node]; f.At.ENI != "" && n.Releasing[c.Addr] {
		d.leaves[c.Addr] = true
		if o := d.of(n.Name); n.Published[c.Addr] && f.At.Known && f.MayUnassign(step.Claim) && !d.mustConfirm(c.Addr, step.Action) && !slices.Contains(o.Take[f.At.ENI], c.Addr) {
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
		if f.At.Node == "" {
			d.takeLeft(c, d.left.at[c.Addr])
		} else if o := d.of(f.At.Node); d.mayTake(c, f) {
			o.Take[f.At.ENI] = append(o.Take[f.At.ENI], c.Addr)
		}
	case topology.Reassign:
		if n := d.nodes[f.Pod.Node]; n.Serves && d.mayTake(c, f) && c.ToENI == f.Target { // else it says so first
			d.move(n.Name, f.Target, Move{f.At.Node, f.At.ENI, []netip.Addr{c.Addr}})
		}
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

// mayTake tells whether an address may be taken where it is: that is accepted. Without its agent's word a read has to tell first which pod of the
// name there is.
func (d *decision) mayTake(claim topology.Claim, facts topology.Facts) bool {
	orders, n := d.of(facts.At.Node), d.nodes[facts.At.Node]
	d.leaves[claim.Addr] = true
	switch {
	case !n.Releasing[claim.Addr]:
		orders.Seize = append(orders.Seize, claim.Addr)
		return false
	case n.Published[claim.Addr]:
		return true
	case d.isShown(n.Name, claim.Addr): // people have made the claim of an address that a pod has
		return false
	}
	return d.isRead(claim)
}

// isShown tells whether a pod of a node shows an address.
func (d *decision) isShown(node string, at netip.Addr) bool {
	for _, p := range d.pods {
		if p.Node == node && !p.Ended && (p.V4 == at || p.V6 == at) {
			return true
		}
	}
	return false
}

func isReserved(n Node, at netip.Addr) bool {
	return slices.ContainsFunc(n.Reserved, func(r order.Reserved) bool { return r.Addr == at })
}

// targetOn returns the ENI of a node that is to carry an address, and takes its place there; "" if none can now. Then one is made if
// there may be one more.
func (d *decision) targetOn(n Node, c topology.Claim) string {
	if id, only := d.lateTarget(n, c); only {
		return id
	}
	id := d.freeENI(n, c)
	if id == "" && d.partnerENI(n, Name{c.Namespace, c.Pod}, c.Family()) == "" { // beside that another one would not help
		d.makeOn(n, c)
	}
	return id
}

// freeENI does that, and has none made.
func (d *decision) freeENI(n Node, c topology.Claim) string {
	f, pod := c.Family(), Name{c.Namespace, c.Pod}
	for _, e := range d.carriers(n, c.Subnet) {
		if d.mayCarry(n, e, pod, f) {
			d.takePlace(n, e, c)
			return e.ID
		}
	}
	return ""
}

// takePlace notes that an ENI is to carry an address.
func (d *decision) takePlace(n Node, e ENI, c topology.Claim) {
	d.room[place{e.ID, c.Family()}]++
	if d.targets[c.Addr] = true; c.Pod != "" {
		d.placed[onENI{n.Name, Name{c.Namespace, c.Pod}}] = e.ID
	}
}

// makeOn has an ENI made for an address, if there may be one more.
func (d *decision) makeOn(n Node, c topology.Claim) {
	if o := d.of(n.Name); n.MayMake && n.Serves && d.isIn(c.Subnet, n.Zone) && o.Make.Subnet == "" {
		o.Make = Make{c.Subnet, c.Topology, n.Created}
	}
}

// nodeFor returns a node as topologies go by it for a pod, or for what is to be ready.
func (d *decision) nodeFor(n Node, pod Name, f eni.Family) topology.Node {
	is := topology.Node{Name: n.Name, Zone: n.Zone}
	for _, e := range n.ENIs {
		if d.mayCarry(n, e, pod, f) {
			is.Subnets = append(is.Subnets, e.Subnet)
			is.Anywhere = n.Crosses
		}
	}
	return is
}

// list returns the topologies in order.
func (k *Known) list() []topology.Topology {
	return slices.SortedFunc(maps.Values(k.topologies), func(a, b topology.Topology) int { return cmp.Compare(a.Name, b.Name) })
}
