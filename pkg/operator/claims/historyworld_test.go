package claims_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator/claims"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/topology"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The times of these histories. A call that was sent takes effect within validity or never.
const (
	validity    = 30 * time.Second
	callTimeout = 5 * time.Second
	stickyTTL   = 3 * time.Minute
)

// Sizes of an instance.
const (
	perENI   = 5
	mostENIs = 3
)

var (
	lease = order.Lease{Duration: 15 * time.Second, Settle: 5 * time.Second, Fence: validity + 10*time.Second}
	dawn  = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
)

type name = claims.Name

// world is two zones with two nodes each, the pods of a StatefulSet and others, an API server, a cloud and operators. All of it is the truth;
// what an operator or an agent knows of it is theirs.
type world struct {
	*rand.Rand
	off    string // the rule that is left out, "" for none
	cross  bool   // the cloud puts addresses of other subnets on ENIs, and few nodes have an ENI in those of the topologies
	now    time.Duration
	serial int
	well   bool // nothing goes wrong any more

	uncrossed bool // the cloud refuses addresses of other subnets

	names    []name
	pods     map[name]*pod
	setThere bool
	objects  map[string]*crd.AddressClaim
	kinds    []*crd.PodSubnetTopology
	late     []func() // writes that were given up, and have yet to land
	nodes    []*node
	cloud    map[netip.Addr]place
	calls    []*call
	leaders  []*leader // the last one leads; those before may not know
	epoch    int64

	promises map[name]promise
	lastPods map[string]string // the pods' uids that claims go to the end with which people have deleted under them
	history
}

// history is what has happened.
type history struct {
	counts map[string]int
	notes  []string
	traces bool
	wrong  []string
}

// pod is one in the API server.
type pod struct {
	claims.Pod
	of    string // the topology that it gets once it is classified
	gated bool
	zones []string
	seen  *topology.Cluster // by which it was classified last
}

// node is a node with its object in all its versions, its ENIs in the cloud, and its agent with the node state.
type node struct {
	name, zone  string
	nics        []nic
	versions    []order.View
	released    map[netip.Addr]time.Duration // since when the status says that an address goes
	cut, silent bool
	state       *ipam.State
	head        order.Head
	seen        int                   // version
	adopted     time.Duration         // when the agent took in the newest version last
	early       map[netip.Addr]string // addresses that pods have before they are there
	cameEarly   map[netip.Addr]string // what was early, with the pod that has it or had it
}

// nic is an ENI of the cloud.
type nic struct {
	id, subnet, token string
	index             int
}

func (n *node) current() order.View { return n.versions[len(n.versions)-1] }

// promise is what pods of a name have run with.
type promise struct {
	addr netip.Addr
	gone time.Duration // since when none has, 0: one does
}

func (w *world) wall() time.Time { return dawn.Add(w.now) }

func (w *world) nextSerial() int {
	w.serial++
	return w.serial
}

// source returns a range of a subnet.
func source(subnet, net, from, to string) crd.Source {
	return crd.Source{ID: subnet, Ranges: []crd.Range{{From: net + from, To: net + to}}}
}

func newWorld(seed uint64, off string) *world {
	w := &world{Rand: newRand(seed), off: off, cross: off == "" && seed%2 == 0, now: time.Hour, pods: map[name]*pod{}, setThere: true, objects: map[string]*crd.AddressClaim{}, cloud: map[netip.Addr]place{},
		promises: map[name]promise{}, lastPods: map[string]string{}, history: history{counts: map[string]int{}}}
	for _, pod := range strings.Fields("fixed-0 fixed-1 fixed-2 sticky-0 sticky-1 sticky-2 elastic-0 elastic-1 tight-0 tight-1") {
		w.names = append(w.names, name{Namespace: "ns", Name: pod})
	}
	for _, kind := range []struct{ name, strategy, from, to string }{{"fixed", "Fixed", "16", "19"}, {"sticky", "Sticky", "24", "27"}, {"elastic", "Elastic", "32", "34"}, {"tight", "Sticky", "40", "40"}} {
		is := &crd.PodSubnetTopology{ObjectMeta: metav1.ObjectMeta{Name: kind.name, UID: types.UID(kind.name)}, Spec: crd.TopologySpec{Strategy: crd.Strategy{Type: kind.strategy},
			PodSelector: crd.Selector{MatchLabels: map[string]string{"of": kind.name}}, Subnets: []crd.Source{source("a", "10.0.0.", kind.from, kind.to)}}}
		if kind.name != "tight" {
			is.Spec.Subnets = append(is.Spec.Subnets, source("b", "10.0.1.", kind.from, kind.to))
		}
		if kind.strategy == "Sticky" {
			is.Spec.Strategy.TTL = stickyTTL.String()
		}
		w.kinds = append(w.kinds, is)
	}
	coolDown := time.Duration(w.IntN(2)) * 20 * time.Second
	for i, zone := range []string{"zone-a", "zone-a", "zone-b", "zone-b"} {
		n := &node{name: fmt.Sprint("node-", i), zone: zone, released: map[netip.Addr]time.Duration{}, early: map[netip.Addr]string{}, cameEarly: map[netip.Addr]string{}}
		n.nics = []nic{{id: n.name + "/0", subnet: "p"}}
		switch {
		case w.cross:
			n.nics = append(n.nics, nic{id: n.name + "/1", subnet: "q", index: 1})
		case i%2 == 0: // the others get an ENI when a pod needs one
			n.nics = append(n.nics, nic{id: n.name + "/1", subnet: subnetOf(zone), index: 1})
		}
		n.state = &ipam.State{Settings: ipam.Settings{MarkMask: ipam.DefaultMarkMask, Families: []eni.Family{eni.IPv4}, CoolDown: coolDown}}
		status := order.Status{Mode: order.Operator, Revision: 1, Limits: eni.Limits{ENIs: mostENIs, V4: perENI, NoPrimary: true}}
		for _, is := range n.nics {
			status.ENIs = append(status.ENIs, is.asENI())
		}
		n.versions = []order.View{{Spec: order.Spec{Mode: order.Operator, Families: []eni.Family{eni.IPv4}, Boot: "boot"}, Status: status}}
		w.nodes = append(w.nodes, n)
	}
	w.lead()
	return w
}

