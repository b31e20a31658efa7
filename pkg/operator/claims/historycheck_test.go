package claims_test

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/topology"
)

// check demands what holds at any time: what a pod has is on an ENI of its node and no other pod's, and nothing of a topology is free for all.
func (w *world) check() {
	live, has := map[string]*pod{}, map[netip.Addr]string{}
	for _, p := range w.pods {
		if !p.Ended {
			live[p.UID] = p
		}
	}
	for _, n := range w.nodes {
		for _, line := range n.state.Addresses {
			if line.State == eni.Free {
				w.complain("%s is of a topology, and any pod on %s may have it", line.Addr, n.name)
			}
			if line.State != eni.Used {
				continue
			}
			p := live[line.Owner.Container]
			if p == nil || p.Node != n.name {
				continue
			}
			switch there := n.hasNIC(w.cloud[line.Addr].eni); {
			case there && !w.isTaken(line.Addr):
				delete(n.early, line.Addr)
			case !there && n.early[line.Addr] != p.UID:
				w.complain("%s %s has %s on %s, which is on %q", p.Name.Name, p.UID, line.Addr, n.name, w.cloud[line.Addr].eni)
			}
			if other := has[line.Addr]; other != "" {
				w.complain("%s is of %s and of %s", line.Addr, other, p.UID)
			}
			has[line.Addr] = p.UID
		}
	}
}

// isTaken tells whether a call is under way that takes an address from the ENI that has it.
func (w *world) isTaken(at netip.Addr) bool {
	return slices.ContainsFunc(w.calls, func(c *call) bool {
		return !c.done && c.eni == w.cloud[at].eni && slices.Contains(c.take, netip.PrefixFrom(at, at.BitLen()))
	})
}

func (n *node) hasNIC(id string) bool {
	return slices.ContainsFunc(n.nics, func(is nic) bool { return is.id == id })
}

// checkGiven demands that a pod gets what its name has had, as long as that is kept: neither people nor the end of the StatefulSet nor time have let go of it.
func (w *world) checkGiven(n *node, p *pod, at netip.Addr) {
	w.note("address given", "%s to %s %s on %s", at, p.Name.Name, p.UID, n.name)
	// An agent that has done nothing for long does not know that it went elsewhere meanwhile, or is about to. The plugin gives it to the next pod of its name, which has
	// no network before it is back: nobody else has it.
	if (!n.hasNIC(w.cloud[at].eni) || w.isTaken(at)) && w.now >= n.adopted+topology.MoveGrace {
		w.note("address given early", "%s", at)
		n.early[at], n.cameEarly[at] = p.UID, p.UID
		return // what is kept for it is another one by now, maybe
	}
	if last := w.lastPods[at.String()]; last != "" && last != p.UID {
		w.complain("%s %s gets %s, of which people have deleted the claim under %s", p.Name.Name, p.UID, at, last)
	}
	if p.Topology == "elastic" {
		return
	}
	is, has := w.promises[p.Name]
	if has && p.Topology != "fixed" && is.gone > 0 && w.now >= is.gone+stickyTTL {
		has = false
	}
	if has && is.addr != at {
		w.complain("%s %s gets %s, and pods of its name had %s", p.Name.Name, p.UID, at, is.addr)
	} else if has {
		w.note("address given again", "%s", at)
	}
	delete(w.promises, p.Name)
	c := w.objects[at.String()] // one that ends promises nothing to who comes after the pod
	if c != nil && c.DeletionTimestamp == nil && c.Status.Phase != string(topology.Releasing) && (p.Topology != "fixed" || w.setThere) {
		w.promises[p.Name] = promise{addr: at}
	}
}

// checkTaken demands that an address is taken without its agent's word only from a node that the cluster does not reach, or when the agent had its time.
func (w *world) checkTaken(l *leader, n *node, at netip.Addr) {
	if published(n.current().Spec, at) {
		return
	}
	w.note("taken without word", "%s from %s", at, n.name)
	box := slices.ContainsFunc(n.state.Addresses, func(line eni.Address) bool { return line.Addr == at && line.State == eni.Used })
	if since, is := n.released[at]; box && !n.cut && !l.cut[n.name] && !l.decided[n.name] && (!is || w.now < since+topology.MoveGrace) {
		w.complain("%s is taken from a sandbox on %s, whose agent had no time to end with it", at, n.name)
	}
}

