package bce

import (
	"fmt"
	"net"
	"net/netip"
	"time"

	sdk "github.com/baidubce/bce-sdk-go/services/eni"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/wire"
	"github.com/enipool/enipool/pkg/eni"
)

// eniAnswer is an ENI of an answer, with what the SDK does not read of it.
type eniAnswer struct {
	sdk.Eni
	Mode string `json:"networkInterfaceTrafficMode"`
}

// inUse is the state of an attached ENI.
const inUse = "inuse"

// states are those of an ENI.
var states = map[string]driver.State{
	"available": driver.Loose, "attaching": driver.Attaching, inUse: driver.Attached, "detaching": driver.Detaching,
}

// decode reads an ENI. What it shows by itself that can't be right is in Wrong.
func decode(e eniAnswer) driver.Interface {
	i := driver.Interface{ID: e.EniId, MAC: e.MacAddress, Subnet: e.SubnetId, VPC: e.VpcId, Zone: e.ZoneName, Groups: e.SecurityGroupIds,
		Instance: e.InstanceId, Index: -1, Created: parseTime(e.CreatedTime)}
	if len(e.EnterpriseSecurityGroupIds) > 0 {
		i.Groups = e.EnterpriseSecurityGroupIds
	}
	i.Mark, _ = parseMark(e.Description)
	state, known := states[e.Status]
	hw, err := net.ParseMAC(e.MacAddress)
	i.State, i.MAC = state, hw.String()
	switch {
	case !validID(e.EniId):
		i.Wrong = fmt.Sprintf("its id is %q", e.EniId)
	case err != nil || len(hw) != 6:
		i.Wrong = fmt.Sprintf("its MAC is %q", e.MacAddress)
	case !known:
		i.Wrong = fmt.Sprintf("its status is %q", e.Status)
	case state == driver.Attached && e.InstanceId == "":
		i.Wrong = fmt.Sprintf("it is %s at instance %q", e.Status, e.InstanceId)
	default:
		i.Wrong = addresses(e, &i)
	}
	return i
}

// addresses reads the ENI's addresses, or returns why they can't be right. Of IPv6 the
// cloud has no primary ones.
func addresses(e eniAnswer, i *driver.Interface) (wrong string) {
	seen := map[netip.Addr]bool{}
	for at, set := range [][]sdk.PrivateIp{e.PrivateIpSet, e.Ipv6PrivateIpSet} {
		f := [...]eni.Family{eni.IPv4, eni.IPv6}[at]
		for _, ip := range set {
			a, err := wire.Addr(ip.PrivateIpAddress, f)
			primary := f == eni.IPv4 && ip.Primary
			switch {
			case err != nil:
				return "its " + err.Error()
			case seen[a]:
				return fmt.Sprintf("it has address %s twice", a)
			case primary && i.V4.IsValid():
				return fmt.Sprintf("it has the primary addresses %s and %s", i.V4, a)
			case primary:
				i.V4 = a
			default:
				i.Singles = append(i.Singles, a)
			}
			seen[a] = true
		}
	}
	if !i.V4.IsValid() {
		return "it has no primary address"
	}
	return ""
}

// parseTime reads the API's times: with a zone, or without, which may be a few hours
// off, but never makes an ENI older than it is.
func parseTime(text string) time.Time {
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05.999", "2006-01-02T15:04:05"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC()
		}
	}
	return time.Time{}
}
