package check

import (
	"net"
	"path"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/install"
)

// neighbour is a program that is known by what it leaves on a node, and what people should know of it beside enipool.
type neighbour struct {
	name  string
	links []string // patterns of the names of its links
	files []string // that are there as long as it is installed
	what  install.What
	text  string
}

// neighbours follow pkg/netconf/NEIGHBOURS.md and MARKS.md. What a check tries out, such as chains that drop and services that configure ENIs, has no
// row here.
var neighbours = []neighbour{
	{"aws-vpc-cni", nil, []string{"/opt/cni/bin/aws-cni", "/etc/cni/net.d/10-aws.conflist"}, install.Warning,
		"it manages the same ENIs: enipool takes a new node, from which it is kept away; conf/migrate/aws-vpc-cni.md"},
	{"Cilium", []string{"cilium_host"}, nil, install.Warning,
		"works where it is chained behind enipool (cni.chainingMode: generic-veth); with an IPAM of its own it needs another node: conf/migrate/cilium-eni.md"},
	{"Calico", []string{"cali*", "vxlan.calico"}, nil, install.Warning,
		"works as a policy engine with FELIX_INTERFACEPREFIX=eni, and with firewall: iptables FELIX_IPTABLESMANGLEALLOWACTION=Return; with its own IPAM it needs another node"},
	{"flannel", []string{"flannel.1", "flannel-v6.1"}, nil, install.MustFix, "it is a network of its own: take it off this node, and restart the node so that its links and rules are gone"},
	{"the bridge plugin", []string{"cni0", "cbr0"}, nil, install.Warning, "pods of another network were here: enipool leaves its bridge alone; restart the node to be rid of it"},
	{"kube-proxy in mode ipvs", []string{"kube-ipvs0"}, nil, install.OK, "works: its addresses are known as those of Services"},
	{"NodeLocal DNSCache", []string{"nodelocaldns"}, nil, install.OK, "works: its addresses are known as those of Services"},
	{"docker", []string{"docker0"}, nil, install.Warning, "its FORWARD policy DROP cuts pods off: a check above says whether it does; docker's setting \"iptables\": false, or \"ip-forward-no-drop\": true, ends that"},
	{"firewalld", nil, []string{"/etc/systemd/system/multi-user.target.wants/firewalld.service"}, install.Warning,
		"with IPv6 set IPv6_rpfilter=loose (before 2.2: no) in /etc/firewalld/firewalld.conf, else packets from outside the VPC are dropped on each ENI but the first"},
	{"WireGuard", []string{"wg*"}, nil, install.Warning, "wg-quick's rule comes before enipool's: Table = off, and its rules at 1540 and 1541; pkg/netconf/NEIGHBOURS.md has the lines"},
	{"Tailscale", []string{"tailscale0"}, nil, install.OK, "works: its rules come after enipool's, and its marks are other bits"},
	{"Multus", nil, []string{"/etc/cni/net.d/00-multus.conf", "/etc/cni/net.d/00-multus.conflist"}, install.Warning,
		"its configuration comes first and calls the others: enipool is its cluster network where its delegate is enipool's configuration"},
}

// Beside tells what else lives on the node, in its files and in the network namespace of the calling thread, and what to do about it. What
// install's own checks try out is not repeated.
func Beside(tree install.Tree) []install.Line {
	links, err := net.Interfaces()
	if err != nil {
		return []install.Line{notTried("list the node's links", err)}
	}
	var names []string
	for _, l := range links {
		names = append(names, l.Name)
	}
	return tellNeighbours(names, func(file string) bool { return linkExists(tree, file) })
}

func tellNeighbours(links []string, exists func(file string) bool) (lines []install.Line) {
	for _, n := range neighbours {
		var by []string
		for _, link := range links {
			if slices.ContainsFunc(n.links, func(pattern string) bool { is, _ := path.Match(pattern, link); return is }) {
				by = append(by, link)
			}
		}
		for _, file := range n.files {
			if exists(file) {
				by = append(by, file)
			}
		}
		if len(by) > 0 {
			lines = append(lines, install.Linef(n.what, "%s (%s): %s", n.name, strings.Join(by[:min(len(by), 3)], ", "), n.text))
		}
	}
	if len(lines) == 0 {
		lines = append(lines, okLine("no other program that enipool knows of has links or files here"))
	}
	return lines
}
