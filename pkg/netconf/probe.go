package netconf

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// Probe is a packet of a pod and the way that it should take.
type Probe struct {
	Packet
	Inside bool // to an address in the VPC

	Pods string // whose packets take the same way, for people

	// The ENI and the gateway that it should leave by. With Main the main table says:
	// it belongs to the system.
	Dev     string
	Gateway netip.Addr
	Main    bool
}

// Way is what the kernel answers: the link and the gateway by which a packet leaves, and
// the table that says so. Lost packets have none: the kernel would drop them.
type Way struct {
	Dev     string
	Gateway netip.Addr
	Table   int
	Lost    bool
}

// Probes returns what to ask the kernel for to see whether pods' packets leave as they
// should: for each ENI and family one pod that has a link of ours, to a destination
// outside of the VPC and to one inside. links are the links of pods that there are.
func Probes(s *ipam.State, links []string) []Probe {
	type kind struct {
		eni int
		v6  bool
	}
	seen := map[kind]bool{}
	var probes []Probe
	for _, a := range s.Used() {
		k := kind{a.ENI, a.Addr.Is6()}
		if seen[k] || a.Owner.Kind != eni.Veth || !slices.Contains(links, HostDevice(a.Owner.Key)) {
			continue
		}
		nic, ok := s.Interface(a.ENI)
		if !ok {
			continue
		}
		for _, net := range nic.Nets() {
			if net.Primary.Addr().Is6() == k.v6 {
				seen[k] = true
				probes = append(probes, newProbe(s, a, nic, net, false), newProbe(s, a, nic, net, true))
			}
		}
	}
	return slices.DeleteFunc(probes, func(p Probe) bool { return !p.To.IsValid() })
}

func newProbe(s *ipam.State, a eni.Address, nic eni.Interface, net eni.Net, inside bool) Probe {
	p := Probe{Packet: Packet{From: a.Addr, In: HostDevice(a.Owner.Key)}, Inside: inside, Pods: "pods of the ENI " + nic.Device,
		Dev: nic.Device, Gateway: net.Gateway}
	if p.To = outside(s, a.Addr.Is6()); inside {
		p.To = within(s, net)
	}
	switch {
	case nic.Index == 0, s.Settings.SNAT && a.Addr.Is4() && !inside: // that gets the node's address
		p.Main = true
		node, _ := s.Interface(0)
		p.Dev = node.Device
	case s.Settings.Routing == ipam.Map:
		p.Mark = Mark(nic.Index, s.Settings.MarkMask)
	}
	return p
}

// outside returns an address that is in no network of the book, of those that are for
// documentation: nobody has a way of their own to them.
func outside(s *ipam.State, v6 bool) netip.Addr {
	candidates := []string{"198.51.100.1", "203.0.113.1", "192.0.2.1"}
	if v6 {
		candidates = []string{"2001:db8::1", "3fff::1"}
	}
	for _, c := range candidates {
		a := netip.MustParseAddr(c)
		known := slices.ContainsFunc(s.Settings.VPC, func(p netip.Prefix) bool { return p.Contains(a) }) ||
			slices.ContainsFunc(s.ENIs, func(nic eni.Interface) bool {
				return slices.ContainsFunc(nic.Nets(), func(n eni.Net) bool { return n.Primary.Contains(a) })
			})
		if !known {
			return a
		}
	}
	return netip.Addr{}
}

// within returns an address of the VPC that the node does not have: from the end of the
// range, where hardly anybody begins.
func within(s *ipam.State, net eni.Net) netip.Addr {
	in := net.Primary.Masked()
	for _, p := range s.Settings.VPC {
		if p.Contains(net.Primary.Addr()) {
			in = p.Masked()
		}
	}
	taken := map[netip.Addr]bool{net.Gateway: true}
	for _, a := range s.Addresses {
		taken[a.Addr] = true
	}
	for _, nic := range s.ENIs {
		for _, n := range nic.Nets() {
			taken[n.Primary.Addr()] = true
		}
	}
	a := lastOf(in).Prev() // the last one is for broadcasts
	for in.Contains(a) && taken[a] {
		a = a.Prev()
	}
	if !in.Contains(a) {
		return netip.Addr{}
	}
	return a
}

func lastOf(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().AsSlice()
	for i := p.Bits(); i < 8*len(b); i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// Fits tells whether the way is as it should be.
func (p Probe) Fits(w Way) bool {
	const defaultTable = 253 // behind main, the system's too
	switch {
	case w.Lost:
		return false
	case p.Main:
		return w.Table == MainTable || w.Table == defaultTable || w.Dev == p.Dev
	}
	return w.Dev == p.Dev && (w.Gateway == p.Gateway || p.Inside && !w.Gateway.IsValid())
}

// Diverted returns a line for each rule of others by which packets of the probes do not
// go the way they should, with what becomes of them and what to do. Where the kernel
// answers otherwise for another reason that is told elsewhere: a route in a table of
// ours, or a rule of ours that is missing.
func Diverted(probes []Probe, ways []Way, policy map[bool]Policy) []string {
	var found []diversion
	for i, p := range probes {
		for _, d := range p.diversions(ways[i], policy[p.From.Is6()]) {
			if at := slices.IndexFunc(found, d.sameBut); at >= 0 {
				found[at].where = "" // into the VPC and out of it alike
				continue
			}
			found = append(found, d)
		}
	}
	lines := make([]string, len(found))
	for i, d := range found {
		lines[i] = d.String()
	}
	return lines
}

// diversion is what a rule of others does to packets.
type diversion struct{ rule, packets, where, fate, remedy string }

func (d diversion) sameBut(o diversion) bool {
	d.where = o.where
	return d == o
}

// String tells it in a line.
func (d diversion) String() string {
	return fmt.Sprintf("a rule that is not enipool's comes before enipool's, %s: what %s%s %s; %s", d.rule, d.packets, d.where, d.fate, d.remedy)
}

// diversions returns what rules of others do to the packet, and to the answers to it.
func (p Probe) diversions(w Way, policy Policy) (found []diversion) {
	if p.Fits(w) {
		return nil
	}
	v6 := p.From.Is6()
	rule, route, decides := policy.Decide(p.Packet)
	if decides && rule.IsOthers() && (w.Lost || route != nil && rule.Table == w.Table) {
		found = append(found, diversion{rule.String(), p.Pods + " send", p.where(), rule.fate(route), rule.remedy(v6)})
	}
	if !w.Lost {
		return found
	}
	// The kernel drops what comes in by another link than the answer leaves by, too.
	rule, route, decides = policy.Decide(Packet{From: p.To, To: p.From, In: "lo"})
	if decides && rule.IsOthers() {
		found = append(found, diversion{rule.String(), "is sent to " + p.Pods, "", rule.fate(route), rule.remedy(v6)})
	}
	return found
}

func (p Probe) where() string {
	if p.Inside {
		return " into the VPC"
	}
	return " out of the VPC"
}

// fate says where a packet goes by the rule.
func (r PolicyRule) fate(route *TableRoute) string {
	switch {
	case route == nil:
		return "ends there"
	case route.Type != "":
		return fmt.Sprintf("ends there (%s)", route)
	}
	return fmt.Sprintf("leaves by its route %s", route)
}

// remedy says what a person can do about the rule.
func (r PolicyRule) remedy(v6 bool) string {
	ip := "ip"
	if v6 {
		ip = "ip -6"
	}
	return fmt.Sprintf("remove it (%s rule del %s) or have what made it take a priority above %d, or leave the pods' addresses out", ip, r, PrioritySource)
}
