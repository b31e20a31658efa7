package claims_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator/claims"
	"github.com/enipool/enipool/pkg/topology"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// jumble is what a leader knows, without a cluster behind it: anything may be true.
type jumble struct {
	*rand.Rand
	claims.Checked
	known    *claims.Known
	families []eni.Family
	now      time.Time
	mono     time.Duration
	settled  bool
	serial   int
	nodes    map[string]claims.Node
	pods     map[name]claims.Pod
	objects  map[netip.Addr]*crd.AddressClaim
}

// The kinds of topologies of a jumble, each with so many addresses of a family.
var jumbleKinds = []string{"Sticky", "Fixed", "Elastic", "Elastic"}

const (
	jumbleAddrs = 6
	jumblePods  = 8
	jumbleNodes = 3
	jumbleRoom  = 4 // addresses of a family on an ENI
)

func newJumble(seed uint64) *jumble {
	w := &jumble{Rand: newRand(seed), families: []eni.Family{eni.IPv4}, now: dawn, settled: true, nodes: map[string]claims.Node{}, pods: map[name]claims.Pod{}, objects: map[netip.Addr]*crd.AddressClaim{}}
	if seed%2 == 0 {
		w.families = append(w.families, eni.IPv6)
	}
	w.known = claims.New(w.families, 5*time.Second)
	for kind := range jumbleKinds {
		w.takeKind(kind, false)
	}
	w.known.SetSubnets(w.subnets())
	for i := range jumbleNodes {
		w.setNode(w.newNode(i))
	}
	w.take(claims.Event{Pods: &[]claims.Pod{}})
	w.take(claims.Event{Complete: true})
	return w
}

func (w *jumble) take(e claims.Event) { _ = w.known.Take(e) } // some can't be read

func jumbleAddr(kind, i int, f eni.Family) netip.Addr {
	if f == eni.IPv6 {
		return netip.AddrFrom16([16]byte{0: 0xfd, 13: byte(kind), 15: byte(16 + i)})
	}
	return netip.AddrFrom4([4]byte{10, 0, byte(kind), byte(16 + i)})
}

func (w *jumble) anyAddr() (at netip.Addr, kind int) {
	kind = w.IntN(len(jumbleKinds))
	return jumbleAddr(kind, w.IntN(jumbleAddrs), w.families[w.IntN(len(w.families))]), kind
}

func jumbleSubnet(kind int) string { return []string{"a", "b"}[kind%2] }

func (w *jumble) takeKind(kind int, deleted bool) {
	is := &crd.PodSubnetTopology{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("kind-", kind)}, Spec: crd.TopologySpec{Strategy: crd.Strategy{Type: jumbleKinds[kind]}}}
	if kind == 0 {
		is.Spec.Strategy.TTL = "1m"
	}
	if kind == 3 {
		is.Spec.Warm = int32(w.IntN(3))
	}
	from := crd.Source{ID: jumbleSubnet(kind)}
	for _, f := range w.families {
		from.Ranges = append(from.Ranges, crd.Range{From: jumbleAddr(kind, 0, f).String(), To: jumbleAddr(kind, jumbleAddrs-1, f).String()})
	}
	is.Spec.Subnets = []crd.Source{from}
	w.take(claims.Event{Topology: is, Deleted: deleted})
}

func (w *jumble) subnets() (list []topology.Subnet) {
	for _, id := range []string{"a", "b"} {
		list = append(list, topology.Subnet{ID: id, Zone: "z", V4: netip.MustParsePrefix("10.0.0.0/16"), V6: netip.MustParsePrefix("fd00::/64"), Ready: w.IntN(20) > 0, Exclusive: true, KeptFirst: 4, KeptLast: 1})
	}
	return list
}

func (w *jumble) newNode(i int) claims.Node {
	n := claims.Node{Name: fmt.Sprint("node-", i), Zone: "z", Told: true, Serves: true, MayMake: true}
	for _, id := range []string{"a", "b"}[:1+w.IntN(2)] {
		n.ENIs = append(n.ENIs, claims.ENI{ID: n.Name + "/" + id, Subnet: id})
	}
	return n
}

// setNode tells of a node, with what its ENIs have room for.
func (w *jumble) setNode(n claims.Node) {
	n.ENIs = slices.Clone(n.ENIs)
	for i := range n.ENIs {
		e := &n.ENIs[i]
		e.Room = map[eni.Family]int{eni.IPv4: jumbleRoom, eni.IPv6: jumbleRoom}
		e.Addresses = slices.Clone(e.Addresses)
		slices.SortFunc(e.Addresses, netip.Addr.Compare)
		e.Addresses = slices.Compact(e.Addresses)
		for _, at := range e.Addresses {
			e.Room[eni.FamilyOf(at)] = max(0, e.Room[eni.FamilyOf(at)]-1)
		}
	}
	w.nodes[n.Name] = n
	w.known.SetNode(n)
}