// lacks says which gate should be open and is not, or which pod should have an address and has none, "" for none.
func (w *world) lacks() string {
	for _, of := range w.names {
		p := w.pods[of]
		switch {
		case p == nil || p.Ended || w.has(p):
		case p.gated && w.roomOf(p.of, "") > 0:
			return fmt.Sprintf("%s is gated, and its topology has room", of.Name)
		case p.gated:
		case p.Node == "":
			return fmt.Sprintf("%s is on no node", of.Name)
		case w.hasWhatEnded(p), w.awaitsWhatCameEarly(p):
		case w.claimOf(of) || w.roomOf(p.of, w.nodeOf(p).zone) > 0:
			return fmt.Sprintf("%s %s has no address on %s", of.Name, p.UID, p.Node)
		}
	}
	return ""
}

// hasWhatEnded tells whether a pod has an address whose claim has ended. It came back to an agent that had done nothing for long and had yet to hear of that: its
// agent tells people of the lost address, who delete the pod.
func (w *world) hasWhatEnded(p *pod) bool {
	for at, uid := range w.nodeOf(p).early {
		kept := slices.ContainsFunc(slices.Collect(maps.Values(w.objects)), func(c *crd.AddressClaim) bool { return c.Spec.Address == at.String() && c.Spec.Pod == p.Name.Name })
		if uid == p.UID && !kept {
			return true
		}
	}
	return false
}

// awaitsWhatCameEarly tells whether the address that is kept for a pod came early to one of another name, and was chosen before that one's kubelet showed it: the pod
// gets it when that one ends.
func (w *world) awaitsWhatCameEarly(p *pod) bool {
	n := w.nodeOf(p)
	return slices.ContainsFunc(n.state.Addresses, func(line eni.Address) bool {
		c, uid := w.objects[line.Addr.String()], n.cameEarly[line.Addr]
		return c != nil && c.Spec.Pod == p.Name.Name && line.State == eni.Used && line.Owner.Container == uid && uid != p.UID
	})
}

func (w *world) nodeOf(p *pod) *node {
	return w.nodes[slices.IndexFunc(w.nodes, func(n *node) bool { return n.name == p.Node })]
}

func (w *world) has(p *pod) bool {
	if p.Node == "" {
		return false
	}
	n := w.nodeOf(p)
	return slices.ContainsFunc(n.state.Addresses, func(a eni.Address) bool {
		return a.State == eni.Used && a.Owner.Container == p.UID && n.hasNIC(w.cloud[a.Addr].eni)
	})
}

// claimOf tells whether an address is kept for a name that has not begun to end.
func (w *world) claimOf(of name) bool {
	for _, c := range w.objects {
		if c.Spec.Pod == of.Name && c.DeletionTimestamp == nil && c.Status.Phase != string(topology.Releasing) {
			return true
		}
	}
	return false
}

// roomOf counts the addresses of a topology in a zone, or in all, that no claim keeps and no ENI has.
func (w *world) roomOf(kind, zone string) (room int) {
	for _, is := range w.kinds {
		for _, from := range is.Spec.Subnets {
			if is.Name != kind || zone != "" && from.ID != subnetOf(zone) {
				continue
			}
			last := netip.MustParseAddr(from.Ranges[0].To)
			for at := netip.MustParseAddr(from.Ranges[0].From); at.Compare(last) <= 0; at = at.Next() {
				if w.objects[at.String()] == nil && w.cloud[at].eni == "" && !w.isShown(at) {
					room++
				}
			}
		}
	}
	return room
}

// isShown tells whether a pod that runs shows an address: no other one is given it.
func (w *world) isShown(at netip.Addr) bool {
	for _, p := range w.pods {
		if p.V4 == at && !p.Ended {
			return true
		}
	}
	return false
}

// remains says what is left of claims and addresses, "" for nothing.
func (w *world) remains() string {
	var left []string
	for _, c := range w.objects {
		left = append(left, fmt.Sprintf("claim %s of %s: %+v", c.Name, c.Spec.Pod, c.Status))
	}
	for at, is := range w.cloud {
		if is.eni != "" {
			left = append(left, fmt.Sprintf("%s on %s", at, is.eni))
		}
	}
	for _, n := range w.nodes {
		for _, r := range n.current().Status.Reserved {
			left = append(left, fmt.Sprintf("%s reserved on %s", r.Addr, n.name))
		}
	}
	slices.Sort(left)
	return strings.Join(left, ", ")
}
