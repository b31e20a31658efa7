package claims

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/topology"
)

// An Elastic topology may keep addresses ready on each node that has pods of it: its next pod there waits for no cloud. A node's status keeps them for the
// topology and for no pod, and its agent gives them to pods as it sees those. Here the same is chosen in the same order; where the two differ,
// as of pods that come together, the address that a pod shows says which one it has.

const (
	// readyFor is for how long addresses stay ready on a node without pods of the topology.
	readyFor = time.Hour

	// rest is for how long an address that a pod had is no other one's: its peers may know it still, and its node cools it down.
	rest = time.Minute
)

// warmth is a topology on a node.
type warmth struct{ node, topology string }

func (e kept) isReady() bool { return e.Pod == "" && e.UID == "" }

// nameShown takes in which addresses of Elastic topologies pods show. Whoever else was to have one of those gets another.
func (d *decision) nameShown() {
	for _, p := range d.shownElastic() {
		for _, at := range []netip.Addr{p.V4, p.V6} {
			e, is := d.elastic[at]
			if !is || p.Ended || e.node != p.Node || e.Topology != p.Topology || e.UID == p.UID || d.shows(Name{e.Namespace, e.Pod}, e.UID, at) {
				continue
			}
			for other, o := range d.elastic {
				if o.UID == p.UID && other != at && eni.FamilyOf(other) == eni.FamilyOf(at) {
					o.Namespace, o.Pod, o.UID = "", "", ""
					d.elastic[other] = o
				}
			}
			d.elastic[at] = kept{e.node, reservedFor(at, p)}
		}
	}
}

// shownElastic returns the pods that show addresses of Elastic topologies.
func (d *decision) shownElastic() (list []Pod) {
	if len(d.elastic) == 0 {
		return nil
	}
	for _, p := range d.pods {
		_, v4 := d.elastic[p.V4]
		if _, v6 := d.elastic[p.V6]; v4 || v6 {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b Pod) int { return a.Name.compare(b.Name) })
	return list
}

// shows tells whether the pod of a name and uid shows an address.
func (d *decision) shows(of Name, uid string, at netip.Addr) bool {
	p, is := d.pods[of]
	return is && p.UID == uid && !p.Ended && (p.V4 == at || p.V6 == at)
}

// isOnElastic tells whether a pod of an Elastic topology shows an address that its node has.
func (d *decision) isOnElastic(p Pod, at netip.Addr) bool {
	of, is := d.topologies[p.Topology]
	return is && of.Strategy == topology.Elastic && !p.Ended && slices.Contains(d.where[at], p.Node)
}

func reservedFor(at netip.Addr, p Pod) order.Reserved {
	return order.Reserved{Addr: at, Topology: p.Topology, Namespace: p.Namespace, Pod: p.Name.Name, UID: p.UID}
}

// readyOn returns what is ready on a node for pods of a topology, in order.
func (d *decision) readyOn(on warmth, f eni.Family) (list []netip.Addr) {
	for at, e := range d.elastic {
		if e.isReady() && e.node == on.node && e.Topology == on.topology && eni.FamilyOf(at) == f {
			list = append(list, at)
		}
	}
	slices.SortFunc(list, netip.Addr.Compare)
	return list
}

// takeReady gives a pod what is ready on its node, if anything is.
func (d *decision) takeReady(p Pod, n Node, f eni.Family) bool {
	of := d.topologies[p.Topology]
	if of.Strategy != topology.Elastic {
		return false
	}
	if _, has := d.chooseFrom().Claims.Of(of.Name, asTopologyPod(p), f); has {
		return false
	}
	for _, at := range d.readyOn(warmth{n.Name, p.Topology}, f) {
		freed, used := d.freed[at]
		if a := d.attachment(at, n.Name); !a.Known || a.Node != n.Name || a.Released || used && d.now.Before(freed.Add(rest)) || !d.mayShare(p, n, a.ENI, f) {
			continue
		}
		d.elastic[at] = kept{n.Name, reservedFor(at, p)}
		d.keep(n.Name, d.elastic[at].Reserved)
		return true
	}
	return false
}

// staysReady makes an address ready whose pod has ended, if the topology wants one more there.
func (d *decision) staysReady(n Node, e kept) bool {
	of, on := d.topologies[e.Topology], warmth{n.Name, e.Topology}
	stays := of.Strategy == topology.Elastic && isReserved(n, e.Addr) && !n.Releasing[e.Addr] && n.Serves && d.isWarm(on) && len(d.readyOn(on, eni.FamilyOf(e.Addr))) < of.Warm
	if stays {
		e.Namespace, e.Pod, e.UID = "", "", ""
		d.elastic[e.Addr], d.freed[e.Addr] = e, d.now
		d.wakeAt(d.now.Add(rest))
	}
	return stays
}

// isWarm tells whether a node has pods of a topology, or had some a while ago. A new leader counts from its begin.
func (d *decision) isWarm(on warmth) bool {
	since, is := d.seen[on]
	return is && d.now.Before(since.Add(readyFor))
}

