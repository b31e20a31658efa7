package netconf

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/digest"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// The next hop of every pod: addresses that no network uses, reached through a
// permanent neighbour, so the pod never asks for it by ARP or NDP.
var (
	podGateway4 = netip.AddrFrom4([4]byte{169, 254, 1, 1})
	podGateway6 = netip.MustParseAddr("fe80::1")
)

// Pod is what the kernel holds for one pod with a veth pair of ours.
type Pod struct {
	HostDev string // name of the link on the node
	HostMAC MAC
	Alias   string // of HostDev: who it belongs to, see Alias
	Dev     string // name of the link in the pod
	MAC     MAC
	MTU     int // bytes, both ends

	// In the pod's network namespace.
	Addrs  []Addr
	Routes []Route
	Neighs []Neigh

	// On the node.
	HostRoutes  []Route
	HostRules   []Rule
	HostNeighs  []Neigh
	HostSysctls []Sysctl
}

// HostDevice returns the name of the node's end of the owner's veth pair. It
// comes from the sandbox and not from the pod's name: a late DEL of an old
// sandbox must not find the new one's link.
func HostDevice(k eni.Key) string {
	sum := keySum(k)
	return VethPrefix + hex.EncodeToString(sum[:6])[:11]
}

// HostMAC returns the MAC of the node's end of the owner's veth pair.
func HostMAC(k eni.Key) MAC {
	sum := keySum(k)
	return localMAC(sum[8:])
}

func keySum(k eni.Key) [digest.Size]byte {
	return digest.Sum256(k.Network + "|" + k.Container + "|" + k.IfName)
}

// localMAC makes a locally administered unicast address of six bytes. MACs are
// derived and not left to the kernel, so that udev does not replace them.
func localMAC(b []byte) MAC {
	m := MAC(b[:6])
	m[0] = m[0]&^0x01 | 0x02
	return m
}

// aliasLimit is the kernel's limit for a link alias, in bytes.
const aliasLimit = 255

// Alias returns the alias of the owner's host link: pod, then identity, so that
// `ip link` tells a person whose it is and a lost node cache can be rebuilt. An
// identity that has no room gives no alias: half of one would be another's.
func Alias(o eni.Owner) string {
	key := " " + o.Key.String()
	if len(key) > aliasLimit {
		return ""
	}
	pod := o.PodName()
	if over := len(pod) + len(key) - aliasLimit; over > 0 {
		pod = pod[:len(pod)-over]
	}
	return pod + key
}

// ParseAlias reads back what Alias wrote.
func ParseAlias(alias string) (eni.Owner, bool) {
	// The last blank: a pod's name is free text to a runtime, a key has none.
	at := max(0, strings.LastIndexByte(alias, ' '))
	pod, key := alias[:at], strings.TrimPrefix(alias[at:], " ")
	parts := strings.Split(key, "/")
	if key == alias || len(parts) != 3 {
		return eni.Owner{}, false
	}
	o := eni.Owner{Key: eni.Key{Network: parts[0], Container: parts[1], IfName: parts[2]}}
	if namespace, name, ok := strings.Cut(pod, "/"); ok {
		o.Namespace, o.Pod = namespace, name
	} else if pod != o.Container {
		o.Pod = pod
	}
	return o, true
}

// NewPod returns what the kernel should hold for the lease. An mtu of 0 means
// the ENI's.
func NewPod(settings ipam.Settings, lease ipam.Lease, mtu int) Pod {
	owner := lease.Addresses[0].Owner
	sum := keySum(owner.Key)
	pod := Pod{
		HostDev: HostDevice(owner.Key), HostMAC: localMAC(sum[8:]), Alias: Alias(*owner),
		Dev: owner.IfName, MAC: localMAC(sum[14:]), MTU: mtu,
	}
	if mtu == 0 {
		pod.MTU = lease.Interface.MTU
	}
	for _, a := range lease.Addresses {
		pod.addAddress(settings, a)
	}
	pod.HostSysctls = hostSysctls(pod.HostDev, lease.Addresses)
	return pod
}

