package crd

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/topology"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// usualTTL is how long a Sticky address is kept where the topology does not say.
const usualTTL = 168 * time.Hour

// Read returns the topology. With an error it is one of the same pods that has no subnet, and so is never ready: its pods wait, and do not
// become another one's.
func (t *PodSubnetTopology) Read() (topology.Topology, error) {
	s := t.Spec
	is := topology.Topology{Name: t.Name, Created: t.CreationTimestamp.Time, Priority: int(s.Priority), Namespaces: s.NamespaceSelector.toTopology(),
		Pods: s.PodSelector.toTopology(), Strategy: topology.Strategy(s.Strategy.Type)}
	var r reader
	is.TTL = r.readStrategy(s.Strategy)
	if is.Strategy == topology.Elastic { // an address that outlives its pod is of a name before it is anywhere
		is.Warm = int(s.Warm)
	}
	r.checkSelector("namespaceSelector", is.Namespaces)
	r.checkSelector("podSelector", is.Pods)
	for _, from := range s.Subnets {
		is.Sources = append(is.Sources, r.readSource(from))
	}
	if err := errors.Join(r.errs...); err != nil {
		is.Sources = nil
		return is, fmt.Errorf("PodSubnetTopology %s: %w", t.Name, err)
	}
	return is, nil
}

// readStrategy returns the ttl.
func (r *reader) readStrategy(s Strategy) (ttl time.Duration) {
	switch topology.Strategy(s.Type) {
	case topology.Sticky:
		if s.TTL == "" {
			return usualTTL
		}
		return r.readTTL("strategy.ttl", s.TTL)
	case topology.Elastic, topology.Fixed:
		if s.TTL != "" {
			r.note("strategy.ttl", errors.New("only a Sticky address has one"))
		}
	default:
		r.note("strategy.type", fmt.Errorf("unknown strategy %q", s.Type))
	}
	return 0
}

func (r *reader) readTTL(field, text string) time.Duration {
	ttl, err := time.ParseDuration(text)
	if err == nil && ttl <= 0 {
		err = fmt.Errorf("%s is no time to keep an address", text)
	}
	r.note(field, err)
	return ttl
}

func (r *reader) readSource(from Source) topology.Source {
	is := topology.Source{Subnet: from.ID}
	for _, text := range from.Ranges {
		first, err := netip.ParseAddr(text.From)
		r.note("subnets", err)
		last, err := netip.ParseAddr(text.To)
		r.note("subnets", err)
		is.Ranges = append(is.Ranges, topology.Range{From: first, To: last})
	}
	return is
}

func (s Selector) toTopology() topology.Selector {
	is := topology.Selector{Labels: s.MatchLabels}
	for _, e := range s.MatchExpressions {
		is.Requirements = append(is.Requirements, topology.Requirement{Key: e.Key, Operator: topology.Operator(e.Operator), Values: e.Values})
	}
	return is
}

// checkSelector notes operators of a later release: they match no pod, though the topology may be meant for it.
func (r *reader) checkSelector(field string, s topology.Selector) {
	for _, e := range s.Requirements {
		switch e.Operator {
		case topology.In, topology.NotIn, topology.Exists, topology.DoesNotExist:
		default:
			r.note(field, fmt.Errorf("unknown operator %q", e.Operator))
		}
	}
}

// ForTopologies returns the subnet as topologies go by it. The cloud gives the first addresses of it and the last ones to nobody. What can't
// be read is one that is not ready.
func (s *Subnet) ForTopologies(keptFirst, keptLast int) (topology.Subnet, error) {
	var r reader
	is := topology.Subnet{ID: s.Name, Zone: s.Status.Zone, Exclusive: s.Spec.Use == "Exclusive", KeptFirst: keptFirst, KeptLast: keptLast}
	read := func(field, text string) (p netip.Prefix) {
		if text != "" {
			var err error
			p, err = netip.ParsePrefix(text)
			r.note(field, err)
		}
		return p
	}
	is.V4, is.V6 = read("v4", s.Status.V4), read("v6", s.Status.V6)
	for _, c := range s.Status.Reserved {
		is.Reserved = append(is.Reserved, read("reserved", c.CIDR))
	}
	if err := errors.Join(r.errs...); err != nil {
		return is, fmt.Errorf("Subnet %s: %w", s.Name, err)
	}
	// A disabled one is so before its status says it. In one with state Low a few addresses are left, and those can be had.
	is.Ready = s.Spec.Use != "Disabled" && s.Status.Zone != "" && slices.Contains([]string{"Ready", "Low", "Full"}, s.Status.State)
	is.Full = s.Status.State == "Full"
	return is, nil
}

