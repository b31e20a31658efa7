// Package dropin has the files that keep the services of a system off enipool's links, routes and
// settings. They lie in the services' folders for drop-ins.
package dropin

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/install"
	"github.com/enipool/enipool/pkg/netconf"
)

// Node is what the files are about.
type Node struct {
	ENILinks []string // patterns of the links of ENIs, but for the node's own
	OwnLinks []string // through which the node itself is connected
	IPv6     bool
	ConfDir  string // the runtime's network configurations
	// Agent: an agent publishes the network configuration after each boot.
	Agent bool
}

const (
	header   = "# Written by enipool-agent install, removed by enipool-agent uninstall. Changes get lost.\n"
	podLinks = netconf.VethPrefix + "*"
)

// Files returns the files for the node. Those without text are not for this node, and are to be
// removed.
func Files(n Node) []install.SystemFile {
	links := append([]string{podLinks}, n.ENILinks...)
	names := strings.Join(links, " ")
	return []install.SystemFile{
		{
			// Late in the order, so that it wins over what hardening guides set.
			Path: install.SysctlDir + "/99-zz-enipool.conf", Needs: install.SysctlDir, Text: n.sysctls(),
			Why:    "so that `sysctl --system` and udev leave forwarding and rp_filter as pods need them",
			Effect: "from the next `sysctl --system` or boot on, and until then by the agent",
		},
		{
			Path: install.NetworkManagerDir + "/conf.d/99-enipool.conf", Needs: install.NetworkManagerDir,
			// "+=": the plain form would throw away what other files list.
			Text:   header + "[keyfile]\nunmanaged-devices+=interface-name:" + strings.Join(links, ";interface-name:") + "\n",
			Why:    "so that NetworkManager leaves " + names + " alone",
			Effect: "after `systemctl reload NetworkManager`",
		},
		{
			// Early in the order: the first file that matches a link is the only one.
			Path: install.NetworkdDir + "/05-enipool.network", Needs: install.NetworkdDir,
			Text:   header + "[Match]\nName=" + names + "\n\n[Link]\nUnmanaged=yes\n",
			Why:    "so that systemd-networkd leaves " + names + " alone",
			Effect: "after `networkctl reload`",
		},
		{
			Path: "/etc/systemd/networkd.conf.d/99-enipool.conf", Needs: install.NetworkdDir,
			Text:   header + "[Network]\nManageForeignRoutes=no\nManageForeignRoutingPolicyRules=no\n",
			Why:    "so that systemd-networkd does not remove routes and rules that others made",
			Effect: "when systemd-networkd is started again",
		},
		{
			Path: install.NetworkdDir + "/05-enipool.link", Needs: install.NetworkdDir,
			Text:   header + "[Match]\nOriginalName=" + podLinks + "\n\n[Link]\nMACAddressPolicy=none\n",
			Why:    "so that udev does not give " + podLinks + " other MAC addresses",
			Effect: "from the next pod on",
		},
		{
			Path: install.TmpfilesDir + "/enipool.conf", Needs: install.TmpfilesDir, Text: n.tmpfiles(),
			Why:    "so that a booting node is not Ready before its agent can serve",
			Effect: "from the next boot on",
		},
	}
}

// sysctls are what the agent sets too. The leading "-" is for links that are not
// there, and slashes are for link names with dots.
func (n Node) sysctls() string {
	var b strings.Builder
	b.WriteString(header)
	set := func(key, value string) { fmt.Fprintf(&b, "%s = %s\n", key, value) }
	set("net/ipv4/ip_forward", "1")
	set("-net/ipv4/conf/"+podLinks+"/rp_filter", "1")
	for _, link := range slices.Concat(n.OwnLinks, n.ENILinks) {
		set("-net/ipv4/conf/"+link+"/rp_filter", "2")
	}
	if !n.IPv6 {
		return b.String()
	}
	for _, link := range n.OwnLinks {
		set("-net/ipv6/conf/"+link+"/accept_ra", "2") // also when it forwards
	}
	for _, link := range n.ENILinks {
		set("-net/ipv6/conf/"+link+"/accept_ra", "0")
	}
	set("net/ipv6/conf/all/forwarding", "1")
	return b.String()
}

func (n Node) tmpfiles() string {
	if !n.Agent {
		return ""
	}
	return header + "r! " + filepath.Join(n.ConfDir, install.ConflistName) + "\n"
}
