package claims

import (
	"cmp"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/topology"
	"k8s.io/apimachinery/pkg/types"
)

// Known is all that a leader knows of topologies and of the addresses of their pods.
type Known struct {
	families   []eni.Family
	settle     time.Duration
	pods       map[Name]Pod
	lists      int // complete lists of pods
	claims     map[netip.Addr]held
	unread     map[netip.Addr]bool // claims that this release can't read: nobody gets the address
	ended      map[types.UID]int   // claims' objects that are gone, numbered: the watch may still tell of them
	gone       int                 // the last number
	topologies map[string]topology.Topology
	subnets    []topology.Subnet
	complete   bool

	nodes map[string]Node
	where map[netip.Addr][]string // nodes that have an address
	memory
	moving moving

	index  topology.Claims    // all that can be read
	open   map[netip.Addr]int // calls of how many nodes are about an address
	beside map[netip.Addr]int // what nodes have beside the addresses of their ENIs, or wait for, and what pods show, and how often
	quiet  quiet
}

// memory is what a leader remembers. The next one finds it out again, or waits once more.
type memory struct {
	elastic  map[netip.Addr]kept
	seen     map[warmth]time.Time     // when nodes had pods last of topologies that keep addresses ready
	freed    map[netip.Addr]time.Time // when pods had ended that had an address
	asked    map[netip.Addr]time.Time // since when a node's status says that an address goes
	refused  map[netip.Addr]refusal   // of the cloud, the last
	wanted   map[netip.Addr]time.Time // since when an address is to be taken without the agent's word
	read     map[Name]time.Time       // when the last read of a pod began that has ended
	creating map[netip.Addr]topology.Claim
	sets     sets
	left     left
}

// held is a claim with its object.
type held struct {
	topology.Claim
	object *crd.AddressClaim
}

// kept is an address of an Elastic topology, and whose it is: of no pod while it is ready for the next one.
type kept struct {
	node string
	order.Reserved
}

// New returns a Known that knows nothing. settle is for how long what a list lacks may have been missed.
func New(families []eni.Family, settle time.Duration) *Known {
	return &Known{families: families, settle: settle, pods: map[Name]Pod{}, claims: map[netip.Addr]held{}, unread: map[netip.Addr]bool{}, ended: map[types.UID]int{},
		topologies: map[string]topology.Topology{}, nodes: map[string]Node{}, where: map[netip.Addr][]string{},
		memory: memory{elastic: map[netip.Addr]kept{}, seen: map[warmth]time.Time{}, freed: map[netip.Addr]time.Time{}, asked: map[netip.Addr]time.Time{}, refused: map[netip.Addr]refusal{},
			wanted: map[netip.Addr]time.Time{}, read: map[Name]time.Time{}, creating: map[netip.Addr]topology.Claim{}, sets: sets{lacks: map[Name]time.Time{}}},
		moving: newMoving(), open: map[netip.Addr]int{}, beside: map[netip.Addr]int{}, quiet: newQuiet()}
}

// Take takes in a change. With an error the object counts as little as it can.
func (k *Known) Take(e Event) error {
	switch {
	case e.Pod != nil:
		k.markPod(e.Pod.Name)
		was, is := k.pods[e.Pod.Name]
		switch {
		case !e.Deleted:
			k.pods[e.Pod.Name] = *e.Pod
			k.countShown(*e.Pod, 1)
		case !is || was.UID != e.Pod.UID:
			return nil
		default:
			delete(k.pods, e.Pod.Name)
		}
		k.countShown(was, -1)
	case e.Pods != nil:
		k.takePods(*e.Pods)
		k.lists++
	case e.Topology != nil && e.Deleted:
		delete(k.topologies, e.Topology.Name)
	case e.Topology != nil:
		t, err := e.Topology.Read()
		k.topologies[t.Name] = t
		return err
	case e.Claim != nil:
		return k.takeClaim(e.Claim, e.Deleted)
	}
	k.complete = k.complete || e.Complete
	return nil
}

// takePods takes in which pods there are.
func (k *Known) takePods(list []Pod) {
	before := k.pods
	k.pods = make(map[Name]Pod, len(list))
	for _, p := range list {
		k.countShown(p, 1)
		if k.pods[p.Name] = p; before[p.Name] != p {
			k.markPod(p.Name)
		}
	}
	for of, was := range before {
		k.countShown(was, -1)
		if _, is := k.pods[of]; !is {
			k.markPod(of)
		}
	}
}

// RangesIn returns the ranges of Sticky and Fixed topologies in a subnet that other pods have addresses of too: in the cloud they are to be
// given by name alone. known is false as long as there may be topologies that nobody has told of.
func (k *Known) RangesIn(in topology.Subnet) (list []netip.Prefix, known bool) {
	for _, of := range k.topologies {
		if of.Strategy == topology.Elastic || in.Exclusive {
			continue
		}
		for _, from := range of.Sources {
			if ranges, err := topology.Cover(from, in); from.Subnet == in.ID && err == nil { // else the topology says what is wrong
				list = append(list, ranges...)
			}
		}
	}
	slices.SortFunc(list, netip.Prefix.Compare)
	return slices.Compact(list), k.complete
}

