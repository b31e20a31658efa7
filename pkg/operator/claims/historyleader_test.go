package claims_test

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator/claims"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/topology"
)

// leader is an operator in its term. What it knows comes late.
type leader struct {
	w                 *world
	epoch             int64
	acquired, renewed time.Duration
	described         time.Duration // when its last describe of everything began, 0: none has
	paused, dead      bool
	known             *claims.Known
	claims.Checked
	cut       map[string]bool
	gone      map[string]bool // as cut was when nodes were noted last
	decided   map[string]bool // as gone was at the last decision
	inbox     []func(*leader)
	members   []*member
	orders    map[string]claims.Orders
	setsAt    time.Duration // when StatefulSets may be listed next
	noCrossTo time.Duration // until when ENIs get no addresses of other subnets
}

// member is a node as a leader knows it.
type member struct {
	term   *order.Term
	seen   int // version of the object
	shown  *order.Description
	nics   []nic // that this shows
	deeds  []func(*order.Term, order.View) order.Status
	jobs   map[string]*call
	unsure map[string]time.Duration // ENIs of whose last call nobody knows the outcome
	open   map[netip.Addr]bool
}

func (w *world) leader() *leader { return w.leaders[len(w.leaders)-1] }

// lead lets the next operator lead.
func (w *world) lead() {
	var epochs []int64
	for _, n := range w.nodes {
		epochs = append(epochs, n.current().Status.Epoch)
	}
	w.epoch = order.NextEpoch(w.epoch, epochs...)
	l := &leader{w: w, epoch: w.epoch, acquired: w.now, renewed: w.now, known: claims.New([]eni.Family{eni.IPv4}, lease.Settle), cut: map[string]bool{}, gone: map[string]bool{}}
	var pods []claims.Pod
	for _, p := range w.pods {
		if !p.gated {
			pods = append(pods, p.Pod)
		}
	}
	for _, kind := range w.kinds {
		l.inbox = append(l.inbox, func(l *leader) { l.take(claims.Event{Topology: kind}) })
	}
	for _, c := range w.objects {
		is := c.DeepCopy()
		l.inbox = append(l.inbox, func(l *leader) { l.take(claims.Event{Claim: is}) })
	}
	for _, e := range []claims.Event{{Complete: true}, {Pods: &pods}, {Pods: &pods}} {
		l.inbox = append(l.inbox, func(l *leader) { l.take(e) })
	}
	for _, n := range w.nodes {
		l.cut[n.name] = n.cut
		l.members = append(l.members, &member{term: order.NewTerm(lease, l.epoch, w.now), seen: len(n.versions) - 1, jobs: map[string]*call{}, unsure: map[string]time.Duration{}, open: map[netip.Addr]bool{}})
	}
	w.leaders = append(w.leaders, l)
	l.known.SetSubnets(subnets())
}

// killLeader ends the one that leads, in the middle of what it does: mostly its lease runs out before the next one leads. Or it is told to end, and gives
// its lease away once its calls have ended.
func (w *world) killLeader() {
	l := w.leader()
	if w.IntN(3) > 0 {
		w.now += lease.Duration
	} else {
		for _, c := range slices.Clone(w.calls) {
			if c.by == l {
				w.takeEffect(c)
			}
		}
	}
	l.dead = true
	w.note("leader killed", "")
	w.lead()
}

// pauseLeader has another one lead without the first one's knowledge.
func (w *world) pauseLeader() {
	w.leader().paused = true
	w.note("leader paused", "")
	w.now += lease.Duration
	w.lead()
}

// deliver has the leader hear of some of what has happened.
func (l *leader) deliver(count int) {
	for range min(count, len(l.inbox)) {
		do := l.inbox[0]
		if do(l); l.w.well || l.w.IntN(8) > 0 { // else it is told twice
			l.inbox = l.inbox[1:]
		}
	}
}

func (l *leader) take(e claims.Event) {
	if err := l.known.Take(e); err != nil {
		l.w.complain("%v", err)
	}
}

// describe has the leader ask what is there.
func (l *leader) describe() {
	if l.dead {
		return
	}
	l.described = l.w.now
	for i, n := range l.w.nodes {
		d := l.w.show(n)
		m := l.members[i]
		m.shown, m.nics = &d, slices.Clone(n.nics)
		maps.DeleteFunc(m.unsure, func(_ string, since time.Duration) bool { return d.Began.Mono >= since+lease.Settle })
	}
}

// turn lets the leader decide, and begin what follows.
func (l *leader) turn() {
	w := l.w
	if l.dead {
		return
	}
	if !l.paused {
		l.renewed = w.now
	}
	for i, m := range l.members {
		if w.well || w.IntN(4) > 0 {
			m.seen = len(w.nodes[i].versions) - 1
		}
		if !m.term.Led(w.nodes[i].versions[m.seen].Status) {
			l.dead = true // a later one leads
			return
		}
		l.reconcile(i)
	}
	l.decided = maps.Clone(l.gone)
	steps, bad := l.Decide(l.known, w.wall(), l.described >= l.acquired+lease.Settle)
	if bad != "" {
		w.complain("%s", bad)
	}
	l.orders = steps.Nodes
	l.doSteps(steps)
	for i := range l.members {
		l.reconcile(i)
	}
}

