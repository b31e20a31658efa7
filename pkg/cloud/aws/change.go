package aws

import (
	"context"
	"maps"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
)

// Create implements driver.Driver. The request takes one kind of addresses of a family:
// of IPv4 blocks go before single ones, of IPv6 the primary address is a single one, so
// that blocks have to be assigned later.
func (d *Driver) Create(ctx context.Context, c driver.Create) (driver.Interface, error) {
	tags := markTags(c)
	in := &ec2.CreateNetworkInterfaceInput{
		SubnetId: aws.String(c.Subnet), Description: aws.String("enipool " + c.Self.Instance), Groups: c.Groups, ClientToken: given(c.Token),
		TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeNetworkInterface, Tags: tags}},
	}
	if in.Ipv4PrefixCount = given(int32(c.V4.Blocks)); c.V4.Blocks == 0 {
		in.SecondaryPrivateIpAddressCount = given(int32(c.V4.Singles))
	}
	if c.IPv6 {
		in.Ipv6AddressCount = aws.Int32(int32(c.V6.Singles) + 1)
		if c.Named6 {
			in.EnablePrimaryIpv6 = aws.Bool(true)
		}
	}
	out, err := change(ctx, d, &d.api.CreateNetworkInterface, in)
	if err != nil {
		return driver.Interface{}, err
	}
	if out.NetworkInterface == nil || aws.ToString(out.NetworkInterface.NetworkInterfaceId) == "" {
		return driver.Interface{}, because(cloud.ErrUnknown, "the answer has no ENI")
	}
	if len(out.NetworkInterface.TagSet) == 0 {
		out.NetworkInterface.TagSet = tags // some only show them later
	}
	return d.readInterface(*out.NetworkInterface), nil
}

// markTags are the tags of a new ENI: its mark, and those that were wished for.
func markTags(c driver.Create) []types.Tag {
	tags := map[string]string{}
	maps.Copy(tags, c.Tags)
	tags[tagNode], tags[tagToken], tags[tagCreated] = c.Mark.Instance, c.Mark.Token, c.Mark.Asked.UTC().Format(time.RFC3339Nano)
	if c.Mark.Cluster != "" {
		tags[tagCluster] = c.Mark.Cluster
	}
	return tagList(tags)
}

// Attach implements driver.Driver. It names the first network card, too: without one EC2 has
// told a device index of the first card to be taken that was taken on another
// (github.com/cilium/cilium/pull/42512).
func (d *Driver) Attach(ctx context.Context, a driver.Attach) (attachment string, err error) {
	out, err := change(ctx, d, &d.api.AttachNetworkInterface, &ec2.AttachNetworkInterfaceInput{NetworkInterfaceId: aws.String(a.ID),
		InstanceId: aws.String(a.Instance), DeviceIndex: aws.Int32(int32(a.Index)), NetworkCardIndex: aws.Int32(int32(a.Card))})
	if err != nil {
		return "", err
	}
	return d.text(out.AttachmentId), nil
}

// Bind implements driver.Driver.
func (d *Driver) Bind(ctx context.Context, id, attachment string) error {
	return d.modify(ctx, &ec2.ModifyNetworkInterfaceAttributeInput{NetworkInterfaceId: aws.String(id),
		Attachment: &types.NetworkInterfaceAttachmentChanges{AttachmentId: aws.String(attachment), DeleteOnTermination: aws.Bool(true)}})
}

// SetGroups implements driver.Driver.
func (d *Driver) SetGroups(ctx context.Context, id string, groups []string, _ string) error {
	return d.modify(ctx, &ec2.ModifyNetworkInterfaceAttributeInput{NetworkInterfaceId: aws.String(id), Groups: groups})
}

func (d *Driver) modify(ctx context.Context, in *ec2.ModifyNetworkInterfaceAttributeInput) error {
	_, err := change(ctx, d, &d.api.ModifyNetworkInterfaceAttribute, in)
	return err
}

// Detach implements driver.Driver.
func (d *Driver) Detach(ctx context.Context, i driver.Interface, _ string) error {
	_, err := change(ctx, d, &d.api.DetachNetworkInterface, &ec2.DetachNetworkInterfaceInput{AttachmentId: aws.String(i.Attachment)})
	return err
}

// Delete implements driver.Driver.
func (d *Driver) Delete(ctx context.Context, id, _ string) error {
	_, err := change(ctx, d, &d.api.DeleteNetworkInterface, &ec2.DeleteNetworkInterfaceInput{NetworkInterfaceId: aws.String(id)})
	return err
}
