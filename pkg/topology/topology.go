package topology

import (
	"net/netip"
	"slices"
	"time"
)

// Strategy is how long an address stays with the name of a pod.
type Strategy string

// The strategies.
const (
	Elastic Strategy = "Elastic" // as long as the pod is there
	Sticky  Strategy = "Sticky"  // until a time after the pod has ended
	Fixed   Strategy = "Fixed"   // as long as the pod's StatefulSet is there
)

// Topology is what people say of some pods' addresses.
type Topology struct {
	Name     string
	Created  time.Time
	Priority int // the highest goes first

	Namespaces Selector // of the labels of the pod's namespace
	Pods       Selector // of its own

	Sources  []Source // in order of preference
	Strategy Strategy
	TTL      time.Duration // of Sticky: from the end of the pod
	Warm     int           // of Elastic: addresses that are ready on each node with pods of it, for the next ones
}

// keeps tells whether the addresses outlive their pods.
func (t Topology) keeps() bool { return t.Strategy != Elastic }

// Source is where addresses come from.
type Source struct {
	Subnet string
	Ranges []Range // none: all of the subnet
}

// Range is the addresses from one to another, both included.
type Range struct{ From, To netip.Addr }

// overlaps tells whether the two have an address in common.
func (r Range) overlaps(other Range) bool {
	return r.From.BitLen() == other.From.BitLen() && r.From.Compare(other.To) <= 0 && other.From.Compare(r.To) <= 0
}

func (r Range) String() string { return r.From.String() + "-" + r.To.String() }

// Subnet is what is known of one of the cloud's.
type Subnet struct {
	ID, Zone string
	V4, V6   netip.Prefix
	Ready    bool // described, of this VPC, and not disabled
	Full     bool // the cloud has no address left but those of Reserved

	Exclusive bool           // no ENI of a node takes general addresses of it
	Reserved  []netip.Prefix // in the cloud, which gives addresses of them by name alone

	// KeptFirst and KeptLast are how many addresses at its ends, the network's own included, the cloud gives to nobody.
	KeptFirst, KeptLast int
}

// hasRange tells whether the range lies in the subnet.
func (s Subnet) hasRange(r Range) bool {
	return slices.ContainsFunc([]netip.Prefix{s.V4, s.V6}, func(net netip.Prefix) bool {
		return net.IsValid() && net.Contains(r.From) && net.Contains(r.To)
	})
}

// Pod is what topologies go by in a pod.
type Pod struct {
	Namespace, Name, UID string
	NamespaceLabels      map[string]string
	Labels               map[string]string
	StatefulSet          Workload // that it belongs to, zero if to none
}

// Workload is what makes pods. Its namespace is that of its pods.
type Workload struct{ Name, UID string }
