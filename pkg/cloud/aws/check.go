package aws

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/smithy-go/middleware"
	"github.com/enipool/enipool/pkg/cloud"
)

// SigV4 allows five minutes between the clocks of node and EC2; half of that is
// worth a word.
const (
	mostSkew    = 5 * time.Minute
	carefulSkew = mostSkew / 2
)

// fewFree is how many addresses of a subnet are soon gone.
const fewFree = 16

// check is a Check under way.
type check struct {
	c     *Client
	s     *session
	nics  []nic
	home  home
	found []cloud.Finding
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

func (k *check) say(what string, v cloud.Verdict, fix, format string, args ...any) {
	k.found = append(k.found, cloud.Finding{What: what, Verdict: v, Detail: fmt.Sprintf(format, args...), Fix: fix})
}

// because is say for what failed.
func (k *check) failed(what, fix string, err error) {
	verdict := cloud.Broken
	if errors.Is(err, cloud.ErrThrottled) || errors.Is(err, context.DeadlineExceeded) {
		verdict = cloud.Unknown
	}
	k.say(what, verdict, fix, "%v", k.c.failure(err, false))
}

func (k *check) connects(ctx context.Context) bool {
	s, err := k.c.connect(ctx)
	if err != nil {
		k.failed("instance", "is this the instance that will be the node, and does its metadata service answer? Else name cloud.instance and cloud.region", err)
		return false
	}
	k.s = s
	k.say("instance", cloud.Works, "", "%s in region %s", s.instance, s.api.options.Region)
	return true
}

// describes makes the first call that is signed: it tells of credentials and clock.
func (k *check) describes(ctx context.Context) bool {
	const what = "credentials"
	out, err := read(ctx, k.c, k.s.api.DescribeNetworkInterfaces, &ec2.DescribeNetworkInterfacesInput{
		Filters: byIDs("attachment.instance-id", []string{k.s.instance})})
	switch code := codeOf(err); {
	case code == "RequestExpired" || code == "SignatureDoesNotMatch" && strings.Contains(err.Error(), "expired"):
		k.failed("clock", "set the node's clock: it must be within 5 minutes of EC2's", err)
		return false
	case code == "UnauthorizedOperation":
		k.say(what, cloud.Works, "", "EC2 knows them")
		k.failed("permission ec2:DescribeNetworkInterfaces", "allow it as in conf/aws/policy.json; nothing else can be looked at without it", err)
		return false
	case err != nil:
		k.failed(what, "give the instance a role with conf/aws/policy.json, and see that EC2 can be reached", err)
		return false
	}
	k.say(what, cloud.Works, "", "EC2 knows them")
	k.clock(out.ResultMetadata)
	nics, left, err := k.c.decode(ctx, k.s, nil, out.NetworkInterfaces)
	if err == nil && (len(nics) == 0 || nics[0].Index != 0) {
		err = noHome(k.s, left)
	}
	if err != nil {
		k.failed("ENIs", "", err)
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
	skew := ours.Sub(theirs).Abs().Round(time.Second)
	switch {
	case !ok1 || !ok2:
		k.say("clock", cloud.Unknown, "", "the answer has no date")
	case skew > carefulSkew:
		k.say("clock", cloud.Careful, "set the node's clock: from 5 minutes on EC2 refuses its calls", "%s off EC2's", skew)
	default:
		k.say("clock", cloud.Works, "", "%s off EC2's", skew)
	}
}

// attached tells of the ENIs that there are.
func (k *check) attached(left []Quarantined) {
	ours := 0
	for _, n := range k.nics {
		if n.Ours {
			ours++
		}
	}
	k.say("ENIs", cloud.Works, "", "%d attached, %d of them made by enipool; its own is %s in %s", len(k.nics), ours, k.nics[0].ID, k.nics[0].Subnet)
	for _, q := range left {
		k.say("ENI "+q.ID, cloud.Careful, "detach it, if nobody needs it", "it is left out: %s", q.Why)
	}
}

func (k *check) limits(ctx context.Context) {
	l, err := k.c.Limits(ctx)
	if err != nil {
		k.failed("limits", "allow ec2:DescribeInstanceTypes as in conf/aws/policy.json", err)
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
	k.say("limits", verdict, fix, "%d ENIs, %d addresses for pods%s", l.ENIs, slots, how)
}

// subnets tells which of the chosen ones new ENIs may lie in, and their room.
func (k *check) subnets(ctx context.Context) {
	all, err := k.c.chosen(ctx, k.home)
	if err != nil {
		k.failed("subnets", "allow ec2:DescribeSubnets as in conf/aws/policy.json", err)
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
			k.say("subnet "+id, cloud.Broken, "is that its ID, and this its region?", "EC2 shows no such subnet")
		}
	}
	if usable == 0 {
		k.say("subnets", cloud.Broken, "name one of the node's zone in cloud.subnets or cloud.subnetTags", "new ENIs can lie in none: the node is in %s, VPC %s", k.home.zone, k.home.vpc)
	}
}

// subnet returns 1 if new ENIs may lie in the subnet.
func (k *check) subnet(s subnet) int {
	what := "subnet " + s.ID
	switch {
	case s.vpc != k.home.vpc:
		k.say(what, cloud.Broken, "leave it out", "it is in VPC %s, the node in %s", s.vpc, k.home.vpc)
		return 0
	case s.zone != k.home.zone:
		k.say(what, cloud.Works, "", "it is in zone %s, for nodes there; this one is in %s", s.zone, k.home.zone)
		return 0
	case !s.ready:
		k.say(what, cloud.Broken, "wait until it is available", "EC2 does not call it available")
		return 0
	case s.Free == 0:
		k.say(what, cloud.Broken, "delete what else uses addresses there, or name another subnet", "no address is free")
	case s.Free < fewFree:
		k.say(what, cloud.Careful, "delete what else uses addresses there, or name another subnet", "only %d addresses are free", s.Free)
	default:
		k.say(what, cloud.Works, "", "%d addresses are free", s.Free)
	}
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
			k.say(what, cloud.Unknown, "", "ec2:DescribeSecurityGroups is not allowed; only this check would need it")
		case err != nil:
			k.failed(what, "is that its ID, and this its region?", err)
		case len(out.SecurityGroups) != 1:
			k.say(what, cloud.Broken, "is that its ID, and this its region?", "EC2 shows no such group")
		case value(out.SecurityGroups[0].VpcId) != k.home.vpc:
			k.say(what, cloud.Broken, "name one of the node's VPC in cloud.securityGroups", "it is in VPC %s, the node in %s", value(out.SecurityGroups[0].VpcId), k.home.vpc)
		default:
			k.say(what, cloud.Works, "", "%s", value(out.SecurityGroups[0].GroupName))
		}
	}
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
