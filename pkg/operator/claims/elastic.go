package claims

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/topology"
)

// An address of an Elastic topology has no object: that a node's status keeps it for a pod is all there is, and it is there before the cloud
// is asked. So the next leader knows it.

// stepElastic decides about the addresses that last as long as their pods.
func (d *decision) stepElastic() {
	for _, name := range d.busyNodes() {
		for _, r := range d.nodes[name].Reserved {
			_, claimed := d.claims[r.Addr]
			_, known := d.elastic[r.Addr]
			_, creating := d.creating[r.Addr]
			if !claimed && !known && !creating && !d.unread[r.Addr] {
				d.elastic[r.Addr] = kept{name, r}
			}
		}
	}
	for _, at := range slices.SortedFunc(maps.Keys(d.elastic), netip.Addr.Compare) {
		e := d.elastic[at]
		if e.isReady() {
			continue // see stepWarm
		}
		n, known := d.nodes[e.node]
		_, claimed := d.claims[at]
		p, is := d.pods[Name{e.Namespace, e.Pod}]
		switch {
		case claimed, !known:
			delete(d.elastic, at)
		case !is && d.lists < 2, n.Open[at], !n.Told, !d.attachment(at, e.node).Known:
			d.keep(e.node, e.Reserved) // the pod may be there, or the address is on its way, or there though no describe of this leader has shown it
		case is && p.UID == e.UID && !p.Ended && p.Node == e.node:
			d.bringElastic(e)
		case d.staysReady(n, e):
		case !isReserved(n, at): // its agent gives it back
			delete(d.elastic, at)
			d.freed[at] = d.now
		default:
			d.of(e.node).Seize = append(d.of(e.node).Seize, at) // if it is there
		}
	}
}

// bringElastic sees to it that an address comes to the node of its pod.
func (d *decision) bringElastic(e kept) {
	n, p := d.nodes[e.node], d.pods[Name{e.Namespace, e.Pod}]
	a := d.attachment(e.Addr, e.node)
	d.forgetAttached(e.Addr, a)
	switch last, refused := d.refused[e.Addr]; {
	case a.ENI != "" && a.Node == e.node || !a.Known:
		d.keep(e.node, e.Reserved)
		return
	case a.ENI != "" || refused && d.now.Before(last.at.Add(topology.ConflictRetry)):
		delete(d.elastic, e.Addr) // somebody else has it: another one is chosen
		d.of(e.node)
		return
	}
	c := topology.Claim{Addr: e.Addr, Topology: e.Topology, Namespace: e.Namespace, Pod: e.Pod, Subnet: d.SubnetOf(e.Addr)}
	target := d.targetOn(n, c)
	if target == "" && d.of(n.Name).Make.Subnet != c.Subnet {
		delete(d.elastic, e.Addr)
		none := topology.Wait{Cause: topology.NoSlot, Message: fmt.Sprintf("no ENI of %s can carry %s", n.Name, e.Addr)}
		d.waits[p.Name] = Waiting{p, d.awaitPlace(n, p, []string{c.Subnet}, none)}
		return
	}
	d.keep(e.node, e.Reserved)
	if o := d.of(n.Name); target != "" && n.Serves {
		o.Assign[target] = append(o.Assign[target], e.Addr)
	}
}

// SubnetOf returns the subnet that an address lies in, "" if none is known.
func (k *Known) SubnetOf(at netip.Addr) string {
	for _, s := range k.subnets {
		if s.V4.IsValid() && s.V4.Contains(at) || s.V6.IsValid() && s.V6.Contains(at) {
			return s.ID
		}
	}
	return ""
}
