package check

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/host"
	"github.com/enipool/enipool/pkg/host/firewall"
	"github.com/enipool/enipool/pkg/install"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/isolate"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// tryKernel does what agent and plugin will do, in a network namespace of its own. It reads no list
// of the kernel's features, which would have to be kept in step with what they use.
func tryKernel(needs Needs) []install.Line {
	var lines []install.Line
	err := isolate.OnThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		lines = runTrials(needs)
		return nil
	})
	if errors.Is(err, fs.ErrPermission) {
		return []install.Line{withoutRight("CAP_SYS_ADMIN")}
	}
	if err != nil {
		return []install.Line{install.Linef(install.MustFix, "the kernel makes no network namespace: %v; it needs CONFIG_NET_NS", err)}
	}
	return lines
}

// withoutRight is the line where this process lacks rights, which says nothing about the kernel.
func withoutRight(right string) install.Line {
	return install.Linef(install.NotTried, "the kernel: that needs %s; run it as root on the node, in a container with that capability", right)
}

// notTried is the line of a check that could not be made, which says nothing about the node.
func notTried(check string, err error) install.Line {
	again := "run it again"
	if errors.Is(err, fs.ErrPermission) {
		again = "run it as root on the node"
	}
	return install.Linef(install.NotTried, "%s: %v; %s", check, err, again)
}

// runTrials runs inside the namespace.
func runTrials(needs Needs) []install.Line {
	err := makeLinks()
	if errors.Is(err, fs.ErrPermission) { // none of the others would work either
		return []install.Line{withoutRight("CAP_NET_ADMIN")}
	}
	if err != nil {
		return []install.Line{install.Linef(install.MustFix, "the kernel makes no veth pair: %v; load the module veth", err)}
	}
	lines := []install.Line{okLine("the kernel makes veth pairs")}
	for _, family := range needs.Settings.Families {
		lines = append(lines, tryRouting(family, needs.Settings))
	}
	return append(lines, tryPacketFilter(needs))
}

var links = [...]string{"try0", "try1"}

// makeLinks makes a pair as the plugin does: both MACs given.
func makeLinks() error {
	mac := func(last byte) net.HardwareAddr { return net.HardwareAddr{2, 0, 0, 0, 0, last} }
	pair := netlink.NewVeth(netlink.LinkAttrs{Name: links[0], TxQLen: -1, HardwareAddr: mac(1)})
	pair.PeerName, pair.PeerHardwareAddr = links[1], mac(2)
	return netlink.LinkAdd(pair)
}

// tryRouting has the kernel hold a node with two ENIs, and their policy routing.
func tryRouting(family eni.Family, s ipam.Settings) install.Line {
	h, err := host.New()
	if err == nil {
		defer h.Close()
		err = h.ApplyNode(netconf.NewNode(sampleState(family, s)), netconf.Node{})
	}
	switch {
	case errors.Is(err, unix.EROFS):
		return install.Linef(install.MustFix, "the kernel's settings can't be changed: %v; in a container mount the node's /proc/sys/net at /host/proc/sys/net, or make it privileged", err)
	case err != nil && family == eni.IPv6:
		return install.Linef(install.MustFix, "the kernel does not route by rules and tables: %v; it needs CONFIG_IPV6_MULTIPLE_TABLES, and no ipv6.disable=1", err)
	case err != nil:
		return install.Linef(install.MustFix, "the kernel does not route by rules and tables: %v; it needs CONFIG_IP_MULTIPLE_TABLES", err)
	}
	return okLine("the kernel routes %s by rules and tables", family)
}

// sampleState is a node state of one family, with addresses that are reserved for documentation, RFC
// 5737 and RFC 3849.
func sampleState(family eni.Family, s ipam.Settings) *ipam.State {
	s.Families, s.VPC = []eni.Family{family}, nil
	state := &ipam.State{Settings: s}
	for i, link := range links {
		nic := eni.Interface{ID: link, Index: i, Device: link}
		if family == eni.IPv6 {
			nic.V6 = eni.Net{Primary: netip.MustParsePrefix(fmt.Sprintf("2001:db8::%d/64", 10+i)), Gateway: netip.MustParseAddr("fe80::1")}
		} else {
			nic.V4 = eni.Net{Primary: netip.MustParsePrefix(fmt.Sprintf("192.0.2.%d/24", 10+i)), Gateway: netip.MustParseAddr("192.0.2.1")}
		}
		state.ENIs = append(state.ENIs, nic)
	}
	return state
}

// tryPacketFilter tries what the agent will use.
func tryPacketFilter(needs Needs) install.Line {
	nft := firewall.Works(ipam.Nftables)
	var ipt error
	switch {
	case nft == nil && (needs.AnyFirewall || needs.Settings.Firewall == ipam.Nftables):
		return okLine("nftables does what is needed")
	case needs.Settings.Routing == ipam.Map:
		return install.Linef(install.MustFix, "routing map needs nftables: %v; or set routing: rule", nft)
	case !needs.AnyFirewall && needs.Settings.Firewall == ipam.Nftables:
		return install.Linef(install.MustFix, "%v; or set firewall: auto", nft)
	default:
		ipt = firewall.Works(ipam.Iptables)
	}
	if ipt != nil {
		return install.Linef(install.MustFix, "no packet filter works: %v", errors.Join(ipt, nft))
	}
	return okLine("iptables does what is needed")
}
