package bce

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/baidubce/bce-sdk-go/services/vpc"
	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// check is a Check under way.
type check struct {
	c     *Client
	me    self
	found cloud.Findings
}

var _ cloud.Checker = (*Client)(nil)

// Check implements cloud.Checker.
func (c *Client) Check(ctx context.Context) []cloud.Finding {
	k := &check{c: c}
	if k.instance(ctx) && k.credentials(ctx) {
		k.found.Clock(k.skew())
		k.limits(ctx)
		k.interfaces(ctx)
		k.subnets(ctx)
	}
	return k.found
}

// failed says what went wrong.
func (k *check) failed(what, fix string, err error) {
	plain(&err)
	k.found.Failed(what, fix, err)
}

func (k *check) instance(ctx context.Context) bool {
	me, err := k.c.whoami(ctx, "Check")
	if err != nil {
		k.failed("instance", "is this the instance that will be the node, and does its metadata service answer? Else name cloud.instance and cloud.region", err)
		return false
	}
	k.me = me
	k.found.Say("instance", cloud.Works, "", "%s of kind %s in zone %s, VPC %s", me.instance, me.kind, me.zone, me.vpc)
	return true
}

// credentials makes the first call that is signed.
func (k *check) credentials(ctx context.Context) bool {
	m, err := k.c.machine(ctx, "Check")
	if err != nil {
		k.found.Clock(k.skew()) // it may be why
		k.failed("credentials", "give the instance a role with conf/baidu/policy.json, or keys of a user with it, and see that the API can be reached", err)
		return false
	}
	k.found.Say("credentials", cloud.Works, "", "they may look at the instance")
	k.groups(m.groups)
	return true
}

// groups tells which security groups new ENIs get.
func (k *check) groups(own groups) {
	if len(k.c.o.SecurityGroups) > 0 {
		k.found.Say("security groups", cloud.Unknown, "", "%s: the API tells only when it makes an ENI whether they are right", strings.Join(k.c.o.SecurityGroups, " "))
		return
	}
	k.found.Say("security groups", cloud.Works, "", "those of the node's own ENI: %s", strings.Join(slices.Concat(own.plain, own.enterprise), " "))
}

func (k *check) skew() time.Duration {
	return time.Duration(k.c.skew.Load())
}

func (k *check) limits(ctx context.Context) {
	l, err := k.c.Limits(ctx)
	if err != nil {
		k.failed("limits", "allow what conf/baidu/policy.json does", err)
		return
	}
	k.found.Say("limits", cloud.Works, "", "%d ENIs, its own among them, %d addresses for pods each", l.ENIs, l.PerENI(eni.IPv4))
}

func (k *check) interfaces(ctx context.Context) {
	list, err := k.c.Interfaces(ctx)
	if err != nil {
		k.failed("ENIs", "allow what conf/baidu/policy.json does", err)
		return
	}
	ours := 0
	for _, i := range list {
		if i.Ours {
			ours++
		}
	}
	k.found.Say("ENIs", cloud.Works, "", "%d, %d of them made by enipool", len(list), ours)
	for _, q := range k.c.Quarantined() {
		k.found.Say("ENI "+q.ID, cloud.Careful, "detach it, if nobody needs it", "it is left out: %s", q.Why)
	}
}

// subnets tells which of the chosen ones new ENIs may lie in, and their room.
func (k *check) subnets(ctx context.Context) {
	all, err := k.c.listSubnets(ctx, k.me)
	if err != nil {
		k.failed("subnets", "allow what conf/baidu/policy.json does", err)
		return
	}
	usable := 0
	for _, s := range all {
		if k.c.isNew(k.me, s) {
			usable++
			k.found.Room(s.SubnetId, s.AvailableIp)
		} else if slices.Contains(k.c.o.Subnets, s.SubnetId) {
			k.found.Say("subnet "+s.SubnetId, cloud.Works, "", "it is in zone %s, for nodes there; this one is in %s", s.ZoneName, k.me.zone)
		}
	}
	for _, id := range k.c.o.Subnets {
		if !slices.ContainsFunc(all, func(s vpc.Subnet) bool { return s.SubnetId == id }) {
			k.found.Say("subnet "+id, cloud.Broken, "is that its ID, and is it in the node's VPC?", "VPC %s has no such subnet", k.me.vpc)
		}
	}
	switch {
	case usable > 0:
	case k.me.kind == BBC:
		k.found.Say("subnets", cloud.Works, "", "bare metal gets no more ENIs: pods have addresses of its own one")
	default:
		k.found.Say("subnets", cloud.Broken, "name one of the node's zone in cloud.subnets or cloud.subnetTags", "new ENIs can lie in none: the node is in %s", strings.TrimSpace(k.me.zone))
	}
}
