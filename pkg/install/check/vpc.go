package check

import (
	"net"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/install"
	"github.com/enipool/enipool/pkg/ipam"
)

// checkVPC refuses ranges of the VPC that hold none of the addresses by which the node leaves
// itself: those of its primary ENI. An agent later looks at those of all its ENIs.
func checkVPC(needs Needs) []install.Line {
	return wrongRanges(needs.Settings, ownAddresses())
}

func wrongRanges(s ipam.Settings, own []netip.Addr) []install.Line {
	if !s.SNAT || len(s.VPC) == 0 || len(own) == 0 {
		return nil
	}
	for _, cidr := range s.VPC {
		if slices.ContainsFunc(own, cidr.Contains) {
			return []install.Line{okLine("vpcCIDRs %v holds the node's own address", s.VPC)}
		}
	}
	return []install.Line{install.Linef(install.MustFix, "vpcCIDRs %v does not hold the node's own address %s: pods would reach the VPC with the node's address; set vpcCIDRs to the VPC's ranges", s.VPC, own[0])}
}

// ownAddresses returns the IPv4 addresses of the links that connect the node.
func ownAddresses() (own []netip.Addr) {
	for _, name := range OwnLinks() {
		link, err := net.InterfaceByName(name)
		if err != nil {
			continue
		}
		addrs, _ := link.Addrs() // as good as none
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() && !p.Addr().IsLinkLocalUnicast() {
				own = append(own, p.Addr())
			}
		}
	}
	return own
}
