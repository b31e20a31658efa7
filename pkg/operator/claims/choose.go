package claims

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/topology"
)

// mostCreates is how many claims are made at once.
const mostCreates = 16

// choose gives the pods on nodes that have no address yet one of their topology.
func (d *decision) choose() {
	if !d.settled { // an address may be on an ENI that nobody has described
		return
	}
	served := d.servedPods()
	for _, name := range d.busyPods() {
		p := d.pods[name]
		n, known := d.nodes[p.Node]
		if !known || p.Ended || !n.Told {
			continue
		}
		for _, f := range d.families {
			if of := (servedPod{p.UID, f}); served[of] || d.quiet.serves(of) {
				continue
			}
			if !n.Serves {
				d.waits[name] = Waiting{p, topology.Wait{Cause: topology.NoSlot, Message: fmt.Sprintf("the operator does not call the cloud for %s now", n.Name)}}
				continue
			}
			if !d.takeReady(p, n, f) {
				d.chooseFor(p, n, f, d.chooseFrom())
			}
		}
	}
}

// chooseFrom returns what an address is chosen by: with each one that is chosen in it.
func (d *decision) chooseFrom() *topology.Cluster {
	if d.choice == nil {
		if d.quiet == nil {
			d.choice = d.cluster()
		} else {
			d.choice = d.largeCluster()
		}
		for at, r := range d.refused {
			if d.now.Before(r.at.Add(topology.ConflictRetry)) {
				d.choice.Taken[at] = true
			}
		}
	}
	return d.choice
}

// servedPod is a pod that has an address of a family, or is to get one that is chosen.
type servedPod struct {
	uid    string
	family eni.Family
}

// servedPods returns those, as far as quiet claims don't serve them.
func (d *decision) servedPods() map[servedPod]bool {
	served := map[servedPod]bool{}
	for _, at := range d.busyClaims() {
		if c := d.claims[at]; c.Phase == topology.Bound {
			served[servedPod{c.PodUID, c.Family()}] = true
		}
	}
	for at, e := range d.elastic {
		served[servedPod{e.UID, eni.FamilyOf(at)}] = true
	}
	for _, name := range d.busyPods() {
		p := d.pods[name]
		for _, at := range []netip.Addr{p.V4, p.V6} { // it was ready, and its agent has given it, when it was to leave
			if at.IsValid() && d.isOnElastic(p, at) {
				served[servedPod{p.UID, eni.FamilyOf(at)}] = true
			}
		}
	}
	for at, c := range d.creating {
		if p, is := d.pods[Name{c.Namespace, c.Pod}]; is {
			served[servedPod{p.UID, eni.FamilyOf(at)}] = true
		}
	}
	return served
}

// chooseFor chooses an address of a family for a pod.
func (d *decision) chooseFor(pod Pod, node Node, family eni.Family, cluster *topology.Cluster) {
	of, is := d.topologies[pod.Topology]
	if !is {
		// A claim is served all the same.
		if _, has := cluster.Claims.Of(pod.Topology, asTopologyPod(pod), family); !has {
			d.waits[pod.Name] = Waiting{pod, topology.Wait{Cause: topology.TopologyNotReady, Message: fmt.Sprintf("there is no topology %s any more", pod.Topology)}}
		}
		return
	}
	on := d.nodeFor(node, pod.Name, family)
	on.Only = d.partnerSubnet(pod, family)
	alike := alikeOf(of, on, family)
	_, has := cluster.Claims.Of(of.Name, asTopologyPod(pod), family)
	if has && of.Strategy == topology.Elastic || !has && d.isKnownFor(alike, pod) { // the topology was made again as another one: the claim serves the pod
		return
	}
	claim, wait := topology.Choose(of, asTopologyPod(pod), on, family, cluster)
	if before, is := d.alike[alike]; !has && (!is || before.Cause == topology.None) {
		d.alike[alike] = topology.Wait{Cause: wait.Cause, Message: wait.Message, Until: wait.Until}
	}
	if wait.Cause == topology.NoSlot && d.partnerENI(node, pod.Name, family) == "" {
		// Its address is chosen when there is an ENI: till then nobody knows which one the cloud takes for that.
		on.Anywhere = true
		if would, why := topology.Choose(of, asTopologyPod(pod), on, family, cluster); why.Cause == topology.None {
			d.makeOn(node, would)
			wait = d.awaitPlace(node, pod, d.subnetsFor(of, on, would), wait)
		}
	}
	if wait.Cause != topology.None {
		if wait.Cause != topology.NoSlot || d.of(node.Name).Make.Subnet == "" { // one that is being made is no news
			d.waits[pod.Name] = Waiting{pod, wait}
		}
		d.wakeAt(wait.Until)
		return
	}
	if _, has := d.claims[claim.Addr]; has || len(d.steps.Creates) >= mostCreates && of.Strategy != topology.Elastic {
		return
	}
	cluster.Taken[claim.Addr] = true
	if of.Strategy == topology.Elastic {
		r := order.Reserved{Addr: claim.Addr, Topology: of.Name, Namespace: pod.Namespace, Pod: pod.Name.Name, UID: pod.UID}
		d.elastic[claim.Addr] = kept{node.Name, r}
		d.bringElastic(d.elastic[claim.Addr])
		return
	}
	d.steps.Creates = append(d.steps.Creates, claim)
	d.freeENI(node, claim)
}

