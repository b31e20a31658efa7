package ipam

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/eni"
)

// OutsideVPC says which ENI's own address is in none of the VPC's ranges that the settings
// name, and what to set; "" if there is none. Nobody can mean that: pods would reach the VPC,
// their own node too, with the node's address instead of theirs.
//
// SNAT is for IPv4 alone.
func OutsideVPC(s Settings, enis []eni.Interface) string {
	if !s.SNAT || !slices.Contains(s.Families, eni.IPv4) {
		return ""
	}
	for _, nic := range enis {
		own := nic.V4.Primary
		if !own.IsValid() || slices.ContainsFunc(s.VPC, func(cidr netip.Prefix) bool { return cidr.Contains(own.Addr()) }) {
			continue
		}
		return fmt.Sprintf("vpcCIDRs %v does not hold %s, the address of the ENI %s (%s): pods would reach the VPC with the node's address; set vpcCIDRs to the VPC's ranges, the one with %s among them",
			s.VPC, own.Addr(), nic.ID, nic.Device, own.Masked())
	}
	return ""
}
