package netconf

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/eni"
)

// Names of the parts of the table that hold host ports, without the digit of the
// family: an element's value has a fixed length, so each family needs maps of its own. They are
// there on every node, so that the plugin only adds elements.
const (
	nftPortsChain = "hostports"

	nftHostPorts = "hostport" // protocol . port : pod . port
	nftAddrPorts = "addrport" // address of the node . protocol . port : pod . port
	nftHairpins  = "hairpin"  // pod . pod
	nftServices  = "service"  // addresses that stand on the node and are no node's
)

// IsServiceLink tells whether the addresses on a link of the name and kind are those of
// services, which stand on every node so that it takes their packets: the link of
// kube-proxy in IPVS mode, of the DNS cache of nodes, and dummy links of others.
func IsServiceLink(name, kind string) bool { return kind == "dummy" || IsNamedForServices(name) }

// IsNamedForServices is IsServiceLink where the kind is not known.
func IsNamedForServices(name string) bool {
	return slices.Contains([]string{"kube-ipvs0", "nodelocaldns", "kube-dummy-if"}, name)
}

// NftHoldsPorts tells whether the set or map of our tables holds host ports: its elements
// come and go with pods, written by the plugin.
func NftHoldsPorts(set string) bool {
	name := strings.TrimRight(set, "46")
	return name == nftHostPorts || name == nftAddrPorts || name == nftHairpins
}

// NftMember is an element and the set or map it belongs to.
type NftMember struct {
	Set     string
	Element NftElement
}

// Members returns what the table's sets and maps hold for the ports, the hairpin
// first: from the moment a port leads to the pod, the pod may use it too.
func (p PodPorts) Members() []NftMember {
	family := familyDigit(p.Pod)
	list := []NftMember{{nftHairpins + family, NftElement{Key: NftHairpin{p.Pod}}}}
	for _, port := range p.Ports {
		if !port.Serves(p.Pod) {
			continue
		}
		set, key := nftHostPorts+family, port.nftKey()
		if key.Host.IsValid() {
			set = nftAddrPorts + family
		}
		list = append(list, NftMember{set, NftElement{Key: key, Value: NftPodPort{p.Pod, port.PodPort}}})
	}
	return list
}

func familyDigit(a netip.Addr) string {
	if a.Is4() {
		return "4"
	}
	return "6"
}

// NftLocal matches packets to an address of the node.
type NftLocal struct{}

// String returns the match in the words of nft.
func (NftLocal) String() string { return "fib daddr type local" }

// NftPrefix matches packets from the prefix or, with To, to it. It is IPv4's: of IPv6 the kernel
// never routes the loopback address, so nothing needs a rule for it.
type NftPrefix struct {
	To  bool
	Net netip.Prefix
}

// String returns the match in the words of nft.
func (p NftPrefix) String() string {
	if p.To {
		return "ip daddr " + p.Net.String()
	}
	return "ip saddr " + p.Net.String()
}

// NftHostPort sends a connection to the pod that its port of the node leads to.
// With Addr the node's address counts too.
type NftHostPort struct {
	Family eni.Family
	Addr   bool
	Map    string
}

// String returns the statement in the words of nft.
func (d NftHostPort) String() string {
	ip, key := ipWord(d.Family), "meta l4proto . th dport"
	if d.Addr {
		return fmt.Sprintf("dnat %[1]s to %[1]s daddr . %[2]s map @%[3]s", ip, key, d.Map)
	}
	return fmt.Sprintf("%s dnat %s to %s map @%s", NftFamily(d.Family), ip, key, d.Map)
}

// NftIsHairpin matches what a pod sends to itself by way of the node.
type NftIsHairpin struct {
	Family eni.Family
	Set    string
}

// String returns the match in the words of nft.
func (h NftIsHairpin) String() string {
	return fmt.Sprintf("%[1]s saddr . %[1]s daddr @%[2]s", ipWord(h.Family), h.Set)
}

func ipWord(f eni.Family) string {
	if f == eni.IPv6 {
		return "ip6"
	}
	return "ip"
}

var loopback4 = netip.MustParsePrefix("127.0.0.0/8")