// obey does what was decided.
func (w *jumble) obey(steps claims.Steps) {
	for _, s := range steps.Writes {
		next := w.objects[s.Addr].DeepCopy()
		next.Status.Write(s.Status)
		next.Status.Message = s.Message
		w.known.NoteWritten(s.Addr, w.known.Status(s.Addr), s.Status)
		w.takeClaim(next)
	}
	for _, c := range steps.Creates {
		object, err := crd.NewAddressClaim(c)
		if err != nil {
			panic(err)
		}
		w.known.NoteCreating(c, false)
		object.UID = types.UID(fmt.Sprint(w.next()))
		w.takeClaim(object)
	}
	for _, at := range steps.Deletes {
		w.deleteClaim(at)
	}
	for _, at := range steps.Forgets {
		w.dropClaim(at)
	}
	for _, of := range steps.Reads {
		w.read(of)
	}
	if steps.Sets {
		w.takeSets()
	}
	for _, node := range slices.Sorted(maps.Keys(steps.Nodes)) {
		w.obeyOrders(node, steps.Nodes[node])
	}
}

// obeyOrders does what was decided for a node.
func (w *jumble) obeyOrders(node string, o claims.Orders) {
	n, is := w.nodes[node]
	if !is {
		return
	}
	n.Reserved, n.Releasing, n.Published, n.ENIs = o.Reserved, maps.Clone(n.Releasing), maps.Clone(n.Published), slices.Clone(n.ENIs)
	if n.Releasing == nil {
		n.Releasing, n.Published = map[netip.Addr]bool{}, map[netip.Addr]bool{}
	}
	for _, at := range o.Seize {
		n.Releasing[at], n.Published[at] = true, w.IntN(2) == 0
	}
	for i := range n.ENIs {
		e := &n.ENIs[i]
		e.Addresses = slices.DeleteFunc(slices.Clone(e.Addresses), func(at netip.Addr) bool { return slices.Contains(o.Take[e.ID], at) })
		for _, at := range o.Take[e.ID] {
			delete(n.Releasing, at)
			delete(n.Published, at)
		}
		e.Addresses = append(e.Addresses, o.Assign[e.ID]...)
	}
	if o.Make.Subnet != "" {
		n.Created++
		n.ENIs = append(n.ENIs, claims.ENI{ID: fmt.Sprint(node, "/", n.Created, o.Make.Subnet), Subnet: o.Make.Subnet})
		n.MayMake = len(n.ENIs) < 4
	}
	w.setNode(n)
	for _, r := range o.Reserved { // kubelets show what pods have
		if p, is := w.pods[name{Namespace: r.Namespace, Name: r.Pod}]; is && p.UID == r.UID && w.IntN(2) == 0 {
			if r.Addr.Is4() {
				p.V4 = r.Addr
			} else {
				p.V6 = r.Addr
			}
			w.setPod(p)
		}
	}
}

func (w *jumble) next() int {
	w.serial++
	return w.serial
}

func (w *jumble) setPod(p claims.Pod) {
	w.pods[p.Name] = p
	w.take(claims.Event{Pod: &p})
}

// takeClaim tells of a claim's next object.
func (w *jumble) takeClaim(c *crd.AddressClaim) {
	c.ResourceVersion = fmt.Sprint(100_000 + w.next())
	w.objects[netip.MustParseAddr(c.Spec.Address)] = c
	w.take(claims.Event{Claim: c})
}

func (w *jumble) deleteClaim(at netip.Addr) {
	if c := w.objects[at]; c != nil && c.DeletionTimestamp == nil {
		next := c.DeepCopy()
		next.DeletionTimestamp = &metav1.Time{Time: w.now}
		w.takeClaim(next)
	}
}

func (w *jumble) dropClaim(at netip.Addr) {
	if c := w.objects[at]; c != nil {
		delete(w.objects, at)
		w.take(claims.Event{Claim: c, Deleted: true})
	}
}

func (w *jumble) read(of name) {
	var is *claims.Pod
	if p, has := w.pods[of]; has {
		is = &p
	}
	w.known.NoteRead(of, is, w.now)
}

func (w *jumble) takeSets() {
	var list []name
	if w.IntN(3) > 0 {
		list = append(list, name{Namespace: "ns", Name: "db"})
	}
	w.known.TakeSets(list, w.now)
}
