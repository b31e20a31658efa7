// Package ipam is the state of one node: its ENIs, their addresses, the owner of each address,
// and the moves that change that. It is pure: time is an argument (time since boot, so that a
// clock that jumps frees nothing early), and what a move changed is noted so that a store can
// write just that.
package ipam

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/eni"
)

// Routing is how a pod's packets find their ENI.
type Routing uint8

// The routing modes. Map marks packets by an nftables map from source address to
// ENI, filled when an address joins the pool. Rule is one ip rule per pod, for
// kernels without nftables.
const (
	Map Routing = iota
	Rule
)

// String returns "map" or "rule".
func (r Routing) String() string {
	if r == Rule {
		return "rule"
	}
	return "map"
}

// ParseRouting is the inverse of Routing.String.
func ParseRouting(name string) (Routing, error) {
	switch name {
	case "map":
		return Map, nil
	case "rule":
		return Rule, nil
	}
	return 0, fmt.Errorf("unknown routing mode %q: must be map or rule", name)
}

// Firewall is the packet filter that holds SNAT, connection marks and, in
// routing mode map, the source map.
type Firewall uint8

// The two packet filters. Routing mode map needs Nftables.
const (
	Nftables Firewall = iota
	Iptables
)

// String returns "nftables" or "iptables".
func (f Firewall) String() string {
	if f == Iptables {
		return "iptables"
	}
	return "nftables"
}

// ParseFirewall is the inverse of Firewall.String.
func ParseFirewall(name string) (Firewall, error) {
	switch name {
	case "nftables":
		return Nftables, nil
	case "iptables":
		return Iptables, nil
	}
	return 0, fmt.Errorf("unknown firewall %q: must be nftables or iptables", name)
}

// Settings are the node's settings that everybody who touches its network must
// agree on; they travel in the head of the node cache.
type Settings struct {
	Routing  Routing
	Firewall Firewall
	SNAT     bool           // pods reach what is outside VPC with the node's address
	MarkMask uint32         // the bits of a packet mark that are enipool's, 8 in a row
	CoolDown time.Duration  // how long an address is cooling after its pod
	VPC      []netip.Prefix // destinations that see the pod's own address
	Families []eni.Family   // what a pod gets: one address of each
	// V4Block and V6Block are the lengths of the delegated prefixes by which the cloud
	// assigns and releases addresses, 28 or 80; 0 where they come one by one.
	V4Block, V6Block int
	// PodsInMain: pods' host routes are in the main routing table, as a release wrote the
	// state that had no table for them. Whoever loads the pool moves them.
	PodsInMain bool
	// Gated are the namespaces in which a pod gets only an address that is reserved for it.
	Gated []string
}

// IsGated tells whether pods of the namespace get only what is reserved for them.
func (s Settings) IsGated(namespace string) bool { return slices.Contains(s.Gated, namespace) }

// DefaultMarkMask is the only byte that none of kube-proxy, the portmap plugin,
// Calico, Tailscale and Cilium takes for itself; netconf.MarkUsers lists whose bits
// are whose. It was 0x00ff0000 before, which Calico, Tailscale and Cilium use.
const DefaultMarkMask uint32 = 0x000000ff

// State is the node state. Addresses are grouped by ENI, in ENI order (see choose.go). Read it
// freely; change it through the moves only.
//
// An ADD and a DEL get it without the used addresses of others (nodecache.Cache.For), because
// reading those would take most of their time. So whatever serves one of them must not count
// used addresses, as for "the ENI with the fewest pods": there they are always 0. What counts,
// or asks for other owners (Count, FreeIf, the numbers of Exhausted), needs the whole state.
type State struct {
	Settings  Settings
	ENIs      []eni.Interface
	Addresses []eni.Address
	// Damaged lists addresses whose record can't be trusted. They are not in Addresses:
	// no pod gets them and none can be freed until the state is rebuilt from the cloud
	// and the kernel.
	Damaged []Damage

	touched []int
}