// tell tells all leaders of a change. It reaches each of them later.
func (w *world) tell(do func(*leader)) {
	for _, l := range w.leaders {
		if !l.dead {
			l.inbox = append(l.inbox, do)
		}
	}
}

func (w *world) tellOf(e claims.Event) {
	w.tell(func(l *leader) { l.take(e) })
}

// createPod makes a pod, gated, as the API server does.
func (w *world) createPod(of name) {
	kind, _, _ := strings.Cut(of.Name, "-")
	if w.pods[of] != nil || kind == "fixed" && !w.setThere {
		return
	}
	p := &pod{Pod: claims.Pod{Name: of, UID: fmt.Sprint("pod-", w.nextSerial())}, of: kind, gated: true}
	if kind == "fixed" {
		p.StatefulSet = topology.Workload{Name: "db", UID: "set"}
	}
	w.pods[of] = p
}

// truth is all that the classifier goes by: it reads the claims and topologies before it decides.
func (w *world) truth() *topology.Cluster {
	k := &topology.Cluster{Subnets: subnets(), Families: []eni.Family{eni.IPv4}}
	for _, is := range w.kinds {
		of, err := is.Read()
		if err != nil {
			panic(err)
		}
		k.Topologies = append(k.Topologies, of)
	}
	for _, c := range w.objects {
		if is, err := c.Read(); err == nil {
			k.Claims.Put(is)
		}
	}
	return k
}

// classify opens a pod's gate if its topology can serve it.
func (w *world) classify(of name) {
	p := w.pods[of]
	if p == nil || !p.gated {
		return
	}
	is := topology.Pod{Namespace: of.Namespace, Name: of.Name, UID: p.UID, StatefulSet: p.StatefulSet, Labels: map[string]string{"of": p.of}}
	if w.off != again || p.seen == nil {
		p.seen = w.truth()
	}
	class, wait := topology.Classify(is, p.seen)
	if wait.Cause != topology.None {
		w.note("gate stays", "%s: %s", of.Name, wait.Message)
		return
	}
	p.gated, p.Topology, p.zones = false, class.Topology, class.Zones
	w.note("gate opened", "%s %s in %v", of.Name, p.UID, p.zones)
	w.tellOfPod(p.Pod, false)
}

func (w *world) tellOfPod(p claims.Pod, deleted bool) {
	w.tellOf(claims.Event{Pod: &p, Deleted: deleted})
}

// bind puts a pod on a node of its zones.
func (w *world) bind(of name) {
	p := w.pods[of]
	if p == nil || p.gated || p.Node != "" {
		return
	}
	fits := slices.DeleteFunc(slices.Clone(w.nodes), func(n *node) bool { return n.cut || !slices.Contains(p.zones, n.zone) })
	if len(fits) > 0 {
		w.bindTo(of, fits[w.IntN(len(fits))])
	}
}

// bindTo puts a pod on a node, if it may be there.
func (w *world) bindTo(of name, n *node) {
	p := w.pods[of]
	if p == nil || p.gated || p.Node != "" || n.cut || !slices.Contains(p.zones, n.zone) {
		return
	}
	p.Node = n.name
	w.note("bound", "%s %s to %s", of.Name, p.UID, p.Node)
	w.tellOfPod(p.Pod, false)
}

// removePod deletes a pod: its sandbox ends first, or people do not wait for that.
func (w *world) removePod(of name) {
	if p := w.pods[of]; p != nil && w.IntN(2) == 0 {
		for _, n := range w.nodes {
			if n.name == p.Node && !n.cut {
				n.state.FreeIf(func(a eni.Address) bool { return a.Owner.Container == p.UID }, w.now)
			}
		}
	}
	w.deletePod(of)
}

func (w *world) deletePod(of name) {
	p := w.pods[of]
	if p == nil {
		return
	}
	delete(w.pods, of)
	w.note("deleted", "%s %s of %s", of.Name, p.UID, p.Node)
	w.endPromise(of)
	if !p.gated {
		w.tellOfPod(p.Pod, true)
	}
}

func (w *world) endPod(of name) {
	if p := w.pods[of]; p != nil && !p.gated && !p.Ended {
		p.Ended = true
		w.note("pod ended", "%s %s", of.Name, p.UID)
		w.endPromise(of)
		w.tellOfPod(p.Pod, false)
	}
}

// endPromise notes that no pod of the name needs its address from now on.
func (w *world) endPromise(of name) {
	if is, has := w.promises[of]; has && is.gone == 0 {
		is.gone = w.now
		w.promises[of] = is
	}
}

// setCut has the cluster reach a node or not. Its pods run on.
func (w *world) setCut(n *node, cut bool) {
	if n.cut == cut {
		return
	}
	n.cut = cut
	w.note("cut", "%s: %v", n.name, cut)
	w.tell(func(l *leader) { l.cut[n.name] = cut })
}

// landLate lets a write land that its writer has given up.
func (w *world) landLate() {
	if len(w.late) > 0 {
		at := w.IntN(len(w.late))
		do := w.late[at]
		w.late = slices.Delete(w.late, at, at+1)
		do()
	}
}
