package netconf

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/eni"
)

// The chains of iptables that hold host ports. Their names are fixed, because the
// plugin writes them: each time as a whole, from the records of all pods. In
// lower case they sort behind the chains that lead to them.
const (
	iptPorts = IptPodsPrefix + "ports" // ports to pods
	iptSelf  = IptPodsPrefix + "self"  // pods that use their own ports
)

// addPortChains adds the chains that never change, one that leads to each of the
// fixed ones, and what keeps pods from the node's loopback; see guardLoopback.
func (f Firewall) addPortChains(family eni.Family, add func(table, parent, name string, rules []string)) {
	node := f.primaryAddr(family)
	if !node.IsValid() {
		return
	}
	local := []string{"-m addrtype --dst-type LOCAL -j " + iptPorts}
	add("nat", "PREROUTING", IptPodsPrefix+"PORTIN", local)
	add("nat", "OUTPUT", IptPodsPrefix+"PORTOUT", local)
	back := []string{"-j " + iptSelf}
	if family == eni.IPv4 {
		back = append(back, fmt.Sprintf("-s %s -o %s+ -j SNAT --to-source %s --random-fully", loopback4, VethPrefix, node))
		add("mangle", "INPUT", IptPodsPrefix+"LOOPBACK", []string{
			fmt.Sprintf("-d %s -i %s+ -m conntrack --ctdir REPLY -j RETURN", loopback4, VethPrefix),
			fmt.Sprintf("-d %s -i %s+ -j DROP", loopback4, VethPrefix)})
	}
	add("nat", "POSTROUTING", IptPodsPrefix+"SELF", back)
}

func (f Firewall) primaryAddr(family eni.Family) netip.Addr {
	if family == eni.IPv6 {
		return f.Node6
	}
	return f.Node4
}

// IptPorts returns the chains of the family that hold the ports. Ports of one
// address come before those of all. Node is what a pod sees as the source where
// it uses its own port.
func IptPorts(family eni.Family, ports []PodPorts, node netip.Addr) []IptChain {
	pods, self := IptChain{Table: "nat", Name: iptPorts, Fixed: true}, IptChain{Table: "nat", Name: iptSelf, Fixed: true}
	var all []string
	taken := map[NftPort]bool{}
	for _, pod := range ports {
		if eni.FamilyOf(pod.Pod) != family {
			continue
		}
		self.Rules = append(self.Rules, fmt.Sprintf("-s %[1]s -d %[1]s -j SNAT --to-source %[2]s --random-fully", hostPrefix(pod.Pod), node))
		for _, port := range pod.Ports {
			key := port.nftKey()
			if !port.Serves(pod.Pod) || taken[key] {
				continue
			}
			taken[key] = true
			rule := fmt.Sprintf("-p %[1]s -m %[1]s --dport %d -j DNAT --to-destination %s", key.Transport, key.Port, iptPort(pod.Pod, port.PodPort))
			if key.Host.IsValid() {
				pods.Rules = append(pods.Rules, fmt.Sprintf("-d %s %s", hostPrefix(key.Host), rule))
			} else {
				all = append(all, rule)
			}
		}
	}
	pods.Rules = slices.Concat(pods.Rules, all)
	if !node.IsValid() {
		return []IptChain{pods} // the node cache is lost; whoever rebuilds it does the rest
	}
	return []IptChain{pods, self}
}

// IptRestore returns the chains as iptables-restore takes them: it replaces their
// rules, all at once, and fails where one of them does not exist.
func IptRestore(chains []IptChain) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%s\n", chains[0].Table)
	for _, c := range chains {
		fmt.Fprintf(&b, "-F %s\n", c.Name)
	}
	for _, c := range chains {
		for _, r := range c.Rules {
			fmt.Fprintf(&b, "-A %s %s\n", c.Name, r)
		}
	}
	return b.String() + "COMMIT\n"
}

func iptPort(pod netip.Addr, port uint16) string {
	if pod.Is6() {
		return fmt.Sprintf("[%s]:%d", pod, port)
	}
	return fmt.Sprintf("%s:%d", pod, port)
}