// hostSysctls keeps the node from believing what the pod says on its link, from
// the pod's first packet on: they belong to the link before it is up.
func hostSysctls(dev string, addrs []eni.Address) []Sysctl {
	// Strict reverse path: what the pod sends with a source that is not its own is dropped by
	// a lookup that the kernel does anyway. That holds for a pod without IPv4 too.
	list := []Sysctl{{"net/ipv4/conf/" + dev + "/rp_filter", "1"}}
	if slices.ContainsFunc(addrs, func(a eni.Address) bool { return a.Addr.Is4() }) {
		list = append(list, forwardingSysctl(dev))
	}
	if slices.ContainsFunc(addrs, func(a eni.Address) bool { return a.Addr.Is6() }) {
		// The right to send raw packets, which containers have by default, is enough
		// for a router advertisement, and with it the node's default route.
		return append(list, Sysctl{"net/ipv6/conf/" + dev + "/accept_ra", "0"})
	}
	return append(list, Sysctl{"net/ipv6/conf/" + dev + "/disable_ipv6", "1"})
}

// forwardingSysctl lets IPv4 packets go on that come in by the link: ip_forward alone does not say
// so where somebody set the link's own setting, or the one that new links get. IPv6 asks
// only the setting for all links.
func forwardingSysctl(dev string) Sysctl { return Sysctl{"net/ipv4/conf/" + dev + "/forwarding", "1"} }

func (p *Pod) addAddress(settings ipam.Settings, address eni.Address) {
	gateway := podGateway4
	if address.Addr.Is6() {
		gateway = podGateway6
	}
	p.Addrs = append(p.Addrs, Addr{Prefix: address.Prefix(), Dev: p.Dev})
	if address.Addr.Is4() {
		p.Routes = append(p.Routes, Route{Dst: hostPrefix(gateway), Dev: p.Dev, Table: MainTable})
	}
	p.Routes = append(p.Routes, Route{Dst: Anywhere(gateway.Is6()), Gateway: gateway, Dev: p.Dev, Table: MainTable})
	p.Neighs = append(p.Neighs, Neigh{Addr: gateway, MAC: p.HostMAC, Dev: p.Dev})
	p.HostRoutes = append(p.HostRoutes, Route{Dst: address.Prefix(), Dev: p.HostDev, Table: podsTable(settings)})
	p.HostNeighs = append(p.HostNeighs, Neigh{Addr: address.Addr, MAC: p.MAC, Dev: p.HostDev})
	p.HostRules = append(p.HostRules, SourceRules(settings, address)...)
}

// SourceRules returns the rules that send what the pod with the address sends
// out through the address's ENI. In routing mode map that is none: the
// firewall's source map holds the address from the day it joined the pool. With
// SNAT only destinations that see the pod's own address go that way; the rest
// leaves through ENI 0 with the node's address.
func SourceRules(s ipam.Settings, a eni.Address) []Rule {
	if s.Routing != ipam.Rule || a.ENI == 0 {
		return nil
	}
	rule := Rule{Priority: PrioritySource, IPv6: a.Addr.Is6(), From: a.Prefix(), Table: Table(a.ENI)}
	if !s.SNAT || a.Addr.Is6() {
		return []Rule{rule}
	}
	var rules []Rule
	for _, cidr := range s.VPC {
		if cidr.Addr().Is4() {
			rule.To = cidr.Masked()
			rules = append(rules, rule)
		}
	}
	return rules
}

// IsForVPC tells whether the rule sends what a pod sends to a prefix of the VPC out through
// the ENI of its address.
func (r Rule) IsForVPC() bool { return r.Priority == PrioritySource && r.To.IsValid() }

// String returns the pod's state, one line per object, those of the node first.
func (p Pod) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "link %s address %s mtu %d peer %s address %s alias %q\n", p.HostDev, p.HostMAC, p.MTU, p.Dev, p.MAC, p.Alias)
	writeLines(&b, "sysctl ", p.HostSysctls)
	writeLines(&b, "route ", p.HostRoutes)
	writeLines(&b, "rule ", p.HostRules)
	writeLines(&b, "neigh ", p.HostNeighs)
	writeLines(&b, "pod addr ", p.Addrs)
	writeLines(&b, "pod route ", p.Routes)
	writeLines(&b, "pod neigh ", p.Neighs)
	return b.String()
}

func writeLines[T fmt.Stringer](b *strings.Builder, prefix string, items []T) {
	for _, item := range items {
		b.WriteString(prefix + item.String() + "\n")
	}
}
