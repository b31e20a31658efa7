package fleet

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/order"
)

// own takes in that a pod got an address: no other has it, and its node does.
func (w *world) own(addr netip.Addr, n *node, p *pod) {
	on := ""
	w.account.View(0, func(tx *sim.Tx) {
		for _, i := range tx.InterfacesOf(n.instance, "", "") {
			if i.Attachment != nil && slices.Contains(i.V4, addr) {
				on = i.Attachment.Instance
			}
		}
	})
	w.mu.Lock()
	other := w.owners[addr]
	w.owners[addr] = p.owner.Container
	w.mu.Unlock()
	if other != "" {
		w.complain("%s has two owners: %s and %s", addr, other, p.owner.Container)
	}
	if on != n.instance {
		w.complain("%s gets %s, which is not on its node", p.owner.Container, addr)
	}
}

func (w *world) disown(addr netip.Addr) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.owners, addr)
}

// places returns which instance has each secondary address.
func (w *world) places() map[netip.Addr]string {
	on := make(map[netip.Addr]string, 1024)
	w.account.View(0, func(tx *sim.Tx) {
		for _, i := range tx.Interfaces() {
			if i.Attachment == nil {
				continue
			}
			for _, a := range i.V4 {
				on[a] = i.Attachment.Instance
			}
		}
	})
	return on
}

// check demands what must hold at all times: an address that a pod has, or may get, is on the pod's node.
func (w *world) check() {
	if err := w.account.Check(); err != nil {
		w.complain("the account: %v", err)
	}
	on := w.places()
	for _, n := range w.allNodes() {
		if n.misplaced(on) == "" {
			continue
		}
		if bad := n.misplaced(w.places()); bad != "" { // what came this very moment the places of before lack
			w.complain("%s", bad)
		}
	}
}

// misplaced says which address of the node is not where pods would use it.
func (n *node) misplaced(on map[netip.Addr]string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.deleted {
		return ""
	}
	for _, p := range n.pods {
		if p.addr.IsValid() && on[p.addr] != n.instance {
			return fmt.Sprintf("%s uses %s, which is on %q", p.owner.Container, p.addr, on[p.addr])
		}
	}
	if n.state == nil {
		return ""
	}
	for _, line := range n.state.Addresses {
		if line.State != eni.Releasing && on[line.Addr] != n.instance {
			return fmt.Sprintf("%s of %s is %s and is on %q", line.Addr, n.name, line.State, on[line.Addr])
		}
	}
	if err := n.state.Check(); err != nil {
		return fmt.Sprintf("%s: %v", n.name, err)
	}
	return ""
}

// unsettled says what is not as it should be in the end, "" for nothing: each pod has an address, each node what it asks for, nothing is on
// its way, the node caches have what the cloud has, and no ENI is anybody's but a node's.
func (w *world) unsettled() string {
	enis, loose := map[string][]sim.Interface{}, []sim.Interface{}
	w.account.View(0, func(tx *sim.Tx) {
		for _, i := range tx.Interfaces() {
			if i.Attachment != nil && i.Status == sim.InUse {
				enis[i.Attachment.Instance] = append(enis[i.Attachment.Instance], i)
			} else {
				loose = append(loose, i)
			}
		}
	})
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	if len(loose) > 0 { // what was begun and is not needed ends, too
		return fmt.Sprintf("ENI %s with %v is %s", loose[0].ID, loose[0].Tags, loose[0].Status)
	}
	for _, name := range w.store.names("network") {
		if !slices.ContainsFunc(w.nodes, func(n *node) bool { return n.name == name }) {
			return fmt.Sprintf("an object of no node: %+v", w.store.network(name))
		}
	}
	for _, n := range w.nodes {
		if bad := n.unsettled(w.store.network(n.name), enis[n.instance]); bad != "" {
			return n.name + ": " + bad
		}
	}
	return ""
}

