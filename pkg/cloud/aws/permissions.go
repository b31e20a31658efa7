package aws

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/enipool/enipool/pkg/cloud"
)

// What EC2 answers to a dry run.
const (
	wouldHaveWorked = "DryRunOperation"
	notAllowed      = "UnauthorizedOperation"
)

// dryRun asks whether an action is allowed.
type dryRun struct {
	action string
	marked bool // the least policy allows it for ENIs alone that a node has made
	do     func(context.Context, *check, nic) error
}

// dry makes a call once and returns its error alone: a dry run has nothing else.
func dry[I, O any](ctx context.Context, k *check, do request[I, O], in *I) error {
	_, err := change(ctx, k.c, do, in)
	return err
}

// dryRuns are all calls of the agent that change something.
var dryRuns = []dryRun{
	{"ec2:CreateNetworkInterface", false, func(ctx context.Context, k *check, _ nic) error {
		return dry(ctx, k, k.s.api.CreateNetworkInterface, &ec2.CreateNetworkInterfaceInput{DryRun: aws.Bool(true), SubnetId: aws.String(k.home.own),
			TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeNetworkInterface,
				Tags: []types.Tag{{Key: aws.String(tagNode), Value: aws.String(k.s.instance)}}}}})
	}},
	{"ec2:AttachNetworkInterface", true, func(ctx context.Context, k *check, n nic) error {
		return dry(ctx, k, k.s.api.AttachNetworkInterface, &ec2.AttachNetworkInterfaceInput{DryRun: aws.Bool(true),
			InstanceId: aws.String(k.s.instance), NetworkInterfaceId: aws.String(n.ID), DeviceIndex: aws.Int32(int32(n.Index))})
	}},
	{"ec2:ModifyNetworkInterfaceAttribute", true, func(ctx context.Context, k *check, n nic) error {
		return dry(ctx, k, k.s.api.ModifyNetworkInterfaceAttribute, &ec2.ModifyNetworkInterfaceAttributeInput{DryRun: aws.Bool(true),
			NetworkInterfaceId: aws.String(n.ID), Attachment: &types.NetworkInterfaceAttachmentChanges{
				AttachmentId: aws.String(n.attachment), DeleteOnTermination: aws.Bool(true)}})
	}},
	{"ec2:DetachNetworkInterface", true, func(ctx context.Context, k *check, n nic) error {
		return dry(ctx, k, k.s.api.DetachNetworkInterface, &ec2.DetachNetworkInterfaceInput{DryRun: aws.Bool(true), AttachmentId: aws.String(n.attachment)})
	}},
	{"ec2:DeleteNetworkInterface", true, func(ctx context.Context, k *check, n nic) error {
		return dry(ctx, k, k.s.api.DeleteNetworkInterface, &ec2.DeleteNetworkInterfaceInput{DryRun: aws.Bool(true), NetworkInterfaceId: aws.String(n.ID)})
	}},
}

// nowhere are addresses that no ENI can have (RFC 5737, RFC 3849).
const (
	nowhere4 = "192.0.2.1"
	nowhere6 = "2001:db8::1"
)

// addressRuns are those of them for addresses, of which the API has no dry run. They
// are asked for what can't be: who may not is told so first.
var addressRuns = []dryRun{
	{"ec2:AssignPrivateIpAddresses", false, func(ctx context.Context, k *check, n nic) error {
		return dry(ctx, k, k.s.api.AssignPrivateIpAddresses, &ec2.AssignPrivateIpAddressesInput{NetworkInterfaceId: aws.String(n.ID), PrivateIpAddresses: []string{nowhere4}})
	}},
	{"ec2:UnassignPrivateIpAddresses", false, func(ctx context.Context, k *check, n nic) error {
		return dry(ctx, k, k.s.api.UnassignPrivateIpAddresses, &ec2.UnassignPrivateIpAddressesInput{NetworkInterfaceId: aws.String(n.ID), PrivateIpAddresses: []string{nowhere4}})
	}},
}

// addressRuns6 are for nodes whose pods have IPv6.
var addressRuns6 = []dryRun{
	{"ec2:AssignIpv6Addresses", false, func(ctx context.Context, k *check, n nic) error {
		return dry(ctx, k, k.s.api.AssignIpv6Addresses, &ec2.AssignIpv6AddressesInput{NetworkInterfaceId: aws.String(n.ID), Ipv6Addresses: []string{nowhere6}})
	}},
	{"ec2:UnassignIpv6Addresses", false, func(ctx context.Context, k *check, n nic) error {
		return dry(ctx, k, k.s.api.UnassignIpv6Addresses, &ec2.UnassignIpv6AddressesInput{NetworkInterfaceId: aws.String(n.ID), Ipv6Addresses: []string{nowhere6}})
	}},
}

// permissions asks for each action whether it is allowed.
func (k *check) permissions(ctx context.Context) {
	about, ours := k.nics[0], false
	if at := slices.IndexFunc(k.nics, func(n nic) bool { return n.Ours }); at >= 0 {
		about, ours = k.nics[at], true
	}
	for _, run := range dryRuns {
		k.permission(run, ours || !run.marked, codeOf(run.do(ctx, k, about)), wouldHaveWorked)
	}
	runs := addressRuns
	if k.c.o.IPv6 {
		runs = slices.Concat(runs, addressRuns6)
	}
	for _, run := range runs {
		k.permission(run, true, codeOf(run.do(ctx, k, about)), badValue)
	}
}

// permission tells of an action by what EC2 answered. Where a refusal proves nothing
// it is not decided.
func (k *check) permission(run dryRun, proves bool, code, allowed string) {
	what := "permission " + run.action
	switch {
	case code == allowed:
		k.found.Say(what, cloud.Works, "", "allowed")
	case code == notAllowed && !proves:
		k.found.Say(what, cloud.Unknown, "", "not for the node's own ENI, as by conf/aws/policy.json; ask again when enipool has made one")
	case code == notAllowed:
		k.found.Say(what, cloud.Broken, "allow it as in conf/aws/policy.json", "not allowed")
	default:
		k.found.Say(what, cloud.Unknown, "", "EC2 answers %q", code)
	}
}
