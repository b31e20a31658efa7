package netconf

import (
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/ipam"
)

// mostSelecting bounds how many rules of others packets are made for. To ask the kernel
// for the way of one takes some microseconds.
const mostSelecting = 256

// selectedProbes returns packets that rules of others before ours select by more than what all
// packets of pods have: by destination, transport or ports. Which way those take no other
// packet tells. Of each rule there are packets of and to pods of every ENI.
func selectedProbes(s *ipam.State, groups [][]probedPod, rules map[bool][]PolicyRule) (probes []Probe) {
	for _, v6 := range []bool{false, true} {
		of := slices.DeleteFunc(slices.Clone(groups), func(g []probedPod) bool { return g[0].Addr.Is6() != v6 })
		probes = append(probes, selectedBy(s, of, rules[v6])...)
	}
	return probes
}

func selectedBy(state *ipam.State, groups [][]probedPod, rules []PolicyRule) (probes []Probe) {
	left := mostSelecting
	for _, r := range rules {
		if left == 0 {
			break
		}
		if !r.IsOthers() || r.Priority >= PrioritySource || r.Not || r.Narrow || !r.isSelective() {
			continue
		}
		n := len(probes)
		for _, group := range groups {
			probes = append(probes, r.probesOf(state, group)...)
		}
		if len(probes) > n {
			left--
		}
	}
	return probes
}

// isSelective tells whether the rule selects by more than links, marks and single
// addresses: other plugins have one of those for each of their pods.
func (r PolicyRule) isSelective() bool {
	wide := func(p netip.Prefix) bool { return p.IsValid() && p.Bits() > 0 && !p.IsSingleIP() }
	return r.Transport != 0 || r.FromPorts != PortRange{} || r.ToPorts != PortRange{} || wide(r.From) || wide(r.To)
}

// probesOf returns a packet of a pod and one to a pod of the group that the rule selects.
func (r PolicyRule) probesOf(s *ipam.State, group []probedPod) []Probe {
	var probes []Probe
	for _, packet := range []func(*ipam.State, probedPod) Probe{r.sentProbe, r.receivedProbe} {
		for _, pod := range group {
			if p := packet(s, pod); p.To.IsValid() && p.From.IsValid() && r.selects(p.Packet) {
				probes = append(probes, p)
				break
			}
		}
	}
	return probes
}

// sentProbe returns a packet of the pod to where the rule selects.
func (r PolicyRule) sentProbe(s *ipam.State, pod probedPod) Probe {
	p := newProbe(s, pod, false)
	if r.To.IsValid() && r.To.Bits() > 0 {
		to := addressIn(r.To)
		p = newProbe(s, pod, isInside(s, to))
		p.To = to
	}
	return r.addSelectors(s, p)
}

// receivedProbe returns a packet to the pod from where the rule selects.
func (r PolicyRule) receivedProbe(s *ipam.State, pod probedPod) Probe {
	from, by := outsideAddr(s, pod.Addr.Is6()), pod.nic.Device
	if r.From.IsValid() && r.From.Bits() > 0 {
		from = addressIn(r.From)
	}
	if slices.Contains(deviceNames(s), r.In) {
		by = r.In
	}
	return r.addSelectors(s, pod.newArrival(from, by))
}

// addSelectors gives the packet the transport and the ports that the rule selects.
func (r PolicyRule) addSelectors(s *ipam.State, p Probe) Probe {
	p.Wrong, p.Transport = deviceNames(s), r.Transport
	if ports := (PortRange{}); p.Transport == 0 && (r.FromPorts != ports || r.ToPorts != ports) {
		p.Transport = TCP
	}
	p.FromPort, p.ToPort = r.FromPorts.First, r.ToPorts.First
	return p
}

// addressIn returns an address of the prefix that may be a host's, the zero Addr if there is
// none.
func addressIn(p netip.Prefix) netip.Addr {
	a := p.Masked().Addr()
	if !p.IsSingleIP() {
		a = a.Next()
	}
	if !a.IsGlobalUnicast() {
		return netip.Addr{}
	}
	return a
}

// isInside tells whether the address is in the VPC or a subnet of the node's.
func isInside(s *ipam.State, a netip.Addr) bool {
	contains := func(p netip.Prefix) bool { return p.Contains(a) }
	if slices.ContainsFunc(s.Settings.VPC, contains) {
		return true
	}
	for _, nic := range s.ENIs {
		if slices.ContainsFunc(nic.Ranges(), contains) {
			return true
		}
	}
	return false
}

func deviceNames(s *ipam.State) []string {
	names := make([]string, len(s.ENIs))
	for i, nic := range s.ENIs {
		names[i] = nic.Device
	}
	return names
}