// addPorts adds what leads ports of the node to pods. The maps are looked up once
// for each connection, however many ports there are: only its first packet comes by chains of
// type nat.
//
// It stands behind others' DNAT: where a service has the same port, the service keeps it, as
// with the portmap plugin. kube-proxy in IPVS mode translates nothing before the packet comes to
// the node, where the service's address stands: such addresses are left out, unless the
// pod asks for one by name. That is the order of the three rules of a family: a port of one
// address, then services, then ports of all addresses.
func (f Firewall) addPorts(table *NftTable) {
	lead := NftChain{Name: nftPortsChain}
	back := NftChain{Name: "hairpin", Type: "nat", Hook: "postrouting", Priority: 100, PriorityName: "srcnat"}
	for _, family := range f.portFamilies() {
		node, address, destination := f.Node4, "ipv4_addr", NftDestination4
		if family == eni.IPv6 {
			node, address, destination = f.Node6, "ipv6_addr", NftDestination6
		}
		digit, to := familyDigit(node), address+" . inet_service"
		sets := []NftSet{
			{Name: nftAddrPorts + digit, Type: address + " . inet_proto . inet_service", Data: to},
			{Name: nftHairpins + digit, Type: address + " . " + address},
			{Name: nftHostPorts + digit, Type: "inet_proto . inet_service", Data: to},
		}
		f.fillPortSets(sets)
		services := NftSet{Name: nftServices + digit, Type: address, Elements: f.serviceElements(family)}
		table.Sets = append(append(table.Sets, sets...), services)
		lead.Rules = append(lead.Rules,
			NftRule{"a port of one address of the node", []fmt.Stringer{NftHostPort{family, true, sets[0].Name}}},
			NftRule{"a service's address is no node's", []fmt.Stringer{NftLookup{Field: destination, Set: services.Name}, NftVerdict{Kind: "return"}}},
			NftRule{"a port of all addresses of the node", []fmt.Stringer{NftHostPort{family, false, sets[2].Name}}})
		// Else the pod would get a packet from its own address, which it drops, or answer itself
		// past the node, which alone can undo the translation.
		back.Rules = append(back.Rules, NftRule{"a pod that uses its own host port gets the answer", []fmt.Stringer{
			NftIsHairpin{family, sets[1].Name}, NftSNAT{node}}})
		if family == eni.IPv4 {
			back.Rules = append(back.Rules, NftRule{"nobody can answer to the loopback address", []fmt.Stringer{
				NftDevice{Out: true, Name: VethPrefix + "*"}, NftPrefix{Net: loopback4}, NftSNAT{node}}})
		}
	}
	if len(lead.Rules) == 0 { // the node's own addresses are not known yet
		return
	}
	local := []NftRule{{"to this node", []fmt.Stringer{NftLocal{}, NftVerdict{"jump", lead.Name}}}}
	// kube-proxy and portmap translate at dstnat, -100. At hook output nft has no such name, so
	// it is written as a number there. That hook is for what the node itself sends to its ports.
	table.Chains = append(table.Chains, lead,
		NftChain{Name: "arriving", Type: "nat", Hook: "prerouting", Priority: -99, PriorityName: "dstnat + 1", Rules: local},
		NftChain{Name: "leaving", Type: "nat", Hook: "output", Priority: -99, PriorityName: "-99", Rules: local}, back)
	if f.Node4.IsValid() {
		table.Chains = append(table.Chains, guardLoopback())
	}
}

// guardLoopback keeps pods from what listens on the node's loopback only. The links of pods
// with host ports route 127.0.0.0/8 (route_localnet), or the node could not reach the ports
// by it, and with that the kernel takes a pod's packet to 127.0.0.1 too. At hook input there
// are only packets for the node itself. The answers to what came from the loopback are
// translated back by then, so they are for 127.0.0.1 too and have to pass.
func guardLoopback() NftChain {
	from := []fmt.Stringer{NftPrefix{To: true, Net: loopback4}, NftDevice{Name: VethPrefix + "*"}}
	return NftChain{Name: "loopback", Type: "filter", Hook: "input", Priority: 0, PriorityName: "filter", Rules: []NftRule{
		{"a pod's answer", append(slices.Clone(from), NftReply, NftVerdict{Kind: "accept"})},
		{"no pod reaches the node's loopback", append(slices.Clone(from), NftVerdict{Kind: "drop"})},
	}}
}

// serviceElements returns those of the family, as elements.
func (f Firewall) serviceElements(family eni.Family) (list []NftElement) {
	for _, a := range f.Services {
		if eni.FamilyOf(a) == family {
			list = append(list, NftElement{Key: a})
		}
	}
	return list
}

// portFamilies returns the families in which the node has an address of its own.
func (f Firewall) portFamilies() []eni.Family {
	var list []eni.Family
	if f.Node4.IsValid() {
		list = append(list, eni.IPv4)
	}
	if f.Node6.IsValid() {
		list = append(list, eni.IPv6)
	}
	return list
}

func keyBytes(e NftElement) []byte { return e.Key.(interface{ Bytes() []byte }).Bytes() }

// fillPortSets puts the members of all ports in their sets. Of two that claim the
// same port the first has it.
func (f Firewall) fillPortSets(sets []NftSet) {
	taken := map[fmt.Stringer]bool{}
	for _, p := range f.Ports {
		for _, m := range p.Members() {
			at := slices.IndexFunc(sets, func(s NftSet) bool { return s.Name == m.Set })
			if at >= 0 && !taken[m.Element.Key] {
				taken[m.Element.Key] = true
				sets[at].Elements = append(sets[at].Elements, m.Element)
			}
		}
	}
	for _, s := range sets {
		slices.SortFunc(s.Elements, func(a, b NftElement) int { return bytes.Compare(keyBytes(a), keyBytes(b)) })
	}
}
