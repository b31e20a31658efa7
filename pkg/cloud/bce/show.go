package bce

import (
	"fmt"
	"net"
	"net/netip"
	"slices"

	sdk "github.com/baidubce/bce-sdk-go/services/eni"
	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// show makes an ENI of ours of the cloud's, without its index, or returns why that
// can't be one.
func show(n nic, me self, in network) (cloud.Interface, error) {
	hw, err := net.ParseMAC(n.MacAddress)
	switch {
	case !validID(n.EniId):
		return cloud.Interface{}, fmt.Errorf("its id is %q", n.EniId)
	case err != nil || len(hw) != 6:
		return cloud.Interface{}, fmt.Errorf("its MAC is %q", n.MacAddress)
	case in.id != n.SubnetId || n.VpcId != "" && in.vpc != "" && n.VpcId != in.vpc:
		return cloud.Interface{}, fmt.Errorf("it is of VPC %q and subnet %q", n.VpcId, n.SubnetId)
	case n.VpcId != "" && n.VpcId != me.vpc:
		return cloud.Interface{}, fmt.Errorf("it is of VPC %q", n.VpcId)
	case n.InstanceId != me.instance && (n.InstanceId != "" || n.Status == inUse):
		return cloud.Interface{}, fmt.Errorf("it is %s at instance %q", n.Status, n.InstanceId)
	case !slices.Contains([]string{available, attaching, inUse, detaching}, n.Status):
		return cloud.Interface{}, fmt.Errorf("its status is %q", n.Status)
	}
	i := cloud.Interface{ID: n.EniId, MAC: hw.String(), Subnet: n.SubnetId, Ours: n.ours, Created: parseTime(n.CreatedTime)}
	if n.ours {
		i.Token = n.mark.token
		if i.Created.IsZero() {
			i.Created = n.mark.asked
		}
	}
	if err := addresses(n, in, &i); err != nil {
		return cloud.Interface{}, err
	}
	return i, nil
}

// addresses fills in the ENI's addresses. Of IPv6 the first one that ENIs of ours
// got is the primary; on others nobody can tell, so they have no place in the IPv6
// subnet and their addresses are nobody's to give out.
func addresses(n nic, in network, i *cloud.Interface) error {
	seen := map[netip.Addr]bool{}
	read := func(set []sdk.PrivateIp, f eni.Family) (primary netip.Addr, err error) {
		for _, ip := range set {
			a, err := netip.ParseAddr(ip.PrivateIpAddress)
			switch {
			case err != nil || a.Zone() != "" || a.Is4In6() || eni.FamilyOf(a) != f:
				return netip.Addr{}, fmt.Errorf("its %s address is %q", f, ip.PrivateIpAddress)
			case !in.may(a):
				return netip.Addr{}, fmt.Errorf("its address %s is not one of subnet %s", a, in.id)
			case seen[a]:
				return netip.Addr{}, fmt.Errorf("it has address %s twice", a)
			}
			seen[a] = true
			switch {
			case f == eni.IPv4 && ip.Primary && primary.IsValid():
				return netip.Addr{}, fmt.Errorf("it has the primary addresses %s and %s", primary, a)
			case f == eni.IPv4 && ip.Primary, f == eni.IPv6 && a == n.mark.v6:
				primary = a
			default:
				i.Addresses = append(i.Addresses, a)
			}
		}
		return primary, nil
	}
	primary, err := read(n.PrivateIpSet, eni.IPv4)
	if err != nil {
		return err
	}
	if !primary.IsValid() {
		return fmt.Errorf("it has no primary address")
	}
	i.V4 = in.net(primary)
	if primary, err = read(n.Ipv6PrivateIpSet, eni.IPv6); err != nil {
		return err
	}
	if primary.IsValid() {
		i.V6 = in.net(primary)
	} else {
		i.Addresses = slices.DeleteFunc(i.Addresses, netip.Addr.Is6)
	}
	slices.SortFunc(i.Addresses, netip.Addr.Compare)
	return nil
}

// separate leaves out ENIs that share a MAC or an address with another: of which
// of them it is, is anybody's guess. The instance's own stays.
func separate(nics []nic, wrong []cloud.Quarantined) ([]nic, []cloud.Quarantined) {
	owners := map[string][]int{}
	for at, n := range nics {
		keys := []string{n.shown.MAC, n.shown.V4.Primary.Addr().String()}
		if n.shown.V6.IsValid() {
			keys = append(keys, n.shown.V6.Primary.Addr().String())
		}
		for _, a := range n.shown.Addresses {
			keys = append(keys, a.String())
		}
		for _, key := range keys {
			owners[key] = append(owners[key], at)
		}
	}
	reason := map[int]string{}
	for key, at := range owners {
		for _, i := range at {
			if len(at) > 1 && i > 0 {
				reason[i] = max(reason[i], fmt.Sprintf("another ENI has %s too", key))
			}
		}
	}
	var kept []nic
	for at, n := range nics {
		if why, ok := reason[at]; ok {
			wrong = append(wrong, cloud.Quarantined{ID: n.EniId, Why: why})
			continue
		}
		kept = append(kept, n)
	}
	return kept, wrong
}
