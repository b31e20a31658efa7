package aws

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// nic is an ENI with what only this package needs of it.
type nic struct {
	cloud.Interface
	attachment string // ID; also of one that is under way
	pending    bool   // EC2 is still making it
	zone, vpc  string
	groups     []string
	blocks     []netip.Prefix // delegated prefixes
	singles    []netip.Addr   // secondary addresses outside of those
}

// rank is how far an ENI has come on its way to the node.
func (n nic) rank() int {
	switch {
	case n.Index >= 0:
		return 2
	case n.attachment != "":
		return 1
	}
	return 0
}

// decoder makes ENIs of an answer. It believes nothing.
type decoder struct {
	instance string
	subnets  map[string]subnet
	size6    int // how many addresses of a /80 pods may have
	first6   func(id string, addrs []netip.Addr) netip.Addr
}

// all returns the ENIs in the order of their creation, the node's own first, and
// those that are left out.
func (d decoder) all(raw []types.NetworkInterface) (nics []nic, out []quarantined) {
	for _, r := range raw {
		if notForPods(r) {
			continue
		}
		n, err := d.one(r)
		if err != nil {
			out = append(out, quarantined{aws.ToString(r.NetworkInterfaceId), err.Error(), isOwn(r)})
			continue
		}
		if n.Index >= 0 || n.Ours {
			nics = append(nics, n)
		}
	}
	nics, clashes := withoutClashes(nics)
	slices.SortStableFunc(nics, func(a, b nic) int {
		return cmp.Or(cmp.Compare(first(a), first(b)), a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	})
	return nics, append(out, clashes...)
}

// first puts the node's own ENI before all others.
func first(n nic) int {
	if n.Index == 0 {
		return 0
	}
	return 1
}

func isOwn(r types.NetworkInterface) bool {
	a := r.Attachment
	return a != nil && aws.ToInt32(a.DeviceIndex) == 0 && aws.ToInt32(a.NetworkCardIndex) == 0
}

// notForPods tells whether an ENI is another's business altogether.
func notForPods(r types.NetworkInterface) bool {
	if isOwn(r) {
		return false
	}
	plain := r.InterfaceType == "" || r.InterfaceType == types.NetworkInterfaceTypeInterface
	_, unmanaged := tag(r.TagSet, "node.k8s.amazonaws.com/no_manage")
	otherCard := r.Attachment != nil && aws.ToInt32(r.Attachment.NetworkCardIndex) > 0
	service := aws.ToBool(r.RequesterManaged) && tagged(r, tagNode) == ""
	return !plain || unmanaged || otherCard || service
}

func tag(tags []types.Tag, key string) (value string, found bool) {
	for _, t := range tags {
		if aws.ToString(t.Key) == key {
			return aws.ToString(t.Value), true
		}
	}
	return "", false
}

func tagged(r types.NetworkInterface, key string) string {
	value, _ := tag(r.TagSet, key)
	return value
}

// one reads one ENI.
func (d decoder) one(r types.NetworkInterface) (nic, error) {
	n := nic{zone: aws.ToString(r.AvailabilityZone), vpc: aws.ToString(r.VpcId), pending: r.Status == "pending"}
	n.ID, n.Subnet = aws.ToString(r.NetworkInterfaceId), aws.ToString(r.SubnetId)
	if n.ID == "" || strings.ContainsAny(n.ID, " \t\n") {
		return n, fmt.Errorf("ENI ID %q can't be one", n.ID)
	}
	mac, err := net.ParseMAC(aws.ToString(r.MacAddress))
	if err != nil || len(mac) != 6 {
		return n, fmt.Errorf("MAC %q can't be one", aws.ToString(r.MacAddress))
	}
	n.MAC = mac.String()
	for _, g := range r.Groups {
		n.groups = append(n.groups, aws.ToString(g.GroupId))
	}
	if err := d.place(&n, r); err != nil {
		return n, err
	}
	where, found := d.subnets[n.Subnet]
	if !found {
		return n, fmt.Errorf("subnet %q is not known", n.Subnet)
	}
	if err := d.addresses4(&n, r, where); err != nil {
		return n, err
	}
	if err := d.addresses6(&n, r, where); err != nil {
		return n, err
	}
	if !n.V4.IsValid() && !n.V6.IsValid() {
		return n, fmt.Errorf("it has no primary address")
	}
	return n, nil
}

// place reads whose the ENI is and where it is attached.
func (d decoder) place(n *nic, r types.NetworkInterface) error {
	if n.Ours = tagged(r, tagNode) == d.instance; n.Ours {
		n.Token = tagged(r, tagToken)
		n.Ours = n.Token != ""
	}
	n.Index = -1
	if at, err := time.Parse(time.RFC3339Nano, tagged(r, tagCreated)); err == nil && n.Ours {
		n.Created = at.UTC()
	}
	a := r.Attachment
	if a == nil || a.Status == types.AttachmentStatusDetached {
		return nil
	}
	if id := aws.ToString(a.InstanceId); id != d.instance {
		return fmt.Errorf("it is attached to another instance, %q", id)
	}
	n.attachment = aws.ToString(a.AttachmentId)
	if n.Created.IsZero() {
		n.Created = aws.ToTime(a.AttachTime).UTC()
	}
	if a.Status == types.AttachmentStatusAttached || a.Status == "" {
		if a.DeviceIndex == nil || *a.DeviceIndex < 0 || *a.DeviceIndex > eni.MaxIndex {
			return fmt.Errorf("device index %d can't be one", aws.ToInt32(a.DeviceIndex))
		}
		n.Index = int(*a.DeviceIndex)
	}
	return nil
}

// withoutClashes leaves out ENIs that claim the same device index, and the addresses
// that several ENIs claim: which of them is right can't be told.
func withoutClashes(nics []nic) (rest []nic, out []quarantined) {
	index, claims := map[int]int{}, map[netip.Addr]int{}
	for _, n := range nics {
		index[n.Index]++
		for _, a := range append(slices.Clone(n.Addresses), n.V4.Primary.Addr(), n.V6.Primary.Addr()) {
			claims[a]++
		}
	}
	for _, n := range nics {
		if n.Index >= 0 && index[n.Index] > 1 {
			out = append(out, quarantined{n.ID, fmt.Sprintf("another ENI has device index %d too", n.Index), n.Index == 0})
			continue
		}
		clashes := func(a netip.Addr) bool { return a.IsValid() && claims[a] > 1 }
		if clashes(n.V4.Primary.Addr()) || clashes(n.V6.Primary.Addr()) {
			out = append(out, quarantined{n.ID, "another ENI has its primary address too", n.Index == 0})
			continue
		}
		for _, a := range n.Addresses {
			if clashes(a) {
				out = append(out, quarantined{n.ID, fmt.Sprintf("another ENI has its address %s too, which is left out", a), false})
			}
		}
		n.Addresses = slices.DeleteFunc(n.Addresses, clashes)
		n.singles = slices.DeleteFunc(n.singles, clashes)
		rest = append(rest, n)
	}
	return rest, out
}
