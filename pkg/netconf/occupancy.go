package netconf

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// Occupancy is what the kernel of a node holds for single addresses: all that could
// tell that an address of the pool is somebody's.
type Occupancy struct {
	At     time.Duration // since boot, when reading it began
	Addrs  []Addr        // of the node's links
	Routes []HostRoute
	Rules  []HostRule
	Neighs []Neigh // permanent ones
	Pods   []PodEnd
	Links  map[string]bool // the names of all links; nil: not read
}

// NodeAddress begins the cause of an address that is the node's own as well: a service
// that sets up NICs put it on one.
const NodeAddress = "address "

// Held returns which of the pool's addresses others hold, each with what holds it. A
// pod's link of ours that the node state does not know is as little ours to cut off
// as anybody else's. The addresses of an ENI without a link are held as well: a pod
// that got one would reach nothing.
//
// An address of a pod of ours is never among them, nor one that is, or was, reserved for a pod: its ADD finds
// out what holds it. Nor is one that changed since the
// kernel was read: what was seen may have been its last pod's.
func (o Occupancy) Held(s *ipam.State) map[netip.Addr]string {
	causes, unread := o.collectCauses(s)
	unlinked := o.Unlinked(s)
	held := map[netip.Addr]string{}
	for i := range s.Addresses {
		address := &s.Addresses[i]
		if address.State == eni.Used || address.Reservation != nil || address.State != eni.Held && address.Since > o.At {
			continue
		}
		switch found := causes[address.Addr]; {
		case len(found) == 1:
			held[address.Addr] = found[0]
		case len(found) > 1:
			held[address.Addr] = fmt.Sprintf("%s and %d more", found[0], len(found)-1)
		case unread[address.Family()] != "":
			held[address.Addr] = unread[address.Family()]
		case unlinked[address.ENI] != "" && address.State != eni.Releasing: // that goes on, it needs no link
			held[address.Addr] = unlinked[address.ENI]
		}
	}
	return held
}

// Unlinked returns the causes why no pod may get the addresses of ENIs whose links are not
// on the node, by device index.
func (o Occupancy) Unlinked(s *ipam.State) map[int]string {
	causes := map[int]string{}
	for _, nic := range s.ENIs {
		if o.Links != nil && !o.Links[nic.Device] {
			causes[nic.Index] = ipam.NoLinkCause(nic)
		}
	}
	return causes
}

// NoLongerHeld returns which of the addresses that the node state calls held nobody else has
// any more.
func (o Occupancy) NoLongerHeld(s *ipam.State) []netip.Addr {
	still := o.Held(s)
	var gone []netip.Addr
	for _, a := range s.HeldAddresses() {
		if _, held := still[a.Addr]; !held && a.Since <= o.At {
			gone = append(gone, a.Addr)
		}
	}
	return gone
}

// Shared returns a line for each used address that others claim too. The pod keeps
// it: that one of the two is cut off can't be helped here, and which is not ours to
// decide.
func (o Occupancy) Shared(s *ipam.State) []string {
	var lines []string
	causes, _ := o.collectCauses(s)
	for _, a := range s.Used() {
		// What calls enipool as its IPAM, or the plugin before it in a chain, may set
		// up what it likes for the address.
		if a.Owner.Kind == eni.Veth && len(causes[a.Addr]) > 0 && a.Since <= o.At {
			lines = append(lines, fmt.Sprintf("%s of %s is claimed by others too: %s", a.Addr, a.Owner.PodName(), causes[a.Addr][0]))
		}
	}
	return lines
}