// takeClaim takes in a claim. What the watch tells may be older than what a write has answered.
func (k *Known) takeClaim(c *crd.AddressClaim, deleted bool) error {
	at, err := netip.ParseAddr(c.Spec.Address)
	if err != nil {
		return fmt.Errorf("AddressClaim %s: %w", c.Name, err)
	}
	was, is := k.claims[at]
	_, ended := k.ended[c.UID]
	switch {
	case ended:
		return nil
	case deleted:
		k.gone++
		k.ended[c.UID] = k.gone
		delete(k.unread, at)
		if is && was.object.UID == c.UID {
			k.dropClaim(at)
			delete(k.asked, at)
			k.moving.forget(at)
		}
		return nil
	case is && was.object.UID == c.UID && !isNewer(c, was.object):
		return nil
	}
	claim, err := c.Read()
	if err != nil {
		k.unread[at] = true
		k.dropClaim(at)
		return err
	}
	delete(k.unread, at)
	k.dropClaim(at) // it may be of another name
	k.claims[at] = held{claim, c}
	k.index.Put(claim)
	k.markNamesakes(at)
	return nil
}

// dropClaim forgets a claim.
func (k *Known) dropClaim(at netip.Addr) {
	k.markNamesakes(at)
	k.index.Remove(at)
	delete(k.claims, at)
}

// isNewer compares resourceVersions, which are ordered.
func isNewer(a, b *crd.AddressClaim) bool {
	x, y := a.ResourceVersion, b.ResourceVersion
	return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y)) > 0
}

// Object returns a claim's object, nil if there is none.
func (k *Known) Object(at netip.Addr) *crd.AddressClaim { return k.claims[at].object }

// TopologyIn returns the first topology that names a subnet, a word for none.
func (k *Known) TopologyIn(subnet string) string {
	first := ""
	for name, t := range k.topologies {
		if slices.ContainsFunc(t.Sources, func(from topology.Source) bool { return from.Subnet == subnet }) && (first == "" || name < first) {
			first = name
		}
	}
	return cmp.Or(first, "none")
}

// SetSubnets replaces the subnets.
func (k *Known) SetSubnets(list []topology.Subnet) { k.subnets = list }

// SetNode replaces what is known of a node, and tells whether that changes anything.
func (k *Known) SetNode(n Node) bool {
	if was, is := k.nodes[n.Name]; is && reflect.DeepEqual(was, n) {
		return false
	}
	k.DropNode(n.Name)
	k.nodes[n.Name] = n
	k.markNode(n, 1)
	for _, e := range n.ENIs {
		for _, a := range e.Addresses {
			k.where[a] = append(k.where[a], n.Name)
		}
	}
	return true
}

// SetOpen replaces what calls of a node are about that have not ended.
func (k *Known) SetOpen(name string, open map[netip.Addr]bool) bool {
	n, is := k.nodes[name]
	if is {
		k.markOpen(n.Open, -1)
		k.markOpen(open, 1)
		n.Open = open
		k.nodes[name] = n
	}
	return is
}

// DropNode forgets a node.
func (k *Known) DropNode(name string) {
	if n, is := k.nodes[name]; is {
		k.markNode(n, -1)
	}
	for _, e := range k.nodes[name].ENIs {
		for _, a := range e.Addresses {
			if k.where[a] = slices.DeleteFunc(k.where[a], func(of string) bool { return of == name }); len(k.where[a]) == 0 {
				delete(k.where, a)
			}
		}
	}
	delete(k.nodes, name)
}

// refusal is when the cloud has not given an address to a node, and why not; "" for one that an unmanaged ENI has.
type refusal struct {
	at  time.Time
	why string
}

// NoteRefused takes in that the cloud does not give an address to a node, and why: "" if an ENI has it that nobody here manages.
func (k *Known) NoteRefused(at netip.Addr, now time.Time, why string) {
	k.refused[at] = refusal{now, why}
	k.markClaim(at)
}

// isOn tells whether a node has an address that is kept for the pods of a name.
func (k *Known) isOn(node string, of Name) bool {
	return slices.ContainsFunc(k.index.Named(of.Namespace, of.Name), func(at netip.Addr) bool { return slices.Contains(k.where[at], node) })
}

// NoteCreating takes in that the object of a claim is being made, or that this has ended.
func (k *Known) NoteCreating(c topology.Claim, under bool) {
	if k.creating[c.Addr] = c; !under {
		delete(k.creating, c.Addr)
	}
}

// NoteRead takes in what a read of a pod that began then has brought, nil for none, and returns whether that is what is known of it. One of no topology the watch
// never tells of: it counts where an address of its name is. Its node may have given it that, where the runtime does not tell of topologies.
func (k *Known) NoteRead(of Name, p *Pod, began time.Time) bool {
	is, known := k.pods[of]
	if p != nil && p.Topology == "" {
		if !p.Ended && k.isOn(p.Node, of) {
			return false
		}
		p = nil
	}
	if known != (p != nil) || p != nil && *p != is {
		return false
	}
	k.read[of] = began
	return true
}

// IsKept tells whether a claim says when an address goes back. Before all claims are known one may.
func (k *Known) IsKept(at netip.Addr) bool {
	_, is := k.claims[at]
	return is || k.unread[at] || !k.complete
}

// Claimed tells whether an address is kept that a describe shows on a node for which nobody has ordered it: it is for nobody then. With a topology it would be
// its next pod's.
func (k *Known) Claimed(at netip.Addr) bool {
	_, is := k.claims[at]
	_, creating := k.creating[at]
	return is || creating || k.unread[at]
}
