package topology

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/eni"
)

// Claim is an address that is kept for the pods of one name. What becomes of it Next says.
type Claim struct {
	Addr           netip.Addr
	Topology       string
	Subnet         string
	Namespace, Pod string
	Keep           Strategy      // Sticky or Fixed
	TTL            time.Duration // of Sticky
	StatefulSet    Workload      // of Fixed
	Status
}

// Status is how far a claim is.
type Status struct {
	Phase     Phase
	PodUID    string    // of the pod that has it, or is to have it
	Node      string    // that had it last
	ENI       string    // there
	To        string    // the node that it moves to
	ToENI     string    // a call that moves it there in one may take effect, at once or later
	FreeSince time.Time // when its pod had ended; it is written once, so a longer wait costs no write
	Moves     int
}

// Phase is what a claim does.
type Phase string

// The phases. A new claim has none yet, and is as one that is Free.
const (
	Free      Phase = "Free"      // no pod on a node needs it; the cloud may have it on an ENI or not
	OnItsWay  Phase = "Moving"    // its pod's node is to get it
	Bound     Phase = "Bound"     // its pod's node has it
	Releasing Phase = "Releasing" // it ends; no pod gets it any more
	Contested Phase = "Conflict"  // its pod needs it, and an unmanaged ENI has it
)

// Family returns the family of its address.
func (c Claim) Family() eni.Family { return eni.FamilyOf(c.Addr) }

// EndsAt returns when a claim that no pod needs ends, false if nobody knows.
func (c Claim) EndsAt() (time.Time, bool) {
	if c.Keep != Sticky || c.FreeSince.IsZero() {
		return time.Time{}, false
	}
	return c.FreeSince.Add(c.TTL), true
}

// Serves tells whether its pod gets the address, or has it, where it is attached. The node is to reserve it for that pod alone.
func (c Claim) Serves() bool { return c.Phase == Bound || c.Phase == Releasing && c.PodUID != "" }

// podName is whose pods a claim is kept for.
type podName struct{ namespace, pod string }

// Claims are all of a cluster, no two of one address. The zero Claims has none.
type Claims struct {
	byAddr map[netip.Addr]Claim
	byPod  map[podName][]netip.Addr
}

// Put notes a claim, or what became of it. It returns false, and changes nothing, if another name or topology has the address.
func (l *Claims) Put(c Claim) bool {
	name := podName{c.Namespace, c.Pod}
	was, taken := l.byAddr[c.Addr]
	if taken && (podName{was.Namespace, was.Pod} != name || was.Topology != c.Topology) {
		return false
	}
	if l.byAddr == nil {
		l.byAddr, l.byPod = map[netip.Addr]Claim{}, map[podName][]netip.Addr{}
	}
	if l.byAddr[c.Addr] = c; !taken {
		l.byPod[name] = append(l.byPod[name], c.Addr)
	}
	return true
}

// Remove notes that a claim is not there any more.
func (l *Claims) Remove(addr netip.Addr) {
	c, is := l.byAddr[addr]
	if !is {
		return
	}
	delete(l.byAddr, addr)
	name := podName{c.Namespace, c.Pod}
	if l.byPod[name] = slices.DeleteFunc(l.byPod[name], func(of netip.Addr) bool { return of == addr }); len(l.byPod[name]) == 0 {
		delete(l.byPod, name)
	}
}

// Named returns the addresses of the claims of a name, in no order. The caller changes nothing in it.
func (l *Claims) Named(namespace, pod string) []netip.Addr { return l.byPod[podName{namespace, pod}] }

// Of returns the claim that a pod takes up: one of its name and topology that does not end, or that ends after it. Should there be
// two, since two operators made one each, the one that has the pod counts, else the first.
func (l *Claims) Of(topology string, p Pod, f eni.Family) (Claim, bool) {
	var own []Claim
	for _, at := range l.byPod[podName{p.Namespace, p.Name}] {
		if c := l.byAddr[at]; c.Topology == topology && c.Family() == f && (c.Phase != Releasing || c.PodUID == p.UID) {
			own = append(own, c)
		}
	}
	if len(own) == 0 {
		return Claim{}, false
	}
	return slices.MinFunc(own, func(a, b Claim) int {
		return cmp.Or(firstWith(a.PodUID == p.UID, b.PodUID == p.UID), a.Addr.Compare(b.Addr))
	}), true
}
