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

// Create implements driver.Driver. The request takes, per family, either blocks or single
// addresses. Of IPv4 it asks for the blocks if any are wanted. The primary IPv6 address is a
// single one, so IPv6 blocks have to be assigned later.
func (d *Driver) Create(ctx context.Context, asked driver.Create) (driver.Interface, error) {
	tags := markTags(asked)
	in := &ec2.CreateNetworkInterfaceInput{
		SubnetId: aws.String(asked.Subnet), Description: aws.String("enipool " + asked.Self.Instance), Groups: asked.Groups, ClientToken: unlessZero(asked.Token),
		TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeNetworkInterface, Tags: tags}},
	}
	if in.Ipv4PrefixCount = unlessZero(int32(asked.V4.Blocks)); asked.V4.Blocks == 0 {
		in.SecondaryPrivateIpAddressCount = unlessZero(int32(asked.V4.Singles))
	}
	if asked.IPv6 {
		in.Ipv6AddressCount = aws.Int32(int32(asked.V6.Singles) + 1)
		if asked.Named6 {
			in.EnablePrimaryIpv6 = aws.Bool(true)
		}
	}
	out, err := changeEC2(ctx, d, &d.api.CreateNetworkInterface, in)
	if err != nil {
		return driver.Interface{}, err
	}
	if out.NetworkInterface == nil || aws.ToString(out.NetworkInterface.NetworkInterfaceId) == "" {
		return driver.Interface{}, errorf(cloud.ErrUnknown, "the answer has no ENI")
	}
	if len(out.NetworkInterface.TagSet) == 0 {
		out.NetworkInterface.TagSet = tags // some answers lack them, and without its mark the ENI would look like somebody else's
	}
	return d.readInterface(*out.NetworkInterface), nil
}

// markTags returns the tags of a new ENI: its mark, and those of the configuration.
func markTags(c driver.Create) []types.Tag {
	tags := map[string]string{}
	maps.Copy(tags, c.Tags)
	tags[tagNode], tags[tagToken], tags[tagCreated] = c.Mark.Instance, c.Mark.Token, c.Mark.Asked.UTC().Format(time.RFC3339Nano)
	if c.Mark.Cluster != "" {
		tags[tagCluster] = c.Mark.Cluster
	}
	return tagList(tags)
}

// Attach implements driver.Driver. It names the network card even if it is the first: without
// a card EC2 has refused a device index that was taken only on another card
// (github.com/cilium/cilium/pull/42512).
func (d *Driver) Attach(ctx context.Context, a driver.Attach) (attachment string, err error) {
	out, err := changeEC2(ctx, d, &d.api.AttachNetworkInterface, &ec2.AttachNetworkInterfaceInput{NetworkInterfaceId: aws.String(a.ID),
		InstanceId: aws.String(a.Instance), DeviceIndex: aws.Int32(int32(a.Index)), NetworkCardIndex: aws.Int32(int32(a.Card))})
	if err != nil {
		return "", err
	}
	return d.safeText(out.AttachmentId), nil
}

// Bind implements driver.Driver.
func (d *Driver) Bind(ctx context.Context, id, attachment string) error {
	return d.modifyENI(ctx, &ec2.ModifyNetworkInterfaceAttributeInput{NetworkInterfaceId: aws.String(id),
		Attachment: &types.NetworkInterfaceAttachmentChanges{AttachmentId: aws.String(attachment), DeleteOnTermination: aws.Bool(true)}})
}

// SetGroups implements driver.Driver.
func (d *Driver) SetGroups(ctx context.Context, id string, groups []string, _ string) error {
	return d.modifyENI(ctx, &ec2.ModifyNetworkInterfaceAttributeInput{NetworkInterfaceId: aws.String(id), Groups: groups})
}

func (d *Driver) modifyENI(ctx context.Context, in *ec2.ModifyNetworkInterfaceAttributeInput) error {
	_, err := changeEC2(ctx, d, &d.api.ModifyNetworkInterfaceAttribute, in)
	return err
}

// Detach implements driver.Driver.
func (d *Driver) Detach(ctx context.Context, i driver.Interface, _ string) error {
	_, err := changeEC2(ctx, d, &d.api.DetachNetworkInterface, &ec2.DetachNetworkInterfaceInput{AttachmentId: aws.String(i.Attachment)})
	return err
}

// Delete implements driver.Driver.
func (d *Driver) Delete(ctx context.Context, id, _ string) error {
	_, err := changeEC2(ctx, d, &d.api.DeleteNetworkInterface, &ec2.DeleteNetworkInterfaceInput{NetworkInterfaceId: aws.String(id)})
	return err
}
