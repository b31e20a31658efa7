package aws

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"
	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
)

// Probe implements driver.Prober: whether the security groups of new ENIs are there,
// and by dry runs whether calls are allowed.
func (d *Driver) Probe(ctx context.Context, p driver.Probe) []cloud.Finding {
	if err := d.connect(ctx); err != nil {
		return nil // as the engine has told
	}
	b := &probe{d: d, Probe: p}
	for _, id := range p.Groups {
		b.group(ctx, id)
	}
	b.permissions(ctx)
	return b.found
}

// probe is a Probe under way.
type probe struct {
	driver.Probe
	d     *Driver
	found cloud.Findings
}

// wrongGroup is what to do about a security group that is not there.
const wrongGroup = "correct cloud.securityGroups in agent.yaml: is that its ID, and is it in the node's region?"

// group looks for a security group, which an agent never does.
func (b *probe) group(ctx context.Context, id string) {
	what := "security group " + id
	out, err := read(ctx, b.d, &b.d.api.DescribeSecurityGroups, &ec2.DescribeSecurityGroupsInput{GroupIds: []string{id}})
	switch {
	case driver.Reason(err) == driver.Unauthorized:
		b.found.Say(what, cloud.Unknown, "", "ec2:DescribeSecurityGroups is not allowed; only this check would need it")
	case err != nil:
		b.found.Failed(what, wrongGroup, err)
	case len(out.SecurityGroups) != 1:
		b.found.Say(what, cloud.Broken, wrongGroup, "EC2 shows no such group")
	case b.VPC != "" && b.d.text(out.SecurityGroups[0].VpcId) != b.VPC:
		b.found.Say(what, cloud.Broken, "name one of the node's VPC in cloud.securityGroups", "it is in VPC %s, the node in %s", b.d.text(out.SecurityGroups[0].VpcId), b.VPC)
	default:
		b.found.Say(what, cloud.Works, "", "%s", b.d.text(out.SecurityGroups[0].GroupName))
	}
}

// dryRun asks whether an action is allowed.
type dryRun struct {
	action string
	marked bool   // the least policy allows it for ENIs alone that a node has made
	works  string // EC2's code where it is
	do     func(context.Context) error
}

// What EC2 answers to a dry run of what is allowed.
const wouldHaveWorked = "DryRunOperation"

// Addresses that no ENI can have (RFC 5737, RFC 3849).
const (
	nowhere4 = "192.0.2.1"
	nowhere6 = "2001:db8::1"
)

// dry makes a call once and returns its error alone: a dry run has nothing else.
func dry[I, O any](do request[I, O], in *I) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := do(ctx, in, func(o *ec2.Options) { o.Retryer = aws.NopRetryer{} })
		return err
	}
}

// dryRuns are all calls of an agent that change something. Of those for addresses the
// API has no dry run: they are asked for what can't be, and who may not is told so first.
func (b *probe) dryRuns() []dryRun {
	api, id, attachment, yes := b.d.api, aws.String(b.Any.ID), aws.String(b.Any.Attachment), aws.Bool(true)
	runs := []dryRun{
		{"ec2:CreateNetworkInterface", false, wouldHaveWorked, dry(api.CreateNetworkInterface, &ec2.CreateNetworkInterfaceInput{DryRun: yes,
			SubnetId: aws.String(b.Any.Subnet), TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeNetworkInterface, Tags: b.tags()}}})},
		{"ec2:AttachNetworkInterface", true, wouldHaveWorked, dry(api.AttachNetworkInterface, &ec2.AttachNetworkInterfaceInput{DryRun: yes,
			InstanceId: aws.String(b.Self.Instance), NetworkInterfaceId: id, DeviceIndex: aws.Int32(int32(b.Any.Index))})},
		{"ec2:ModifyNetworkInterfaceAttribute", true, wouldHaveWorked, dry(api.ModifyNetworkInterfaceAttribute, &ec2.ModifyNetworkInterfaceAttributeInput{DryRun: yes,
			NetworkInterfaceId: id, Attachment: &types.NetworkInterfaceAttachmentChanges{AttachmentId: attachment, DeleteOnTermination: yes}})},
		{"ec2:DetachNetworkInterface", true, wouldHaveWorked, dry(api.DetachNetworkInterface, &ec2.DetachNetworkInterfaceInput{DryRun: yes, AttachmentId: attachment})},
		{"ec2:DeleteNetworkInterface", true, wouldHaveWorked, dry(api.DeleteNetworkInterface, &ec2.DeleteNetworkInterfaceInput{DryRun: yes, NetworkInterfaceId: id})},
		{"ec2:AssignPrivateIpAddresses", false, badValue, dry(api.AssignPrivateIpAddresses, &ec2.AssignPrivateIpAddressesInput{NetworkInterfaceId: id, PrivateIpAddresses: []string{nowhere4}})},
		{"ec2:UnassignPrivateIpAddresses", false, badValue, dry(api.UnassignPrivateIpAddresses, &ec2.UnassignPrivateIpAddressesInput{NetworkInterfaceId: id, PrivateIpAddresses: []string{nowhere4}})},
	}
	if b.IPv6 {
		runs = append(runs,
			dryRun{"ec2:AssignIpv6Addresses", false, badValue, dry(api.AssignIpv6Addresses, &ec2.AssignIpv6AddressesInput{NetworkInterfaceId: id, Ipv6Addresses: []string{nowhere6}})},
			dryRun{"ec2:UnassignIpv6Addresses", false, badValue, dry(api.UnassignIpv6Addresses, &ec2.UnassignIpv6AddressesInput{NetworkInterfaceId: id, Ipv6Addresses: []string{nowhere6}})})
	}
	return runs
}

// tags are those by which a policy tells the ENIs of a node, or of a cluster.
func (b *probe) tags() []types.Tag {
	tags := map[string]string{tagNode: b.Self.Instance}
	if b.Cluster != "" {
		tags[tagCluster] = b.Cluster
	}
	return tagList(tags)
}

// permissions asks for each action whether it is allowed. Where a refusal proves nothing
// it is not decided.
func (b *probe) permissions(ctx context.Context) {
	ours := b.Any.Mark.Ours(b.Self.Instance)
	for _, run := range b.dryRuns() {
		what, code, err := "permission "+run.action, "", run.do(ctx)
		if said, ok := errors.AsType[smithy.APIError](err); ok {
			code = codeOf(said)
		}
		switch {
		case code == run.works:
			b.found.Say(what, cloud.Works, "", "allowed")
		case code == notAllowed && run.marked && !ours:
			b.found.Say(what, cloud.Unknown, "", "not for the node's primary ENI, as by conf/aws/policy.json; ask again when enipool has made one")
		case code == notAllowed:
			b.found.Say(what, cloud.Broken, "allow it as in conf/aws/policy.json; policy-cluster.json needs the tag "+tagCluster+" on the instance and its primary ENI, see the README there", "not allowed")
		case throttles[code]:
			b.found.Throttled(what, b.d.failure(err, false, true))
		case code == "", code == sdkUnknown:
			b.found.Failed(what, "is EC2 up, and does the node reach it? Where it is slow a longer --timeout lets all be asked", b.d.failure(err, false, true))
		default:
			b.found.Say(what, cloud.Unknown, "", "EC2 answers %q", b.d.secrets.Line(code))
		}
	}
}