func (n *node) unsettled(o *crd.NodeNetwork, enis []sim.Interface) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if o == nil || n.state == nil {
		newest, read := n.life.object.Newest()
		return fmt.Sprintf("no object or no node cache: %v; the agent knows %+v: %v, wrong: %v", o, newest, read, n.life.object.Wrong())
	}
	for _, p := range n.pods {
		if !p.addr.IsValid() {
			return fmt.Sprintf("%s has no address; %+v; %+v", p.owner.Container, o.Spec, o.Status)
		}
	}
	v, err := crd.View(o)
	open := len(o.Spec.Release) + len(o.Spec.ReleaseInterfaces) + len(o.Status.Releasing) + len(o.Status.LeavingInterfaces) + len(o.Status.Quarantined)
	if err != nil || o.Status.Mode != crd.Operator || o.Status.ObservedGeneration != o.Generation || open > 0 || !order.Satisfied(v.Spec, v.Status, 0) {
		return fmt.Sprintf("generation %d, %d open, spec %+v, status %+v, %v", o.Generation, open, o.Spec, o.Status, err)
	}
	var there, lines []netip.Addr
	for _, i := range enis {
		there = append(there, i.V4...)
	}
	for _, line := range n.state.Addresses {
		if line.State == eni.Releasing || line.Lost || line.State == eni.Held {
			return fmt.Sprintf("%s is %s, lost: %v", line.Addr, line.State, line.Lost)
		}
		lines = append(lines, line.Addr)
	}
	slices.SortFunc(there, netip.Addr.Compare)
	slices.SortFunc(lines, netip.Addr.Compare)
	if !slices.Equal(there, lines) {
		return fmt.Sprintf("the node cache has %v, the cloud %v", lines, there)
	}
	return ""
}

// traffic is what the cloud and the API server were asked for so far.
type traffic struct{ writes, changes, describes int }

func (w *world) traffic() (t traffic) {
	w.store.mu.Lock()
	for _, n := range w.store.writes {
		t.writes += n
	}
	w.store.mu.Unlock()
	for action, n := range w.account.Calls() {
		switch action {
		case sim.ActDescribe, sim.ActSubnets, sim.ActShape, sim.ActAlive:
			t.describes += n
		default:
			t.changes += n
		}
	}
	return t
}

// settle demands that all comes right within a time, and that then nothing is written and nothing is called but describes.
func (w *world) settle(within time.Duration) {
	begin, calm := time.Now(), 0
	for last := w.traffic(); calm < 6; {
		sleep(w.ctx, time.Minute)
		bad, now := w.unsettled(), w.traffic()
		if w.isWrong() {
			return
		}
		if time.Since(begin) > within {
			w.complain("it has not come right after %s: %s; %+v; the leader: %s", within, bad, now, w.explain())
			return
		}
		calm++
		if bad != "" || now.writes != last.writes || now.changes != last.changes {
			calm = 0
		}
		last = now
	}
	w.note("settled after %s", time.Since(begin))
	before := w.traffic()
	sleep(w.ctx, quiet)
	after := w.traffic()
	if after.writes != before.writes {
		w.complain("%d writes in %s of a quiet cluster: %v", after.writes-before.writes, quiet, w.store.writes)
	}
	if after.changes != before.changes {
		w.complain("%d changes in %s of a quiet cluster: %v", after.changes-before.changes, quiet, w.account.Calls())
	}
	// A describe of everything is a request for 200 nodes, one for the subnets and one for types.
	if most := (int(quiet/describe) + 1) * (3 + len(w.nodes)/200); after.describes-before.describes > most {
		w.complain("%d describes in %s of a quiet cluster, at most %d", after.describes-before.describes, quiet, most)
	}
	if bad := w.unsettled(); bad != "" {
		w.complain("after %s of quiet: %s", quiet, bad)
	}
}

const (
	quiet    = 20 * time.Minute
	describe = 5 * time.Minute
)
