package check

import (
	"fmt"
	"net"
	"net/netip"
	"path"
	"slices"

	"github.com/enipool/enipool/pkg/host"
	"github.com/enipool/enipool/pkg/install"
)

// findSecondaries finds addresses that the links of ENIs have beside their first one of the subnet.
// The cloud gave the ENI those for pods: as long as the node has them, no pod gets them.
func findSecondaries(tree install.Tree, needs Needs) []install.Line {
	own := OwnLinks()
	list, err := net.Interfaces()
	if err != nil {
		return []install.Line{notTried("look for pods' addresses on the node's links", err)}
	}
	var found []string
	for _, link := range list {
		isENI := slices.Contains(own, link.Name) || slices.ContainsFunc(needs.ENILinks, func(p string) bool {
			match, err := path.Match(p, link.Name)
			return err == nil && match
		})
		if isENI {
			found = append(found, secondariesOf(link)...)
		}
	}
	if len(found) == 0 {
		return nil
	}
	more := ""
	if len(found) > 1 {
		more = fmt.Sprintf(" and %d more", len(found)-1)
	}
	services := host.NICServices(tree.Root)
	if len(services) == 0 {
		return []install.Line{install.Linef(install.Warning, "the node has the address %s%s beside its own: if the cloud assigned it for pods, take it off the link", found[0], more)}
	}
	var lines []install.Line
	for _, s := range services {
		lines = append(lines, install.Linef(needs.severityBeside(tree), "%s is on this node, and the node has the address %s%s beside its own: no pod gets what the node has. %s; then take them off the links",
			s.Name, found[0], more, s.Todo))
	}
	return lines
}

// secondariesOf returns the link's IPv4 addresses of a subnet of which it has an
// earlier one.
func secondariesOf(link net.Interface) []string {
	addrs, _ := link.Addrs() // a link that went has none
	seen := map[netip.Prefix]bool{}
	var list []string
	for _, a := range addrs {
		p, err := netip.ParsePrefix(a.String())
		if err != nil || !p.Addr().Is4() || !p.Addr().IsGlobalUnicast() {
			continue
		}
		inside := p.IsSingleIP() && len(seen) > 0 // as some services put them there
		if seen[p.Masked()] || inside {
			list = append(list, fmt.Sprintf("%s dev %s", p, link.Name))
		}
		seen[p.Masked()] = true
	}
	return list
}