// alike is what pods without an address have in common that can have the same ones.
type alike struct {
	topology, zone, subnets string
	anywhere                bool
	family                  eni.Family
}

func alikeOf(of topology.Topology, on topology.Node, family eni.Family) alike {
	return alike{of.Name, on.Zone, strings.Join(append(slices.Clone(on.Subnets), on.Only), " "), on.Anywhere, family}
}

// isKnownFor tells whether what becomes of a pod follows from what has become of one like it: there is no room for it either, or as many claims are
// made as can be. Each of thousands that wait would look through all addresses of the topology.
func (d *decision) isKnownFor(of alike, pod Pod) bool {
	wait, is := d.alike[of]
	switch {
	case is && wait.Cause == topology.NoRoom:
		d.waits[pod.Name] = Waiting{pod, wait}
		return true
	case is && wait.Cause == topology.None && d.topologies[of.topology].Strategy != topology.Elastic:
		return len(d.steps.Creates) >= mostCreates
	}
	return false
}

// subnetsFor returns the subnets in a zone of which an address can be the pod's: of one that is kept already its own alone.
func (d *decision) subnetsFor(of topology.Topology, on topology.Node, would topology.Claim) []string {
	ids := []string{would.Subnet}
	if _, has := d.claims[would.Addr]; has || on.Only != "" {
		return ids
	}
	for _, from := range of.Sources {
		at := slices.IndexFunc(d.subnets, func(s topology.Subnet) bool { return s.ID == from.Subnet && s.Ready && s.Zone == on.Zone })
		if at >= 0 && from.Subnet != would.Subnet {
			ids = append(ids, from.Subnet)
		}
	}
	return ids
}

func asTopologyPod(p Pod) topology.Pod {
	return topology.Pod{Namespace: p.Namespace, Name: p.Name.Name, UID: p.UID, StatefulSet: p.StatefulSet}
}

// takeUnlisted adds the addresses that are taken and that no claim keeps which can be read.
func (k *Known) takeUnlisted(taken map[netip.Addr]bool) {
	for at := range k.elastic {
		taken[at] = true
	}
	for at := range k.unread {
		taken[at] = true
	}
	for at := range k.creating {
		taken[at] = true
	}
}

// largeCluster returns the same as cluster, and copies little: of a large cluster that takes long.
func (k *Known) largeCluster() *topology.Cluster {
	all := &topology.Cluster{Topologies: k.list(), Subnets: k.subnets, Families: k.families, Claims: k.index, Taken: map[netip.Addr]bool{}, On: k.where, Beside: k.beside, Freed: k.freed}
	k.takeUnlisted(all.Taken)
	for _, n := range k.nodes {
		for _, e := range n.ENIs {
			all.Blocks = append(all.Blocks, e.Blocks...)
		}
	}
	return all
}

// cluster returns all that Choose goes by.
func (k *Known) cluster() *topology.Cluster {
	all := &topology.Cluster{Topologies: k.list(), Subnets: k.subnets, Families: k.families, Taken: map[netip.Addr]bool{}, Freed: k.freed}
	for _, c := range k.claims {
		all.Claims.Put(c.Claim)
	}
	for at := range k.where {
		all.Taken[at] = true
	}
	k.takeUnlisted(all.Taken)
	for _, p := range k.pods {
		for _, at := range p.shown() {
			all.Taken[at] = true
		}
	}
	for _, n := range k.nodes {
		for _, e := range n.ENIs {
			all.Blocks = append(all.Blocks, e.Blocks...)
			for _, at := range e.Primaries {
				all.Taken[at] = true
			}
		}
		for _, r := range n.Reserved {
			all.Taken[r.Addr] = true
		}
		for at := range n.Open {
			all.Taken[at] = true
		}
		for at := range n.Quarantined { // a call of before may take it away again
			all.Taken[at] = true
		}
	}
	return all
}