// The values of a claim's keep.
const (
	keepTTL      = "TTL"
	keepWorkload = "Workload"
	statefulSet  = "StatefulSet"
)

// ClaimName returns the name of the object that claims an address.
func ClaimName(at netip.Addr) string {
	if at.Is4() {
		return at.String()
	}
	digits := at.As16()
	return hex.EncodeToString(digits[:])
}

// NewAddressClaim returns a claim's object, as it is made.
func NewAddressClaim(c topology.Claim) (*AddressClaim, error) {
	is := &AddressClaim{ObjectMeta: metav1.ObjectMeta{Name: ClaimName(c.Addr)}, Spec: ClaimSpec{Topology: c.Topology, Subnet: c.Subnet, Address: c.Addr.String(),
		Namespace: c.Namespace, Pod: c.Pod}}
	switch c.Keep {
	case topology.Sticky:
		is.Spec.Keep, is.Spec.TTL = keepTTL, c.TTL.String()
	case topology.Fixed:
		is.Spec.Keep, is.Spec.Workload = keepWorkload, &Workload{Kind: statefulSet, Name: c.StatefulSet.Name, UID: c.StatefulSet.UID}
	default:
		return nil, fmt.Errorf("claim %s: an address of strategy %q is not kept", c.Addr, c.Keep)
	}
	is.Status.Write(c.Status)
	return is, nil
}

// Read returns the claim.
func (c *AddressClaim) Read() (topology.Claim, error) {
	s := c.Spec
	var r reader
	is := topology.Claim{Topology: s.Topology, Subnet: s.Subnet, Namespace: s.Namespace, Pod: s.Pod}
	var err error
	if is.Addr, err = netip.ParseAddr(s.Address); err == nil && ClaimName(is.Addr) != c.Name {
		// Two objects of one address would promise it to two pods.
		err = fmt.Errorf("the claim of %s is called %s", is.Addr, ClaimName(is.Addr))
	}
	r.note("address", err)
	switch {
	case s.Keep == keepTTL:
		is.Keep, is.TTL = topology.Sticky, r.readTTL("ttl", s.TTL)
	case s.Keep == keepWorkload && s.Workload != nil && s.Workload.Kind == statefulSet:
		is.Keep, is.StatefulSet = topology.Fixed, topology.Workload{Name: s.Workload.Name, UID: s.Workload.UID}
	case s.Keep == keepWorkload:
		r.note("workload", errors.New("it is no StatefulSet"))
	default:
		r.note("keep", fmt.Errorf("unknown word %q", s.Keep))
	}
	is.Status, err = c.Status.Read()
	r.note("status", err)
	if err := errors.Join(r.errs...); err != nil {
		return topology.Claim{}, fmt.Errorf("AddressClaim %s: %w", c.Name, err)
	}
	return is, nil
}

// Read returns how far the claim is.
func (s ClaimStatus) Read() (topology.Status, error) {
	is := topology.Status{Phase: topology.Phase(s.Phase), PodUID: s.PodUID, Node: s.Node, ENI: s.Interface, To: s.To, ToENI: s.ToInterface, Moves: int(s.Moves)}
	if s.FreeSince != nil {
		is.FreeSince = s.FreeSince.Time
	}
	switch is.Phase {
	case "", topology.Free, topology.OnItsWay, topology.Bound, topology.Releasing, topology.Contested:
		return is, nil
	}
	return is, fmt.Errorf("unknown phase %q", s.Phase)
}

// Write puts how far the claim is into a status, and leaves its message alone.
func (s *ClaimStatus) Write(from topology.Status) {
	s.Phase, s.PodUID, s.Node, s.Interface, s.To, s.Moves = string(from.Phase), from.PodUID, from.Node, from.ENI, from.To, int32(from.Moves)
	s.ToInterface = from.ToENI
	if s.FreeSince = nil; !from.FreeSince.IsZero() {
		s.FreeSince = &metav1.Time{Time: from.FreeSince}
	}
}