// Owners returns which pod of ours has which address, as far as the kernel tells. What
// only the pod itself says counts for the addresses of the pool, and where it names one
// of them: a pod can put others' addresses on its link.
func (o Occupancy) Owners(pool *ipam.State) map[netip.Addr]eni.Owner {
	listed := map[netip.Addr]bool{}
	for _, a := range pool.Addresses {
		listed[a.Addr] = true
	}
	owners := map[netip.Addr]eni.Owner{}
	// The routes of all pods first: only the node writes those, so no pod gets an address by
	// what it says itself that a route gives to another one.
	for _, p := range o.Pods {
		for _, a := range p.Routed {
			if p.isOurs() {
				owners[a] = p.Owner
			}
		}
	}
	for _, p := range o.Pods {
		for _, f := range []eni.Family{eni.IPv4, eni.IPv6} {
			claims := slices.DeleteFunc(p.claimedAddrs(f), func(a netip.Addr) bool {
				_, taken := owners[a]
				return taken || !listed[a]
			})
			if p.isOurs() && len(claims) == 1 {
				owners[claims[0]] = p.Owner
			}
		}
	}
	return owners
}

// collectCauses returns what speaks for each address being somebody else's than the node
// state says, what matters most first, and why any address of a family might be.
func (o Occupancy) collectCauses(s *ipam.State) (causes map[netip.Addr][]string, unread map[eni.Family]string) {
	causes, unread = map[netip.Addr][]string{}, map[eni.Family]string{}
	if len(o.Addrs)+len(o.Routes)+len(o.Rules)+len(o.Neighs)+len(o.Pods) == 0 {
		return causes, unread
	}
	add := func(a netip.Addr, cause string) { causes[a] = append(causes[a], cause) }
	owns, links := ownedIn(s), map[string]bool{} // links: of pods, and whether they are ours
	nodes := map[netip.Addr]bool{}               // that are on links of the node
	for _, a := range o.Addrs {
		nodes[a.Prefix.Addr()] = true
		add(a.Prefix.Addr(), NodeAddress+a.String())
	}
	for _, end := range o.Pods {
		links[end.Dev] = end.isOurs()
		for _, family := range []eni.Family{eni.IPv4, eni.IPv6} {
			if end.Known || end.isOurs() && owns.families[holding{end.Owner.Key, family}] {
				continue
			}
			claims := end.claimedAddrs(family)
			for _, a := range claims {
				if end.Dev == owns.podDevice(a) {
					continue // of an ADD that goes on: its link tells whose it is a moment later
				}
				if end.isOurs() || !slices.Contains(end.Routed, a) { // else the route tells more
					add(a, end.String()+" (the address is at its other end)")
				}
			}
			if end.Unread != "" && len(claims) == 0 && (end.isOurs() || len(end.Routed) == 0) {
				unread[family] = fmt.Sprintf("%s, which may have any address: %s", end, end.Unread)
			}
		}
	}
	for _, r := range o.Routes {
		switch {
		case r.Dev != "" && r.Dev == owns.podDevice(r.Dst): // to the pod that has the address
		case r.Ours() && links[r.Dev]: // to a link of ours: what that has is told above
		case r.Ours() && r.Type != "": // it leads nowhere, so it is no pod's
		case nodes[r.Dst] && r.Type == "local": // the kernel's, for an address that is told above
		default:
			add(r.Dst, r.String())
		}
	}
	for _, r := range o.Rules {
		if !IsOurs(r.Protocol) {
			add(r.Addr, r.String())
		}
	}
	for _, n := range o.Neighs {
		if n.Dev != owns.podDevice(n.Addr) && !links[n.Dev] {
			add(n.Addr, "neighbour "+n.String())
		}
	}
	return causes, unread
}

// holding is an owner's claim to an address of a family.
type holding struct {
	eni.Key
	eni.Family
}

// owned is what the node state says of pods of ours.
type owned struct {
	families map[holding]bool
	owner    map[netip.Addr]eni.Key
}

func ownedIn(s *ipam.State) owned {
	o := owned{make(map[holding]bool, len(s.Addresses)), make(map[netip.Addr]eni.Key, len(s.Addresses))}
	for i := range s.Addresses {
		if a := &s.Addresses[i]; a.State == eni.Used {
			o.families[holding{a.Owner.Key, a.Family()}] = true
			o.owner[a.Addr] = a.Owner.Key
		}
	}
	return o
}

// podDevice returns the link on the node of the pod that has the address, "" if none has it.
func (o owned) podDevice(a netip.Addr) string {
	key, has := o.owner[a]
	if !has {
		return ""
	}
	return HostDevice(key)
}