// stepWarm decides what is ready on nodes beside what pods have and are to have.
func (d *decision) stepWarm() {
	d.noteSeen()
	d.endReady()
	for _, at := range slices.SortedFunc(maps.Keys(d.elastic), netip.Addr.Compare) {
		if e := d.elastic[at]; e.isReady() && !d.leaves[at] {
			d.bringReady(e)
		}
	}
	for _, on := range slices.SortedFunc(maps.Keys(d.seen), func(a, b warmth) int {
		return cmp.Or(cmp.Compare(a.node, b.node), cmp.Compare(a.topology, b.topology))
	}) {
		of, n := d.topologies[on.topology], d.nodes[on.node]
		if !d.settled || of.Warm == 0 || !n.Told || !n.Serves || !d.isWarm(on) {
			continue
		}
		for _, f := range d.families {
			for missing := of.Warm - len(d.readyOn(on, f)); missing > 0 && d.makeReady(of, n, f); missing-- {
			}
		}
	}
}

// makeReady chooses one more address that is to be ready. No ENI is made for it, and no idle address of the pool leaves.
func (d *decision) makeReady(of topology.Topology, n Node, f eni.Family) bool {
	c, wait := topology.Choose(of, topology.Pod{}, d.nodeFor(n, Name{}, f), f, d.chooseFrom())
	if wait.Cause != topology.None {
		return false
	}
	d.chooseFrom().Taken[c.Addr] = true
	e := kept{n.Name, order.Reserved{Addr: c.Addr, Topology: of.Name}}
	d.elastic[c.Addr] = e
	d.bringReady(e)
	_, is := d.elastic[c.Addr]
	return is
}

// noteSeen keeps which nodes have pods of topologies that keep addresses ready, or had some and still have such addresses.
func (d *decision) noteSeen() {
	d.noteWarm()
	ready := map[warmth]bool{}
	for _, e := range d.elastic {
		on := warmth{e.node, e.Topology}
		if ready[on] = ready[on] || e.isReady(); e.isReady() && d.seen[on].IsZero() {
			d.seen[on] = d.now
		}
	}
	for on, since := range d.seen {
		if _, is := d.nodes[on.node]; !is || !d.isWarm(on) && !ready[on] {
			delete(d.seen, on)
			continue
		}
		d.wakeAt(since.Add(readyFor))
	}
}

// noteWarm keeps which nodes have pods now of topologies that keep addresses ready.
func (d *decision) noteWarm() {
	warm := map[string]bool{}
	for name, of := range d.topologies {
		if of.Warm > 0 {
			warm[name] = true
		}
	}
	if len(warm) == 0 {
		return // mostly
	}
	for _, p := range d.pods {
		if warm[p.Topology] && p.Node != "" && !p.Ended {
			d.seen[warmth{p.Node, p.Topology}] = d.now
		}
	}
}

// endReady has what is ready go that is ready no more, or more than is wanted: the last ones first. No pod without an address is there that could have it.
func (d *decision) endReady() {
	count := map[warmth]map[eni.Family]int{}
	for _, at := range slices.SortedFunc(maps.Keys(d.elastic), netip.Addr.Compare) {
		e, f := d.elastic[at], eni.FamilyOf(at)
		if !e.isReady() {
			continue
		}
		on := warmth{e.node, e.Topology}
		n, known := d.nodes[e.node]
		if _, claimed := d.claims[at]; !known || claimed {
			delete(d.elastic, at)
			continue
		}
		if count[on] == nil {
			count[on] = map[eni.Family]int{}
		}
		of := d.topologies[e.Topology]
		wanted := of.Strategy == topology.Elastic && count[on][f] < of.Warm && d.isWarm(on) && !n.Releasing[at]
		switch {
		case n.Open[at], wanted:
			count[on][f]++
		case isReserved(n, at):
			d.of(e.node).Seize = append(d.of(e.node).Seize, at)
			d.leaves[at] = true
		default:
			delete(d.elastic, at)
			d.freed[at] = d.now
		}
	}
}

// bringReady sees to it that what is to be ready comes to its node.
func (d *decision) bringReady(e kept) {
	n := d.nodes[e.node]
	a := d.attachment(e.Addr, e.node)
	d.forgetAttached(e.Addr, a)
	last, refused := d.refused[e.Addr]
	switch {
	case a.ENI != "" && a.Node == e.node || !a.Known:
		d.keep(e.node, e.Reserved)
		return
	case a.ENI != "" || refused && d.now.Before(last.at.Add(topology.ConflictRetry)) || !n.Serves:
		delete(d.elastic, e.Addr)
		d.of(e.node)
		return
	}
	c := topology.Claim{Addr: e.Addr, Topology: e.Topology, Subnet: d.SubnetOf(e.Addr)}
	target := d.freeENI(n, c)
	if target == "" {
		delete(d.elastic, e.Addr)
		d.of(e.node)
		return
	}
	d.keep(e.node, e.Reserved)
	o := d.of(n.Name)
	o.Assign[target] = append(o.Assign[target], e.Addr)
}
