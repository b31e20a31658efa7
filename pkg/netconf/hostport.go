package netconf

import (
	"fmt"
	"maps"
	"net/netip"
)

// Transport is a protocol with ports, by its number in the IP header.
type Transport byte

// The transports that a host port can be of.
const (
	TCP  Transport = 6
	UDP  Transport = 17
	SCTP Transport = 132
)

// String returns "tcp", "udp" or "sctp".
func (t Transport) String() string {
	switch t {
	case TCP:
		return "tcp"
	case UDP:
		return "udp"
	case SCTP:
		return "sctp"
	}
	return fmt.Sprint(byte(t))
}

// ParseTransport is the inverse of Transport.String.
func ParseTransport(name string) (Transport, error) {
	for _, t := range []Transport{TCP, UDP, SCTP} {
		if t.String() == name {
			return t, nil
		}
	}
	return 0, fmt.Errorf("unknown protocol %q: must be tcp, udp or sctp", name)
}

// HostPort is a port of the node that leads to a port of a pod.
type HostPort struct {
	Transport Transport
	// Host is the node's address that the port is open on. The unspecified
	// address stands for all of its family, the zero Addr for all of both.
	Host    netip.Addr
	Port    uint16 // on the node
	PodPort uint16
}

// String returns the port as people write it, without the pod's.
func (p HostPort) String() string {
	if !p.Host.IsValid() {
		return fmt.Sprintf("%s port %d", p.Transport, p.Port)
	}
	return fmt.Sprintf("%s port %d of %s", p.Transport, p.Port, p.Host)
}

// Serves tells whether the port leads to addresses of pod's family.
func (p HostPort) Serves(pod netip.Addr) bool { return !p.Host.IsValid() || p.Host.Is4() == pod.Is4() }

// nftKey is what the port is found by. An unspecified host is none: the map is of
// one family anyway.
func (p HostPort) nftKey() NftPort {
	k := NftPort{Transport: p.Transport, Port: p.Port}
	if p.Host.IsValid() && !p.Host.IsUnspecified() {
		k.Host = p.Host
	}
	return k
}

// PodPorts are the host ports that lead to an address of a pod.
type PodPorts struct {
	Pod   netip.Addr
	Ports []HostPort
}

// NftPort is the key of a host port: protocol and port, with Host behind that
// address of the node.
type NftPort struct {
	Host      netip.Addr
	Transport Transport
	Port      uint16
}

// String returns the key in the words of nft.
func (k NftPort) String() string {
	s := fmt.Sprintf("%s . %d", k.Transport, k.Port)
	if k.Host.IsValid() {
		s = k.Host.String() + " . " + s
	}
	return s
}

// Bytes returns the key as the kernel keeps it: each part padded to four bytes.
func (k NftPort) Bytes() []byte {
	var b []byte
	if k.Host.IsValid() {
		b = k.Host.AsSlice()
	}
	return append(b, byte(k.Transport), 0, 0, 0, byte(k.Port>>8), byte(k.Port), 0, 0)
}

// NftPodPort is where a host port leads.
type NftPodPort struct {
	Pod  netip.Addr
	Port uint16
}

// String returns the value in the words of nft.
func (v NftPodPort) String() string { return fmt.Sprintf("%s . %d", v.Pod, v.Port) }

// Bytes returns the value as the kernel keeps it.
func (v NftPodPort) Bytes() []byte {
	return append(v.Pod.AsSlice(), byte(v.Port>>8), byte(v.Port), 0, 0)
}

// NftHairpin matches what a pod with the address sends to itself.
type NftHairpin struct{ Pod netip.Addr }

// String returns source and destination in the words of nft.
func (h NftHairpin) String() string { return fmt.Sprintf("%s . %s", h.Pod, h.Pod) }

// Bytes returns source and destination as the kernel keeps them.
func (h NftHairpin) Bytes() []byte { return append(h.Pod.AsSlice(), h.Pod.AsSlice()...) }

// Overlaps tells whether both are the same port of the node in at least one family.
func (p HostPort) Overlaps(other HostPort) bool {
	return p.nftKey() == other.nftKey() && (!p.Host.IsValid() || !other.Host.IsValid() || p.Host.Is4() == other.Host.Is4())
}

// Covers tells whether p is open wherever other is.
func (p HostPort) Covers(other HostPort) bool {
	return p.Overlaps(other) && (!p.Host.IsValid() || other.Host.IsValid())
}

// PortSet finds host ports by what they are on the node: family, address, protocol
// and number. It is for thousands of them, where comparing all with all takes seconds.
type PortSet map[nodePort]HostPort

type nodePort struct {
	v6 bool
	NftPort
}

// NewPortSet returns the ports of the list, of two that are the same the first.
func NewPortSet(list ...PodPorts) PortSet {
	s := PortSet{}
	for _, p := range list {
		for _, port := range p.Ports {
			place := nodePort{!p.Pod.Is4(), port.nftKey()}
			if _, found := s[place]; !found && port.Serves(p.Pod) {
				s[place] = port
			}
		}
	}
	return s
}

// Equal tells whether both sets have the same ports, which lead to the same ones of pods.
func (s PortSet) Equal(other PortSet) bool {
	return maps.EqualFunc(s, other, func(a, b HostPort) bool { return a.PodPort == b.PodPort })
}

// Find returns the port of the set that is the same as the pod's.
func (s PortSet) Find(pod netip.Addr, port HostPort) (HostPort, bool) {
	found, ok := s[nodePort{!pod.Is4(), port.nftKey()}]
	return found, ok && port.Serves(pod)
}

// Leads tells whether one of the ports is open at the node's address and number.
func (s PortSet) Leads(to netip.Addr, transport Transport, number uint16) bool {
	port := HostPort{Transport: transport, Port: number}
	_, ofAll := s.Find(to, port)
	port.Host = to
	_, ofOne := s.Find(to, port)
	return ofAll || ofOne
}

// Select returns p with those of its ports that are in the set or, with in false, with
// those that are not.
func (s PortSet) Select(p PodPorts, in bool) PodPorts {
	selected := PodPorts{Pod: p.Pod}
	for _, port := range p.Ports {
		if _, found := s.Find(p.Pod, port); found == in {
			selected.Ports = append(selected.Ports, port)
		}
	}
	return selected
}
