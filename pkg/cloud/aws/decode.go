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

// text reads a word of an answer. No answer makes a secret one's name.
func (d *Driver) text(word *string) string { return d.secrets.Line(aws.ToString(word)) }

// readInterface reads one ENI.
func (d *Driver) readInterface(r types.NetworkInterface) driver.Interface {
	i := driver.Interface{ID: d.secrets.Hide(aws.ToString(r.NetworkInterfaceId)), MAC: d.text(r.MacAddress),
		Subnet: d.text(r.SubnetId), VPC: d.text(r.VpcId), Zone: d.text(r.AvailabilityZone), Index: -1, Mark: readMark(readTags(r.TagSet))}
	for _, g := range r.Groups {
		i.Groups = append(i.Groups, d.text(g.GroupId))
	}
	if r.Status == "pending" {
		i.State = driver.Pending
	}
	d.readAttachment(&i, r.Attachment)
	if !i.Primary {
		i.Unmanaged = unmanaged(r, i.Mark)
	}
	err := readAddresses4(&i, r)
	if err == nil {
		err = readAddresses6(&i, r)
	}
	if err != nil {
		i.Wrong = d.secrets.Line(err.Error())
	}
	return i
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

// readAttachment reads where the ENI is. Of an attachment that is no more nothing counts.
func (d *Driver) readAttachment(i *driver.Interface, a *types.NetworkInterfaceAttachment) {
	if a == nil || a.Status == types.AttachmentStatusDetached {
		return
	}
	switch a.Status {
	case types.AttachmentStatusAttached, "":
		i.State = driver.Attached
	case types.AttachmentStatusDetaching:
		i.State = driver.Detaching
	default:
		i.State = driver.Attaching
	}
	i.Instance, i.Attachment, i.Created = d.text(a.InstanceId), d.text(a.AttachmentId), aws.ToTime(a.AttachTime).UTC()
	i.Card, i.Outlives = int(aws.ToInt32(a.NetworkCardIndex)), a.DeleteOnTermination != nil && !*a.DeleteOnTermination
	if a.DeviceIndex != nil {
		i.Index = int(*a.DeviceIndex)
	}
	i.Primary = i.Index == 0 && i.Card == 0
}

// tagNoManage is how people and AWS' own plugin say that an ENI is not for pods, by the one
// value "true".
const tagNoManage = "node.k8s.amazonaws.com/no_manage"

// unmanaged tells why pods can't use an ENI that is not the instance's primary one.
func unmanaged(r types.NetworkInterface, m driver.Mark) string {
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

func readAddresses4(i *driver.Interface, r types.NetworkInterface) error {
	primary := aws.ToString(r.PrivateIpAddress)
	for _, p := range r.PrivateIpAddresses {
		text := aws.ToString(p.PrivateIpAddress)
		if aws.ToBool(p.Primary) {
			if primary != "" && primary != text {
				return fmt.Errorf("it has two primary addresses, %s and %s", primary, text)
			}
			primary = text
		}
	}
	for _, p := range r.PrivateIpAddresses {
		// EC2 lists the primary address as such, others only name it above.
		if text := aws.ToString(p.PrivateIpAddress); text != primary || text == "" {
			a, err := wire.Addr(text, eni.IPv4)
			if err != nil {
				return err
			}
			i.Singles = append(i.Singles, a)
		}
	}
	for _, p := range r.Ipv4Prefixes {
		b, err := readPrefix(aws.ToString(p.Ipv4Prefix), eni.IPv4)
		if err != nil {
			return err
		}
		i.Blocks = append(i.Blocks, b)
	}
	if primary == "" {
		if len(i.Singles)+len(i.Blocks) > 0 {
			return fmt.Errorf("it has IPv4 addresses and no primary one")
		}
		return nil
	}
	var err error
	i.V4, err = wire.Addr(primary, eni.IPv4)
	return err
}

// readAddresses6 reads the IPv6 addresses. Of several EC2 tells the primary one only where
// that was wished for when the ENI was made.
func readAddresses6(i *driver.Interface, r types.NetworkInterface) error {
	var all []netip.Addr
	for _, p := range r.Ipv6Addresses {
		a, err := wire.Addr(aws.ToString(p.Ipv6Address), eni.IPv6)
		if err != nil {
			return err
		}
		if all = append(all, a); aws.ToBool(p.IsPrimaryIpv6) {
			i.V6 = a
		}
	}
	if named, err := netip.ParseAddr(aws.ToString(r.Ipv6Address)); !i.V6.IsValid() && err == nil && slices.Contains(all, named) {
		i.V6 = named
	}
	if !i.V6.IsValid() && len(all) == 1 {
		i.V6 = all[0]
	}
	own := 0
	for _, a := range all {
		if a == i.V6 && own == 0 {
			own++
			continue
		}
		i.Singles = append(i.Singles, a)
	}
	for _, p := range r.Ipv6Prefixes {
		b, err := readPrefix(aws.ToString(p.Ipv6Prefix), eni.IPv6)
		if err != nil {
			return err
		}
		i.Blocks = append(i.Blocks, b)
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
