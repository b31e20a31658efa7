package ipam

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/eni"
)

// OutsideVPC says which ENI's own address, or range for pods, is in none of the VPC's ranges that
// the settings name, and what to set; "" if there is none. Nobody can mean that: pods would
// reach the VPC, their own node too, with the node's address instead of theirs.
//
// SNAT is for IPv4 alone.
func OutsideVPC(settings Settings, enis []eni.Interface) string {
	if !settings.SNAT || !slices.Contains(settings.Families, eni.IPv4) {
		return ""
	}
	for _, nic := range enis {
		for _, p := range nic.Pods {
			if p.Addr().Is4() && !isIn(settings.VPC, p.Addr()) {
				return fmt.Sprintf("vpcCIDRs %v does not hold %s, the range for pods of the ENI %s (%s): pods would reach each other with the node's address; add it to vpcCIDRs",
					settings.VPC, p, nic.ID, nic.Device)
			}
		}
		own := nic.V4.Primary
		if !own.IsValid() || isIn(settings.VPC, own.Addr()) {
			continue
		}
		return fmt.Sprintf("vpcCIDRs %v does not hold %s, the address of the ENI %s (%s): pods would reach the VPC with the node's address; set vpcCIDRs to the VPC's ranges, the one with %s among them",
			settings.VPC, own.Addr(), nic.ID, nic.Device, own.Masked())
	}
	return ""
}

func isIn(ranges []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(ranges, func(p netip.Prefix) bool { return p.Contains(a) })
}
