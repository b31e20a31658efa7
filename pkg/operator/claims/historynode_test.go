package claims_test

import (
	"fmt"
	"net/netip"
	"reflect"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator/claims"
	"github.com/enipool/enipool/pkg/order"
	"k8s.io/apimachinery/pkg/types"
)

// keep keeps a version of a claim's object and tells of it.
func (w *world) keep(c *crd.AddressClaim) {
	c.ResourceVersion = fmt.Sprint(w.nextSerial())
	w.objects[c.Name] = c
	w.tellOf(claims.Event{Claim: c.DeepCopy()})
}

func (w *world) createObject(c *crd.AddressClaim) {
	if w.objects[c.Name] == nil {
		made := c.DeepCopy()
		made.UID, made.Status = types.UID(fmt.Sprint("claim-", w.nextSerial())), crd.ClaimStatus{}
		w.keep(made)
		w.note("claim made", "%s for %s", c.Name, c.Spec.Pod)
	}
}

// writeObject writes a status with the version that was read.
func (w *world) writeObject(c *crd.AddressClaim) {
	old := w.objects[c.Name]
	if old == nil || old.ResourceVersion != c.ResourceVersion || reflect.DeepEqual(old.Status, c.Status) {
		return
	}
	next := old.DeepCopy()
	if next.Status = c.Status; c.Status.Moves > old.Status.Moves {
		w.note("moved", "%s to %s", c.Name, c.Status.Node)
	}
	w.note("claim written", "%s of %s: %+v", c.Name, c.Spec.Pod, c.Status)
	w.keep(next)
}

// dropObject takes the finalizer.
func (w *world) dropObject(c *crd.AddressClaim) {
	old := w.objects[c.Name]
	if old == nil || old.UID != c.UID || old.ResourceVersion != c.ResourceVersion {
		return
	}
	delete(w.objects, c.Name)
	delete(w.lastPods, c.Name)
	w.note("claim ended", "%s of %s", c.Name, c.Spec.Pod)
	w.tellOf(claims.Event{Claim: old.DeepCopy(), Deleted: true})
}

// put keeps a version of a node's object.
func (w *world) put(n *node, v order.View) {
	there := map[netip.Addr]bool{}
	for _, a := range order.Addresses(v.Status.Limits, v.Status.Releasing...) {
		there[a] = true
		if _, before := n.released[a]; !before {
			n.released[a] = w.now
		}
	}
	for a := range n.released {
		if !there[a] {
			delete(n.released, a)
		}
	}
	n.versions = append(n.versions, v)
}

// runAgent is a tick of a node's agent: it adopts what it has read and writes what goes back. What it reads may be late.
func (w *world) runAgent(n *node) {
	if n.silent || n.cut {
		return
	}
	if last := len(n.versions) - 1; w.well || w.IntN(4) > 0 {
		n.seen = last
	}
	v := n.versions[n.seen]
	links := map[string]eni.Interface{}
	for _, e := range v.Status.ENIs {
		links[e.ID] = eni.Interface{ID: e.ID, Index: e.Index, Device: fmt.Sprint("eth", e.Index), MTU: 1500, V4: e.V4}
	}
	c := order.Adopt(n.state, n.head, "boot", v).Due(n.state, w.now)
	if err := c.Apply(n.state, order.Node{Links: links}, w.now); err != nil {
		w.complain("%s adopts: %v", n.name, err)
	}
	if c.Revision > 0 {
		n.head = c.Head
	}
	if n.seen == len(n.versions)-1 {
		n.adopted = w.now
	}
	if w.traces {
		w.note("node cache", "%s by version %d of %d: %s", n.name, n.seen, len(n.versions), n.lines())
	}
	if order.Stale(n.head, v.Status) {
		w.writeSpec(n, v, order.Seen(n.state, v, n.head), nil)
		return
	}
	next, withdrawn := order.Withdraw(v, order.Publish(n.state, v), n.reservedAgain(v))
	w.writeSpec(n, v, order.Hear(v, next), withdrawn)
}

// reservedAgain returns what goes back and is reserved on the node again.
func (n *node) reservedAgain(v order.View) (list []netip.Addr) {
	for _, line := range n.state.Addresses {
		if line.State == eni.Releasing && len(order.ReservedAmong(v.Status.Reserved, []netip.Addr{line.Addr})) > 0 {
			list = append(list, line.Addr)
		}
	}
	return list
}

// writeSpec writes a spec with the version that was read. Only an answer takes back what is withdrawn.
func (w *world) writeSpec(n *node, v order.View, next order.Spec, withdrawn []netip.Prefix) {
	if n.seen != len(n.versions)-1 || reflect.DeepEqual(next, v.Spec) {
		return
	}
	w.put(n, order.View{Spec: next, Status: v.Status})
	w.note("published", "%s: %v", n.name, next.Release)
	if !w.well && w.IntN(8) == 0 { // the answer is lost
		return
	}
	n.seen = len(n.versions) - 1
	back := order.Confirmed(n.current(), withdrawn)
	n.state.CancelRelease(back, w.now)
	n.state.Reserve(order.Reservations(order.ReservedAmong(n.current().Status.Reserved, back)), w.now) // no pod gets it in between
}

// runKubelet ends the sandboxes of pods that are gone and starts those that are new. It needs no agent, but it has to reach the API server.
func (w *world) runKubelet(n *node) {
	if n.cut {
		return
	}
	live := map[string]bool{}
	for _, p := range w.pods {
		live[p.UID] = p.Node == n.name && !p.Ended
	}
	for _, line := range n.state.FreeIf(func(a eni.Address) bool { return !live[a.Owner.Container] }, w.now) {
		w.note("sandbox ended", "%s on %s", line.Addr, n.name)
	}
	for _, of := range w.names {
		if p := w.pods[of]; p != nil && live[p.UID] {
			w.showPod(n, p)
			w.startPod(n, p)
		}
	}
}

// showPod has the kubelet show what a pod has, a moment after it has it.
func (w *world) showPod(n *node, p *pod) {
	for _, line := range n.state.Addresses {
		if line.State == eni.Used && line.Owner.Container == p.UID && p.V4 != line.Addr && (w.well || w.IntN(6) == 0) {
			p.V4 = line.Addr
			w.note("shown", "%s of %s %s", p.V4, p.Name.Name, p.UID)
			w.tellOfPod(p.Pod, false)
		}
	}
}

// startPod is the ADD of a pod's sandbox.
func (w *world) startPod(n *node, p *pod) {
	owner := eni.Owner{Key: eni.Key{Network: "net", Container: p.UID, IfName: "eth0"}, Namespace: p.Namespace, Pod: p.Name.Name, UID: p.UID}
	if w.off == uids {
		owner.UID = ""
	}
	got, err := n.state.AssignReserved(owner, p.Topology, "", w.now)
	if err != nil || len(got.Addresses) == 0 {
		return
	}
	w.checkGiven(n, p, got.Addresses[0].Addr)
}

// asAddrs returns addresses as prefixes.
func asPrefixes(list []netip.Addr) (all []netip.Prefix) {
	for _, a := range list {
		all = append(all, netip.PrefixFrom(a, a.BitLen()))
	}
	return all
}

// lines returns what the node state has, for people.
func (n *node) lines() (text string) {
	for _, line := range n.state.Addresses {
		text += fmt.Sprintf(" %s %s", line.Addr, line.State)
		if line.Reservation != nil {
			text += fmt.Sprintf(" for %s %s", line.Reservation.PodName(), line.Reservation.UID)
		}
		if line.Lost {
			text += " lost"
		}
	}
	return text
}
