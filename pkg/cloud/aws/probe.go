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
		return nil // the engine's own findings have the error
	}
	b := &probe{d: d, Probe: p}
	for _, id := range p.Groups {
		b.checkGroup(ctx, id)
	}
	b.checkPermissions(ctx)
	return b.found
}

// probe collects the findings of a Probe.
type probe struct {
	driver.Probe
	d     *Driver
	found cloud.Findings
}

// wrongGroup is what to do about a security group that is not there.
const wrongGroup = "correct cloud.securityGroups in agent.yaml: is that its ID, and is it in the node's region?"

// checkGroup looks for a security group, which an agent never does.
func (b *probe) checkGroup(ctx context.Context, id string) {
	what := "security group " + id
	out, err := askEC2(ctx, b.d, &b.d.api.DescribeSecurityGroups, &ec2.DescribeSecurityGroupsInput{GroupIds: []string{id}})
	switch {
	case driver.Reason(err) == cloud.Unauthorized:
		b.found.Say(what, cloud.Unknown, "", "ec2:DescribeSecurityGroups is not allowed; only this check would need it")
	case err != nil:
		b.found.Failed(what, wrongGroup, err)
	case len(out.SecurityGroups) != 1:
		b.found.Say(what, cloud.Broken, wrongGroup, "EC2 shows no such group")
	case b.VPC != "" && b.d.safeText(out.SecurityGroups[0].VpcId) != b.VPC:
		b.found.Say(what, cloud.Broken, "name one of the node's VPC in cloud.securityGroups", "it is in VPC %s, the node in %s", b.d.safeText(out.SecurityGroups[0].VpcId), b.VPC)
	default:
		b.found.Say(what, cloud.Works, "", "%s", b.d.safeText(out.SecurityGroups[0].GroupName))
	}
}

// dryRun asks whether an action is allowed.
type dryRun struct {
	action string
	marked bool   // the policy in conf/aws allows it only for ENIs that enipool has made
	works  string // EC2's code if it is allowed
	spared string // why an operator or an agent may go on without
	do     func(context.Context) error
}

// wouldHaveWorked is EC2's code for a dry run of an action that is allowed.
const wouldHaveWorked = "DryRunOperation"

// Addresses that no ENI can have (RFC 5737, RFC 3849).
const (
	nowhere4 = "192.0.2.1"
	nowhere6 = "2001:db8::1"
)

// dryCall makes a call once and returns only its error: a dry run has no other answer.
func dryCall[I, O any](do request[I, O], in *I) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := do(ctx, in, func(o *ec2.Options) { o.Retryer = aws.NopRetryer{} })
		return err
	}
}

// dryRuns returns a dry run of each call of an agent that changes something. Calls about
// addresses have no dry run in the API. They are made with an address that no ENI can have: it
// is believed (DESIGN.md) that EC2 checks the permission first and the address after that.
func (b *probe) dryRuns() []dryRun {
	api, id, attachment, yes := b.d.api, aws.String(b.Any.ID), aws.String(b.Any.Attachment), aws.Bool(true)
	runs := []dryRun{
		{action: "ec2:CreateNetworkInterface", works: wouldHaveWorked, do: dryCall(api.CreateNetworkInterface, &ec2.CreateNetworkInterfaceInput{DryRun: yes,
			SubnetId: aws.String(b.Any.Subnet), TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeNetworkInterface, Tags: b.nodeTags()}}})},
		{action: "ec2:AttachNetworkInterface", marked: true, works: wouldHaveWorked, do: dryCall(api.AttachNetworkInterface, &ec2.AttachNetworkInterfaceInput{DryRun: yes,
			InstanceId: aws.String(b.Self.Instance), NetworkInterfaceId: id, DeviceIndex: aws.Int32(int32(b.Any.Index))})},
		{action: "ec2:ModifyNetworkInterfaceAttribute", marked: true, works: wouldHaveWorked, do: dryCall(api.ModifyNetworkInterfaceAttribute, &ec2.ModifyNetworkInterfaceAttributeInput{DryRun: yes,
			NetworkInterfaceId: id, Attachment: &types.NetworkInterfaceAttachmentChanges{AttachmentId: attachment, DeleteOnTermination: yes}})},
		{action: "ec2:DetachNetworkInterface", marked: true, works: wouldHaveWorked, do: dryCall(api.DetachNetworkInterface, &ec2.DetachNetworkInterfaceInput{DryRun: yes, AttachmentId: attachment})},
		{action: "ec2:DeleteNetworkInterface", marked: true, works: wouldHaveWorked, do: dryCall(api.DeleteNetworkInterface, &ec2.DeleteNetworkInterfaceInput{DryRun: yes, NetworkInterfaceId: id})},
		{action: "ec2:AssignPrivateIpAddresses", works: badValue, do: dryCall(api.AssignPrivateIpAddresses, &ec2.AssignPrivateIpAddressesInput{NetworkInterfaceId: id, PrivateIpAddresses: []string{nowhere4}})},
		{action: "ec2:UnassignPrivateIpAddresses", works: badValue, do: dryCall(api.UnassignPrivateIpAddresses, &ec2.UnassignPrivateIpAddressesInput{NetworkInterfaceId: id, PrivateIpAddresses: []string{nowhere4}})},
	}
	if b.IPv6 {
		runs = append(runs,
			dryRun{action: "ec2:AssignIpv6Addresses", works: badValue, do: dryCall(api.AssignIpv6Addresses, &ec2.AssignIpv6AddressesInput{NetworkInterfaceId: id, Ipv6Addresses: []string{nowhere6}})},
			dryRun{action: "ec2:UnassignIpv6Addresses", works: badValue, do: dryCall(api.UnassignIpv6Addresses, &ec2.UnassignIpv6AddressesInput{NetworkInterfaceId: id, Ipv6Addresses: []string{nowhere6}})})
	}
	if b.Region {
		runs = append(runs, b.dryReservations()...)
	}
	return runs
}