// noteNode tells what the claims go by of a node, once its object says all that came of calls and describes.
func (l *leader) noteNode(i int) {
	m, n := l.members[i], l.w.nodes[i]
	if len(m.jobs)+len(m.unsure) == 0 {
		clear(m.open)
	}
	v := n.versions[m.seen]
	is := claims.Node{Name: n.name, Zone: n.zone, Created: v.Status.Created, Gone: l.cut[n.name] || l.w.off == grace, Serves: !l.cut[n.name], Reserved: v.Status.Reserved,
		Releasing: map[netip.Addr]bool{}, Published: map[netip.Addr]bool{}, Quarantined: map[netip.Addr]bool{}, Open: maps.Clone(m.open)}
	is.Told = m.shown != nil && lease.MayDescribe(m.shown.Began.Mono, l.acquired) && v.Status.Epoch <= l.epoch && !order.IsBehind(v)
	for _, a := range order.Addresses(v.Status.Limits, v.Status.Releasing...) {
		is.Releasing[a] = true
	}
	for _, a := range order.Addresses(v.Status.Limits, v.Spec.Release...) {
		is.Published[a] = m.term.Heard(v.Spec)
	}
	for _, q := range v.Status.Quarantined {
		is.Quarantined[q.Prefix.Addr()] = true
	}
	for _, e := range v.Status.ENIs {
		on := claims.ENI{ID: e.ID, Subnet: e.Subnet, Addresses: order.Addresses(v.Status.Limits, e.Addresses...), Room: map[eni.Family]int{}}
		if _, unsure := m.unsure[e.ID]; !unsure && e.Index > 0 {
			on.Room[eni.IPv4] = max(0, perENI-1-len(e.Addresses))
		}
		is.ENIs = append(is.ENIs, on)
		for _, a := range on.Addresses {
			if l.w.off == withdraw {
				is.Releasing[a], is.Published[a] = true, true
			}
		}
	}
	is.Crosses = l.w.cross && l.w.now >= l.noCrossTo
	is.MayMake = is.Serves && len(v.Status.ENIs) < mostENIs
	l.gone[n.name] = l.cut[n.name]
	l.known.SetNode(is)
}

// doSteps writes claims and reads what is asked for.
func (l *leader) doSteps(steps claims.Steps) {
	w := l.w
	for _, s := range steps.Writes {
		next := l.known.Object(s.Addr).DeepCopy()
		next.Status.Write(s.Status)
		next.Status.Message = s.Message
		if next.UID == unwritten {
			next.ResourceVersion = fmt.Sprint(w.nextSerial())
			l.take(claims.Event{Claim: next})
			continue
		}
		l.request(next.Name, func() { w.writeObject(next) })
	}
	for _, c := range steps.Creates {
		l.createClaim(c)
	}
	// Answers come at once here: what one has told may be that an object is gone.
	for _, at := range steps.Deletes {
		is := l.known.Object(at)
		if is == nil {
			continue
		}
		l.request(is.Name, func() {
			if old := w.objects[is.Name]; old != nil && old.UID == is.UID && old.DeletionTimestamp == nil {
				w.beginDelete(old)
			}
		})
	}
	for _, at := range steps.Forgets {
		is := l.known.Object(at)
		if is == nil {
			continue
		}
		l.request(is.Name, func() { w.dropObject(is) })
	}
	for _, of := range steps.Reads {
		l.readPod(of)
	}
	if steps.Sets && w.now >= l.setsAt {
		l.setsAt = w.now + 30*time.Second
		var list []name
		if w.setThere || w.off == ends {
			list = append(list, name{Namespace: "ns", Name: "db"})
		}
		l.known.TakeSets(list, w.wall())
	}
}

// readPod reads a pod before its address is taken without its agent's word.
func (l *leader) readPod(of name) {
	var is *claims.Pod
	if p := l.w.pods[of]; p != nil && !p.gated {
		is = &p.Pod
	}
	l.known.NoteRead(of, is, l.w.wall())
}

// unwritten is the uid of an object that its leader has not written yet, though it goes by it.
const unwritten = "unwritten"

func (l *leader) createClaim(c topology.Claim) {
	object, err := crd.NewAddressClaim(c)
	if err != nil {
		return
	}
	object.Finalizers = []string{claims.Finalizer}
	if l.w.off == first { // the call does not wait for the object
		l.w.late = append(l.w.late, func() { l.w.createObject(object) })
		object = object.DeepCopy()
		object.UID, object.ResourceVersion = unwritten, "0"
		l.take(claims.Event{Claim: object})
		return
	}
	l.request(object.Name, func() { l.w.createObject(object) })
}

// request does a write, or loses it or its answer, or has it land when nobody expects it any more, and reads what is there then.
func (l *leader) request(object string, do func()) {
	w := l.w
	switch luck := w.IntN(25); {
	case luck == 0 && !w.well:
	case luck == 1 && !w.well:
		w.late = append(w.late, do)
	default:
		do()
	}
	at := netip.MustParseAddr(object)
	if is := w.objects[object]; is != nil {
		l.take(claims.Event{Claim: is.DeepCopy()})
	} else if gone := l.known.Object(at); gone != nil && gone.UID != unwritten {
		l.take(claims.Event{Claim: gone, Deleted: true})
	}
}
