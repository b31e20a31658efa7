package netconf

import (
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// Probe is a packet that a pod sends or gets, and the way that it should take.
type Probe struct {
	Packet
	Inside  bool // to an address in the VPC
	Arrives bool // the pod gets it

	Pods string       // whose packets take the same way, for people
	What string       // what packets, for people
	Net  netip.Prefix // that the pods' addresses are of

	// The link and the gateway that it should leave by. With Main the main table says:
	// it belongs to the system.
	Dev     string
	Gateway netip.Addr
	Main    bool

	// Wrong are the ENIs by which it must not leave where any other link may be meant so:
	// the packet is one that a rule of others selects, for a tunnel of theirs, say. Empty:
	// it has to leave by Dev.
	Wrong []string
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
// outside of the VPC and to one inside, and what it gets and answers. Behind those stand
// packets that rules of others select by more than pods' addresses, see selected. links
// are the links of pods that there are, rules the kernel's, by whether they are IPv6's.
func Probes(s *ipam.State, links []string, rules map[bool][]PolicyRule) []Probe {
	var probes, more []Probe
	groups := probedPods(s, links)
	for _, group := range groups {
		for _, inside := range []bool{false, true} {
			probes = append(probes, newProbe(s, group[0], inside))
		}
		more = append(more, group[0].arrivalProbes(s)...)
		more = append(more, group[0].answerProbes(s)...)
	}
	probes = append(append(probes, more...), selectedProbes(s, groups, rules)...)
	return slices.DeleteFunc(probes, func(p Probe) bool { return !p.To.IsValid() || !p.From.IsValid() })
}

// probedPod is a pod's address with where it leaves the node.
type probedPod struct {
	eni.Address
	nic eni.Interface
	net eni.Net
}

// probedPods returns the addresses of pods that have a link of ours, those of an ENI and a
// family together.
func probedPods(s *ipam.State, links []string) (groups [][]probedPod) {
	type kind struct {
		eni int
		v6  bool
	}
	at := map[kind]int{}
	for _, address := range s.Used() {
		nic, ok := s.Interface(address.ENI)
		if !ok || address.Owner.Kind != eni.Veth || !slices.Contains(links, HostDevice(address.Owner.Key)) {
			continue
		}
		k := kind{address.ENI, address.Addr.Is6()}
		for _, net := range nic.Nets() {
			if net.Primary.Addr().Is6() != k.v6 {
				continue
			}
			if _, seen := at[k]; !seen {
				at[k], groups = len(groups), append(groups, nil)
			}
			groups[at[k]] = append(groups[at[k]], probedPod{address, nic, net})
		}
	}
	return groups
}

func newProbe(state *ipam.State, a probedPod, inside bool) Probe {
	nic, net := a.nic, a.net
	probe := Probe{Packet: Packet{From: a.Addr, In: HostDevice(a.Owner.Key)}, Inside: inside, Pods: a.podsText(), What: a.podsText() + " send",
		Net: nic.RangeOf(a.Addr), Dev: nic.Device, Gateway: net.Gateway}
	if probe.To = outsideAddr(state, a.Addr.Is6()); inside {
		probe.To = insideAddr(state, net)
	}
	switch {
	case nic.Index == 0, state.Settings.SNAT && a.Addr.Is4() && !inside: // that gets the node's address
		probe.Main = true
		node, _ := state.Interface(0)
		probe.Dev = node.Device
	case state.Settings.Routing == ipam.Map:
		probe.Mark = Mark(nic.Index, state.Settings.MarkMask)
	}
	return probe
}

func (a probedPod) podsText() string { return "pods of the ENI " + a.nic.Device }

// arrivalProbes returns what the pod gets by its ENI and, where what it sends leaves by the
// node's, as answers by that one.
func (a probedPod) arrivalProbes(s *ipam.State) []Probe {
	by := []string{a.nic.Device}
	if node, ok := s.Interface(0); ok && s.Settings.SNAT && a.Addr.Is4() && a.ENI != 0 {
		by = append(by, node.Device)
	}
	var probes []Probe
	for _, dev := range by {
		probes = append(probes, a.newArrival(outsideAddr(s, a.Addr.Is6()), dev))
	}
	return probes
}

func (a probedPod) newArrival(from netip.Addr, by string) Probe {
	return Probe{Packet: Packet{From: from, To: a.Addr, In: by}, Arrives: true, Pods: a.podsText(),
		What: "comes in by " + by + " for " + a.podsText(), Net: a.nic.RangeOf(a.Addr), Dev: HostDevice(a.Owner.Key)}
}

// answerProbes returns what the pod answers to a connection that came in by its ENI, where the
// mark of the connection leads the answer another way than what else it sends.
func (a probedPod) answerProbes(s *ipam.State) []Probe {
	p := newProbe(s, a, false)
	if a.ENI == 0 || !p.Main && p.Mark != 0 {
		return nil
	}
	p.Main, p.Dev, p.Gateway, p.Mark = false, a.nic.Device, a.net.Gateway, Mark(a.ENI, s.Settings.MarkMask)
	p.What = a.podsText() + " answer to connections that came in by it"
	return []Probe{p}
}

// outsideAddr returns an address that is in no network of the node state, of those that are for
// documentation: nobody has a way of their own to them.
func outsideAddr(s *ipam.State, v6 bool) netip.Addr {
	candidates := []string{"198.51.100.1", "203.0.113.1", "192.0.2.1"}
	if v6 {
		candidates = []string{"2001:db8::1", "3fff::1"}
	}
	for _, c := range candidates {
		a := netip.MustParseAddr(c)
		known := slices.ContainsFunc(s.Settings.VPC, func(p netip.Prefix) bool { return p.Contains(a) }) ||
			slices.ContainsFunc(s.ENIs, func(nic eni.Interface) bool {
				return slices.ContainsFunc(nic.Ranges(), func(p netip.Prefix) bool { return p.Contains(a) })
			})
		if !known {
			return a
		}
	}
	return netip.Addr{}
}

// insideAddr returns an address of the VPC that the node does not have: from the end of the
// range, where hardly anybody begins.
func insideAddr(state *ipam.State, net eni.Net) netip.Addr {
	in := net.Primary.Masked()
	for _, p := range state.Settings.VPC {
		if p.Contains(net.Primary.Addr()) {
			in = p.Masked()
		}
	}
	taken := map[netip.Addr]bool{net.Gateway: true}
	for _, a := range state.Addresses {
		taken[a.Addr] = true
	}
	for _, nic := range state.ENIs {
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
