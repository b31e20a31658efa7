package aws

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/wire"
	"github.com/enipool/enipool/pkg/eni"
)

// safeText reads a word of an answer and hides secrets in it: names go to logs, and an answer
// could have anything in their place.
func (d *Driver) safeText(word *string) string { return d.secrets.Line(aws.ToString(word)) }

// readInterface reads one ENI.
func (d *Driver) readInterface(raw types.NetworkInterface) driver.Interface {
	iface := driver.Interface{ID: d.secrets.Hide(aws.ToString(raw.NetworkInterfaceId)), MAC: d.safeText(raw.MacAddress),
		Subnet: d.safeText(raw.SubnetId), VPC: d.safeText(raw.VpcId), Zone: d.safeText(raw.AvailabilityZone), Index: -1, Mark: readMark(readTags(raw.TagSet))}
	for _, g := range raw.Groups {
		iface.Groups = append(iface.Groups, d.safeText(g.GroupId))
	}
	if raw.Status == "pending" {
		iface.State = driver.Pending
	}
	d.readAttachment(&iface, raw.Attachment)
	if !iface.Primary {
		iface.Unmanaged = whyUnmanaged(raw, iface.Mark)
	}
	err := readAddresses4(&iface, raw)
	if err == nil {
		err = readAddresses6(&iface, raw)
	}
	if err != nil {
		iface.Wrong = d.secrets.Line(err.Error())
	}
	return iface
}

// readMark reads the tags that were written when the ENI was made.
func readMark(tags map[string]string) driver.Mark {
	if tags[tagNode] == "" {
		return driver.Mark{}
	}
	m := driver.Mark{Instance: tags[tagNode], Token: tags[tagToken], Cluster: tags[tagCluster]}
	if at, err := time.Parse(time.RFC3339Nano, tags[tagCreated]); err == nil {
		m.Asked = at.UTC()
	}
	return m
}

// readAttachment reads where the ENI is. An attachment that has ended says nothing of that.
func (d *Driver) readAttachment(iface *driver.Interface, raw *types.NetworkInterfaceAttachment) {
	if raw == nil || raw.Status == types.AttachmentStatusDetached {
		return
	}
	switch raw.Status {
	case types.AttachmentStatusAttached, "":
		iface.State = driver.Attached
	case types.AttachmentStatusDetaching:
		iface.State = driver.Detaching
	default:
		iface.State = driver.Attaching
	}
	iface.Instance, iface.Attachment, iface.Created = d.safeText(raw.InstanceId), d.safeText(raw.AttachmentId), aws.ToTime(raw.AttachTime).UTC()
	iface.Card, iface.Outlives = int(aws.ToInt32(raw.NetworkCardIndex)), raw.DeleteOnTermination != nil && !*raw.DeleteOnTermination
	if raw.DeviceIndex != nil {
		iface.Index = int(*raw.DeviceIndex)
	}
	iface.Primary = iface.Index == 0 && iface.Card == 0
}

// tagNoManage is how people, and AWS' own plugin, say that an ENI is not for pods. Only the
// value "true" counts.
const tagNoManage = "node.k8s.amazonaws.com/no_manage"

// whyUnmanaged tells why pods can't use an ENI that is not the instance's primary one.
func whyUnmanaged(r types.NetworkInterface, m driver.Mark) string {
	switch kind := r.InterfaceType; {
	case kind != "" && kind != types.NetworkInterfaceTypeInterface:
		return fmt.Sprintf("its type is %.40q", kind)
	case readTags(r.TagSet)[tagNoManage] == "true":
		return "it has the tag " + tagNoManage
	case aws.ToBool(r.RequesterManaged) && m.Instance == "":
		return "another service manages it"
	}
	return ""
}

func readAddresses4(iface *driver.Interface, raw types.NetworkInterface) error {
	primary := aws.ToString(raw.PrivateIpAddress)
	for _, p := range raw.PrivateIpAddresses {
		text := aws.ToString(p.PrivateIpAddress)
		if aws.ToBool(p.Primary) {
			if primary != "" && primary != text {
				return fmt.Errorf("it has two primary addresses, %s and %s", primary, text)
			}
			primary = text
		}
	}
	for _, p := range raw.PrivateIpAddresses {
		// EC2 lists the primary address as such, others only name it above.
		if text := aws.ToString(p.PrivateIpAddress); text != primary || text == "" {
			a, err := wire.Addr(text, eni.IPv4)
			if err != nil {
				return err
			}
			iface.Singles = append(iface.Singles, a)
		}
	}
	for _, p := range raw.Ipv4Prefixes {
		b, err := readPrefix(aws.ToString(p.Ipv4Prefix), eni.IPv4)
		if err != nil {
			return err
		}
		iface.Blocks = append(iface.Blocks, b)
	}
	if primary == "" {
		if len(iface.Singles)+len(iface.Blocks) > 0 {
			return fmt.Errorf("it has IPv4 addresses and no primary one")
		}
		return nil
	}
	var err error
	iface.V4, err = wire.Addr(primary, eni.IPv4)
	return err
}

// readAddresses6 reads the IPv6 addresses. If there are several, EC2 tells which is the
// primary one only if that was asked for when the ENI was made.
func readAddresses6(iface *driver.Interface, raw types.NetworkInterface) error {
	var all []netip.Addr
	for _, p := range raw.Ipv6Addresses {
		a, err := wire.Addr(aws.ToString(p.Ipv6Address), eni.IPv6)
		if err != nil {
			return err
		}
		if all = append(all, a); aws.ToBool(p.IsPrimaryIpv6) {
			iface.V6 = a
		}
	}
	if named, err := netip.ParseAddr(aws.ToString(raw.Ipv6Address)); !iface.V6.IsValid() && err == nil && slices.Contains(all, named) {
		iface.V6 = named
	}
	if !iface.V6.IsValid() && len(all) == 1 {
		iface.V6 = all[0]
	}
	// Only one entry is the primary address. A second entry with the same address stays among
	// Singles, where the engine finds that the answer can't be right.
	own := 0
	for _, a := range all {
		if a == iface.V6 && own == 0 {
			own++
			continue
		}
		iface.Singles = append(iface.Singles, a)
	}
	for _, p := range raw.Ipv6Prefixes {
		b, err := readPrefix(aws.ToString(p.Ipv6Prefix), eni.IPv6)
		if err != nil {
			return err
		}
		iface.Blocks = append(iface.Blocks, b)
	}
	return nil
}

// readPrefix reads a delegated prefix of a family.
func readPrefix(text string, f eni.Family) (netip.Prefix, error) {
	bits := bits4
	if f == eni.IPv6 {
		bits = bits6
	}
	p, err := netip.ParsePrefix(text)
	if err != nil || p != p.Masked() || p.Bits() != bits || eni.FamilyOf(p.Addr()) != f {
		return netip.Prefix{}, fmt.Errorf("prefix %q is no /%d", text, bits)
	}
	return p, nil
}