// nobodys is the ID of a reservation that no subnet has.
const nobodys = "scr-00000000000000000"

// dryReservations are about ranges of subnets that are reserved.
func (b *probe) dryReservations() []dryRun {
	api, yes, spared := b.d.api, aws.Bool(true), "only ranges that Subnets name in `reserve` need it"
	return []dryRun{
		{action: "ec2:GetSubnetCidrReservations", works: wouldHaveWorked, spared: spared, do: dryCall(api.GetSubnetCidrReservations, &ec2.GetSubnetCidrReservationsInput{DryRun: yes,
			SubnetId: aws.String(b.Any.Subnet)})},
		{action: "ec2:CreateSubnetCidrReservation", works: wouldHaveWorked, spared: spared, do: dryCall(api.CreateSubnetCidrReservation, &ec2.CreateSubnetCidrReservationInput{DryRun: yes,
			SubnetId: aws.String(b.Any.Subnet), Cidr: aws.String(nowhere4 + "/32"), ReservationType: types.SubnetCidrReservationTypeExplicit})},
		{action: "ec2:DeleteSubnetCidrReservation", works: wouldHaveWorked, spared: spared, do: dryCall(api.DeleteSubnetCidrReservation, &ec2.DeleteSubnetCidrReservationInput{DryRun: yes,
			SubnetCidrReservationId: aws.String(nobodys)})},
	}
}

// nodeTags returns the tags by which policies recognise the ENIs of a node, or of a cluster.
func (b *probe) nodeTags() []types.Tag {
	tags := map[string]string{tagNode: b.Self.Instance}
	if b.Cluster != "" {
		tags[tagCluster] = b.Cluster
	}
	return tagList(tags)
}

// adviseAllowing says which policy allows what is not allowed.
func (b *probe) adviseAllowing() string {
	if b.Region {
		return "allow it as in conf/aws/policy-operator.json, which needs the tag " + tagCluster + " on the cluster's instances and their primary ENIs, see the README there"
	}
	return "allow it as in conf/aws/policy.json; policy-cluster.json needs the tag " + tagCluster + " on the instance and its primary ENI, see the README there"
}

// checkPermissions asks for each action whether it is allowed. If a refusal proves nothing,
// the finding is Unknown.
func (b *probe) checkPermissions(ctx context.Context) {
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
			// conf/aws/policy.json refuses these for an ENI without enipool's tags, such as the
			// primary one, and allows them for the ENIs that the agent will make.
			b.found.Say(what, cloud.Unknown, "", "not for the node's primary ENI, as by conf/aws/policy.json; ask again when enipool has made one")
		case code == notAllowed && run.spared != "":
			b.found.Say(what, cloud.Unknown, "", "not allowed; %s", run.spared)
		case code == notAllowed:
			b.found.Say(what, cloud.Broken, b.adviseAllowing(), "not allowed")
		case throttles[code]:
			b.found.Throttled(what, b.d.judgeFailure(err, false, true))
		case code == "", code == sdkUnknown: // EC2 itself has not answered
			b.found.Failed(what, "is EC2 up, and does the node reach it? Where it is slow a longer --timeout lets all be asked", b.d.judgeFailure(err, false, true))
		default:
			b.found.Say(what, cloud.Unknown, "", "EC2 answers %q", b.d.secrets.Line(code))
		}
	}
}
