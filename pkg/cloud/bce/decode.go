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

// eniAnswer is an ENI of an answer, with the field that the SDK's type lacks.
type eniAnswer struct {
	sdk.Eni
	Mode string `json:"networkInterfaceTrafficMode"`
}

// inUse is the state of an attached ENI.
const inUse = "inuse"

// states are those of an ENI, by what the API calls them.
var states = map[string]driver.State{
	"available": driver.Loose, "attaching": driver.Attaching, inUse: driver.Attached, "detaching": driver.Detaching,
}

// decodeInterface reads an ENI. If something in it can't be right, Wrong says what.
func decodeInterface(answer eniAnswer) driver.Interface {
	iface := driver.Interface{ID: answer.EniId, MAC: answer.MacAddress, Subnet: answer.SubnetId, VPC: answer.VpcId, Zone: answer.ZoneName, Groups: answer.SecurityGroupIds,
		Instance: answer.InstanceId, Index: -1, Created: parseTime(answer.CreatedTime)}
	if len(answer.EnterpriseSecurityGroupIds) > 0 { // an ENI has groups of one kind only
		iface.Groups = answer.EnterpriseSecurityGroupIds
	}
	iface.Mark, _ = parseMark(answer.Description)
	state, known := states[answer.Status]
	hw, err := net.ParseMAC(answer.MacAddress)
	iface.State, iface.MAC = state, hw.String()
	switch {
	case !validID(answer.EniId):
		iface.Wrong = fmt.Sprintf("its id is %q", answer.EniId)
	case err != nil || len(hw) != 6:
		iface.Wrong = fmt.Sprintf("its MAC is %q", answer.MacAddress)
	case !known:
		iface.Wrong = fmt.Sprintf("its status is %q", answer.Status)
	case state == driver.Attached && answer.InstanceId == "":
		iface.Wrong = fmt.Sprintf("it is %s at instance %q", answer.Status, answer.InstanceId)
	default:
		iface.Wrong = decodeAddresses(answer, &iface)
	}
	return iface
}

// decodeAddresses reads the ENI's addresses, or returns why they can't be right.
func decodeAddresses(answer eniAnswer, iface *driver.Interface) (wrong string) {
	seen := map[netip.Addr]bool{}
	for at, set := range [][]sdk.PrivateIp{answer.PrivateIpSet, answer.Ipv6PrivateIpSet} {
		f := [...]eni.Family{eni.IPv4, eni.IPv6}[at]
		for _, ip := range set {
			addr, err := wire.Addr(ip.PrivateIpAddress, f)
			// All IPv6 addresses of an ENI are secondary in this cloud, whatever an answer says.
			primary := f == eni.IPv4 && ip.Primary
			switch {
			case err != nil:
				return "its " + err.Error()
			case seen[addr]:
				return fmt.Sprintf("it has address %s twice", addr)
			case primary && iface.V4.IsValid():
				return fmt.Sprintf("it has the primary addresses %s and %s", iface.V4, addr)
			case primary:
				iface.V4 = addr
			default:
				iface.Singles = append(iface.Singles, addr)
			}
			seen[addr] = true
		}
	}
	if !iface.V4.IsValid() {
		return "it has no primary address"
	}
	return ""
}

// parseTime reads the API's times, with or without a zone, and returns the zero Time for
// others. A time without a zone counts as UTC. Were it local in China, the ENI would seem some
// hours younger than it is, and never older: the sweep deletes by age.
func parseTime(text string) time.Time {
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05.999", "2006-01-02T15:04:05"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC()
		}
	}
	return time.Time{}
}
