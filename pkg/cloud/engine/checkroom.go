package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/eni"
)

// checkLimits reports what the instance can carry, and what is not from the cloud in that.
func (k *check) checkLimits(ctx context.Context) {
	limits, err := k.n.Limits(ctx)
	if err != nil {
		k.found.Failed("limits", k.adviseForRead(ctx, err), err)
		return
	}
	k.limited = true
	verdict, fix, how := cloud.Works, "", ""
	if limits.V4Block.Size > 1 {
		how = ", by prefixes"
	}
	if limits.NoPrimary {
		how += ", none of them on its primary one"
	}
	k.n.mu.Lock()
	builtin, guessed := k.n.shape.Builtin, k.n.shape.Guessed
	k.n.mu.Unlock()
	// There is one finding: prefixes that do not come count most, then numbers that may be wrong.
	switch {
	case limits.V4Block.Size <= 1 && k.n.o.Prefixes:
		verdict, fix, how = cloud.Careful, "take an instance type that takes prefixes, or leave cloud.prefixes out", how+"; the type takes no prefixes"
	case builtin != nil:
		correct := "pool.maxAllocateENI and pool.maxIPsPerENI lower them"
		if k.n.t.Keys.Room != "" {
			correct = "cloud.maxENIs and " + k.n.t.Keys.Room + " correct them"
		}
		verdict, fix = cloud.Careful, "allow what "+k.n.t.Keys.Policy+" does, or compare with the limits of the instance type: "+correct
		how += fmt.Sprintf("; enipool's own numbers, for %s did not tell: %v", k.n.t.Name, builtin)
	case guessed:
		how += fmt.Sprintf("; addresses of an ENI by enipool's own rule, which cloud.maxIPsPerENI corrects: %s does not tell them", k.n.t.Name)
	}
	k.found.Say("limits", verdict, fix, "%d ENIs, %d addresses for pods%s; %d of %d ENIs used", limits.ENIs, (limits.ENIs-limits.FirstIndex())*limits.PerENI(eni.IPv4), how,
		len(k.view.nics)+len(k.view.leftOut), limits.ENIs)
}

// checkSubnets reports which of the chosen subnets new ENIs may lie in, and their room.
func (k *check) checkSubnets(ctx context.Context) {
	all, err := k.n.chosenSubnets(ctx, k.home)
	if err != nil {
		k.found.Failed("subnets", k.adviseForRead(ctx, err), err)
		return
	}
	usable := 0
	for _, s := range all {
		// Those named by ID are reported even where no new ENI may lie, with the reason: a person
		// has written them. Those found by their tags may well be for nodes of other zones.
		if k.n.isNew(s, k.home) || slices.Contains(k.n.o.Subnets, s.ID) || k.n.t.OneNIC && s.ID == k.home.subnet {
			usable += k.checkSubnet(s)
		}
	}
	for _, id := range k.n.o.Subnets {
		if !slices.ContainsFunc(all, func(s driver.Subnet) bool { return s.ID == id }) {
			k.found.Say("subnet "+id, cloud.Broken, "correct cloud.subnets in agent.yaml: is that its ID, and is it in the node's region and VPC?", "%s shows no such subnet", k.n.t.Name)
		}
	}
	switch {
	case usable > 0:
	case k.limited && k.n.limits().ENIs == 1:
		k.found.Say("subnets", cloud.Works, "", "the instance gets no more ENIs: pods have addresses of its primary one")
	default:
		k.found.Say("subnets", cloud.Broken, "name one of the node's zone by its ID in cloud.subnets, or by tags that it has in cloud.subnetTags", "new ENIs can lie in none: the node is in %s, VPC %s", k.home.zone, k.home.vpc)
	}
}

// checkSubnet reports a subnet, and returns 1 if new ENIs may lie in it, else 0.
func (k *check) checkSubnet(subnet driver.Subnet) int {
	what := "subnet " + subnet.ID
	switch {
	case subnet.Wrong != "":
		k.found.Say(what, cloud.Broken, "leave it out", "what %s tells of it can't be right: %s", k.n.t.Name, subnet.Wrong)
		return 0
	case subnet.VPC != "" && subnet.VPC != k.home.vpc:
		k.found.Say(what, cloud.Broken, "take it out of cloud.subnets", "it is in VPC %s, the node in %s", subnet.VPC, k.home.vpc)
		return 0
	case !k.n.sameZone(subnet.Zone, k.home.zone):
		k.found.Say(what, cloud.Works, "", "it is in zone %s, for nodes there; this one is in %s", subnet.Zone, k.home.zone)
		return 0
	case !subnet.Ready:
		k.found.Say(what, cloud.Broken, "wait until it is available", "%s does not call it available", k.n.t.Name)
		return 0
	}
	// Free may leave out what is reserved for prefixes, so few free addresses are not the end there.
	if k.n.mayReserve() && roomOf(subnet) < 1<<(32-k.n.t.Bits4) {
		k.found.Say(what, cloud.Careful, fmt.Sprintf("see that ranges are reserved for prefixes there (%s), or name another subnet", k.n.t.Keys.Reserved),
			"%d addresses are free beside those that may be reserved for prefixes; %s does not tell how many of these are left", subnet.Free, k.n.t.Name)
		return 1
	}
	k.found.Room(subnet.ID, roomOf(subnet))
	return 1
}
