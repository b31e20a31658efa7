package aws

import (
	"context"
	"maps"
	"slices"
	"strings"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/smithy-go/middleware"
	"github.com/enipool/enipool/pkg/cloud"
)

// check is a Check under way.
type check struct {
	c     *Client
	s     *session
	nics  []nic
	home  home
	found cloud.Findings
}

var _ cloud.Checker = (*Client)(nil)

// Check implements cloud.Checker.
func (c *Client) Check(ctx context.Context) []cloud.Finding {
	k := &check{c: c}
	if !k.connects(ctx) || !k.describes(ctx) {
		return k.found
	}
	k.limits(ctx)
	k.subnets(ctx)
	k.groups(ctx)
	k.permissions(ctx)
	return k.found
}

func (k *check) connects(ctx context.Context) bool {
	s, err := k.c.connect(ctx)
	if err != nil {
		k.found.Failed("instance", "is this the instance that will be the node, and does its metadata service answer? Else name cloud.instance and cloud.region", err)
		return false
	}
	k.s = s
	k.found.Say("instance", cloud.Works, "", "%s in region %s", s.instance, s.api.options.Region)
	return true
}

// describes makes the first call that is signed: it tells of credentials and clock.
func (k *check) describes(ctx context.Context) bool {
	const what = "credentials"
	out, err := read(ctx, k.c, k.s.api.DescribeNetworkInterfaces, &ec2.DescribeNetworkInterfacesInput{
		Filters: byIDs("attachment.instance-id", []string{k.s.instance})})
	switch code := codeOf(err); {
	case code == "RequestExpired" || code == "SignatureDoesNotMatch" && strings.Contains(err.Error(), "expired"):
		k.found.Failed("clock", "set the node's clock: it must be within 5 minutes of EC2's", err)
		return false
	case code == "UnauthorizedOperation":
		k.found.Say(what, cloud.Works, "", "EC2 knows them")
		k.found.Failed("permission ec2:DescribeNetworkInterfaces", "allow it as in conf/aws/policy.json; nothing else can be looked at without it", err)
		return false
	case err != nil:
		k.found.Failed(what, "give the instance a role with conf/aws/policy.json, and see that EC2 can be reached", err)
		return false
	}
	k.found.Say(what, cloud.Works, "", "EC2 knows them")
	k.clock(out.ResultMetadata)
	nics, left, err := k.c.decode(ctx, k.s, nil, out.NetworkInterfaces)
	if err == nil && (len(nics) == 0 || nics[0].Index != 0) {
		err = noHome(k.s, left)
	}
	if err != nil {
		k.found.Failed("ENIs", "", err)
		return false
	}
	k.nics, k.home = nics, k.c.settleIn(k.s, nics)
	k.attached(left)
	return true
}

// clock compares the clocks by the answer of a call.
func (k *check) clock(m middleware.Metadata) {
	theirs, ok1 := awsmiddleware.GetServerTime(m)
	ours, ok2 := awsmiddleware.GetResponseAt(m)
	if !ok1 || !ok2 {
		k.found.Say("clock", cloud.Unknown, "", "the answer has no date")
		return
	}
	k.found.Clock(ours.Sub(theirs))
}

// attached tells of the ENIs that there are.
func (k *check) attached(left []quarantined) {
	ours := 0
	for _, n := range k.nics {
		if n.Ours {
			ours++
		}
	}
	k.found.Say("ENIs", cloud.Works, "", "%d attached, %d of them made by enipool; its own is %s in %s", len(k.nics), ours, k.nics[0].ID, k.nics[0].Subnet)
	for _, q := range left {
		k.found.Say("ENI "+q.ID, cloud.Careful, "detach it, if nobody needs it", "it is left out: %s", q.Why)
	}
}

func (k *check) limits(ctx context.Context) {
	l, err := k.c.Limits(ctx)
	if err != nil {
		k.found.Failed("limits", "allow ec2:DescribeInstanceTypes as in conf/aws/policy.json", err)
		return
	}
	slots := 0
	for i := range l.ENIs {
		if i == 0 || l.V4 > 1 {
			slots += l.V4 - 1
		}
	}
	verdict, fix, how := cloud.Works, "", ""
	switch {
	case l.V4Block.Size > 0:
		how = ", by prefixes"
	case k.c.o.Prefixes:
		verdict, fix, how = cloud.Careful, "take a type of the Nitro system, or leave cloud.prefixes out", "; the type takes no prefixes"
	}
	k.found.Say("limits", verdict, fix, "%d ENIs, %d addresses for pods%s", l.ENIs, slots, how)
}

// subnets tells which of the chosen ones new ENIs may lie in, and their room.
func (k *check) subnets(ctx context.Context) {
	all, err := k.c.chosen(ctx, k.home)
	if err != nil {
		k.found.Failed("subnets", "allow ec2:DescribeSubnets as in conf/aws/policy.json", err)
		return
	}
	usable := 0
	for _, id := range slices.Sorted(maps.Keys(all)) {
		if s := all[id]; s.New || slices.Contains(k.c.o.Subnets, id) {
			usable += k.subnet(s)
		}
	}
	for _, id := range k.c.o.Subnets {
		if _, there := all[id]; !there {
			k.found.Say("subnet "+id, cloud.Broken, "is that its ID, and this its region?", "EC2 shows no such subnet")
		}
	}
	if usable == 0 {
		k.found.Say("subnets", cloud.Broken, "name one of the node's zone in cloud.subnets or cloud.subnetTags", "new ENIs can lie in none: the node is in %s, VPC %s", k.home.zone, k.home.vpc)
	}
}

// subnet returns 1 if new ENIs may lie in the subnet.
func (k *check) subnet(s subnet) int {
	what := "subnet " + s.ID
	switch {
	case s.vpc != k.home.vpc:
		k.found.Say(what, cloud.Broken, "leave it out", "it is in VPC %s, the node in %s", s.vpc, k.home.vpc)
		return 0
	case s.zone != k.home.zone:
		k.found.Say(what, cloud.Works, "", "it is in zone %s, for nodes there; this one is in %s", s.zone, k.home.zone)
		return 0
	case !s.ready:
		k.found.Say(what, cloud.Broken, "wait until it is available", "EC2 does not call it available")
		return 0
	}
	k.found.Room(s.ID, s.Free)
	return 1
}

// groups looks whether the security groups of new ENIs are there, which the agent
// itself never asks.
func (k *check) groups(ctx context.Context) {
	ids := k.c.o.SecurityGroups
	if len(ids) == 0 {
		ids = k.home.groups
	}
	for _, id := range ids {
		what := "security group " + id
		out, err := read(ctx, k.c, k.s.api.DescribeSecurityGroups, &ec2.DescribeSecurityGroupsInput{GroupIds: []string{id}})
		switch code := codeOf(err); {
		case code == "UnauthorizedOperation":
			k.found.Say(what, cloud.Unknown, "", "ec2:DescribeSecurityGroups is not allowed; only this check would need it")
		case err != nil:
			k.found.Failed(what, "is that its ID, and this its region?", err)
		case len(out.SecurityGroups) != 1:
			k.found.Say(what, cloud.Broken, "is that its ID, and this its region?", "EC2 shows no such group")
		case value(out.SecurityGroups[0].VpcId) != k.home.vpc:
			k.found.Say(what, cloud.Broken, "name one of the node's VPC in cloud.securityGroups", "it is in VPC %s, the node in %s", value(out.SecurityGroups[0].VpcId), k.home.vpc)
		default:
			k.found.Say(what, cloud.Works, "", "%s", value(out.SecurityGroups[0].GroupName))
		}
	}
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