// Damage is a record that can't be trusted.
type Damage struct {
	Record int        // which one, counted from 0 over all addresses
	Addr   netip.Addr // its address where that much could be read
	Owner  *eni.Owner // who it names as the pod's, which may be wrong; nil for nobody
	Cause  string     // what is wrong with it, and where
	// Kept: it may be that of a reserved address; Topology is what it says of which, "" for nothing.
	Kept     bool
	Topology string
}

// Touched returns the positions in Addresses that moves changed, in order of
// change and perhaps more than once.
func (s *State) Touched() []int { return s.touched }

// Interface returns the ENI with the device index.
func (s *State) Interface(index int) (eni.Interface, bool) {
	for _, i := range s.ENIs {
		if i.Index == index {
			return i, true
		}
	}
	return eni.Interface{}, false
}

// OwnedBy returns the addresses of the owner with the key, in ENI order.
func (s *State) OwnedBy(k eni.Key) []eni.Address {
	var found []eni.Address
	for i := range s.Addresses {
		if a := &s.Addresses[i]; a.State == eni.Used && a.Owner.Key == k {
			found = append(found, *a)
		}
	}
	return found
}

// LeaseOf returns what the owner with the key has as a lease that can't be
// undone; one without addresses if it has nothing.
func (s *State) LeaseOf(k eni.Key) Lease {
	l := Lease{Addresses: s.OwnedBy(k)}
	if len(l.Addresses) > 0 {
		l.Interface, _ = s.Interface(l.Addresses[0].ENI)
	}
	return l
}

// Used returns all used addresses, in ENI order.
func (s *State) Used() []eni.Address { return s.inState(eni.Used) }

// inState returns the addresses in a state, in ENI order.
func (s *State) inState(state eni.State) []eni.Address {
	var list []eni.Address
	for i := range s.Addresses {
		if s.Addresses[i].State == state {
			list = append(list, s.Addresses[i])
		}
	}
	return list
}

// IsCooling tells whether a is cooling at now. One whose cooldown is over counts as free.
func (s *State) IsCooling(a *eni.Address, now time.Duration) bool {
	_, free := s.FreeSince(a, now)
	return a.State == eni.Cooling && !free
}

// FreeSince tells whether a may be handed out at now, and since when it could be.
func (s *State) FreeSince(a *eni.Address, now time.Duration) (since time.Duration, ok bool) {
	switch a.State {
	case eni.Free:
		return a.Since, true
	case eni.Cooling:
		since = a.Since + s.Settings.CoolDown
		// A store rounds times up, so what was freed at this moment may seem to
		// be freed in the next. Without a cool-down it is free all the same.
		return since, since <= now || s.Settings.CoolDown == 0
	}
	return 0, false
}

// Count says how many addresses of a set are in which state. Free counts those
// that could be handed out now, so it includes the ones that have cooled down.
type Count struct {
	Total, Free, Used, Cooling, Releasing, Held, Reserved int

	Claimed int // of Used

	NextFree time.Duration // until the first cooling one is free; 0 if none cools
}

// Count counts the addresses for which keep returns true; a nil keep keeps all.
func (s *State) Count(now time.Duration, keep func(eni.Address) bool) Count {
	var count Count
	for i := range s.Addresses {
		address := &s.Addresses[i]
		if keep != nil && !keep(*address) {
			continue
		}
		count.Total++
		switch since, free := s.FreeSince(address, now); {
		case free:
			count.Free++
		case address.State == eni.Used:
			count.Used++
			if address.IsClaimed() {
				count.Claimed++
			}
		case address.State == eni.Releasing:
			count.Releasing++
		case address.State == eni.Held:
			count.Held++
		case address.State == eni.Reserved:
			count.Reserved++
		default:
			count.Cooling++
			if wait := since - now; count.NextFree == 0 || wait < count.NextFree {
				count.NextFree = wait
			}
		}
	}
	return count
}
