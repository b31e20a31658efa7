package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
)

// check collects the findings of one Check.
type check struct {
	n     *Node
	self  driver.Self
	view  view
	home  home
	found cloud.Findings
	// region: it is about what a Region calls, not about what a node does.
	region bool
	// limited: what the instance may carry is known.
	limited bool
}

var (
	_ cloud.Checker  = (*Node)(nil)
	_ cloud.Believer = (*Node)(nil)
)

// Beliefs implements cloud.Believer by what the driver takes for granted.
func (n *Node) Beliefs() []cloud.Belief {
	if b, tells := capability[cloud.Believer](n.d); tells {
		return b.Beliefs()
	}
	return nil
}

// Check implements cloud.Checker.
func (n *Node) Check(ctx context.Context) []cloud.Finding { return n.check(ctx, false) }

func (n *Node) check(ctx context.Context, region bool) []cloud.Finding {
	k := &check{n: n, region: region}
	if !k.checkInstance(ctx) || !k.checkCredentials(ctx) {
		return k.found
	}
	k.checkLimits(ctx)
	k.checkSubnets(ctx)
	k.checkPermissions(ctx)
	return k.found
}

// checkPermissions reports permissions and security groups. Only some clouds have dry runs, by
// which they tell these without a change.
func (k *check) checkPermissions(ctx context.Context) {
	options, groups := k.n.o, k.n.o.SecurityGroups
	if len(groups) == 0 {
		groups = k.home.groups
	}
	if p, can := capability[driver.Prober](k.n.d); can {
		about := k.view.nics[0]
		if at := slices.IndexFunc(k.view.nics, func(i nic) bool { return i.Ours }); at >= 0 {
			about = k.view.nics[at]
		}
		k.found = append(k.found, p.Probe(ctx, driver.Probe{Self: k.self, VPC: k.home.vpc, Groups: groups, Any: about.raw, Cluster: options.Cluster, IPv6: options.IPv6, Region: k.region})...)
		return
	}
	if k.n.t.Keys.Policy == "" {
		return // this cloud has no permissions
	}
	k.found.Say("permissions", cloud.Unknown, "", "%s has no dry run: whether ENIs may be made and changed shows when the agent does it; %s lists what it needs", k.n.t.Name, k.n.t.Keys.Policy)
	names := strings.Join(groups, " ")
	if len(options.SecurityGroups) > 0 {
		k.found.Say("security groups", cloud.Unknown, "", "%s: %s tells only when it makes an ENI whether they are right", names, k.n.t.Name)
	} else {
		k.found.Say("security groups", cloud.Works, "", "those of the node's primary ENI: %s", names)
	}
}

// checkInstance finds out which instance this is. Without it nothing else can be checked.
func (k *check) checkInstance(ctx context.Context) bool {
	self, err := k.n.findSelf(ctx)
	if err != nil {
		k.found.Failed("instance", adviseTimeout(ctx, "run this on the instance that will be the node; where no metadata service answers, "+k.adviseKeys("set")), err)
		return false
	}
	k.self = self
	where := ""
	if self.Region != "" { // where cloud.endpoint is set a driver need not know it
		where = " in region " + self.Region
	}
	k.found.Say("instance", cloud.Works, "", "%s%s", self.Instance, where)
	return true
}

// adviseKeys says what to do with the keys of agent.yaml that say which instance this is.
func (k *check) adviseKeys(do string) string {
	return do + " " + cmp.Or(k.n.t.Keys.Self, "node") + " in agent.yaml"
}

// adviseRole says how to give the agent credentials.
func (k *check) adviseRole() string {
	text := "give the instance a role with " + k.n.t.Keys.Policy
	if k.n.t.Keys.Keyring != "" {
		text += ", or set " + k.n.t.Keys.Keyring
	}
	return text
}

// checkCredentials makes the first signed call, which is also the first look at the ENIs. Its
// error tells about credentials, the clock, and whether the API answers.
func (k *check) checkCredentials(ctx context.Context) bool {
	const what = "credentials"
	seen, err := k.n.describeENIs(ctx)
	k.checkClock()
	switch driver.Reason(err) {
	case cloud.WrongClock:
		if k.clockIsRight() { // the same code is for temporary credentials that have run out
			k.found.Failed(what, "renew the temporary credentials, or leave them out: "+k.adviseRole(), err)
			return false
		}
		k.found.Failed("clock", "set the node's clock: it must be within 5 minutes of the cloud's", err)
		return false
	case cloud.Unauthorized:
		k.found.Say(what, cloud.Works, "", "%s knows them", k.n.t.Name)
		k.sayUnauthorized(err, "; nothing else can be looked at without it")
		return false
	case cloud.Unsigned:
		k.found.Failed(what, k.adviseRole(), err)
		return false
	}
	switch {
	case err == nil:
	case errors.Is(err, cloud.ErrThrottled):
		for _, later := range []string{what, "limits", "subnets", "permissions"} {
			k.found.Throttled(later, err)
		}
		return false
	case errors.Is(err, cloud.ErrNotFound):
		k.found.Say(what, cloud.Works, "", "%s knows them", k.n.t.Name)
		k.found.Failed("ENIs", k.adviseKeys("correct")+", or leave out what the instance metadata tells", err)
		return false
	case driver.Reason(err) == cloud.Between:
		k.found.Failed("API", "what answers in its place is to let it through: name its host in NO_PROXY of the agent's environment, or correct cloud.endpoint in agent.yaml", err)
		return false
	case errors.Is(err, cloud.ErrUnavailable):
		k.found.Failed("API", adviseTimeout(ctx, whereAPI), err)
		return false
	case k.n.t.Keys.Policy == "":
		k.found.Failed(what, "", err)
		return false
	default:
		fix := k.adviseRole() + ": these come before the role, also where they are wrong or have expired"
		if region := k.self.Region; region != "" { // a signature names it
			fix += fmt.Sprintf("; %s answers the same where cloud.endpoint is not in region %s, or the account may not use that", k.n.t.Name, region)
		}
		k.found.Failed(what, fix, err)
		return false
	}
	k.found.Say(what, cloud.Works, "", "%s knows them", k.n.t.Name)
	k.view = seen
	k.n.mu.Lock()
	k.home = k.n.home
	k.n.mu.Unlock()
	k.reportENIs()
	return true
}

// whereAPI is what a person can do if the API does not answer.
const whereAPI = "is it up, and does the node reach it: DNS, route, proxy? cloud.region and cloud.endpoint in agent.yaml say where it is"

// adviseTimeout adds to a fix that the check's own time ran out, if it did: then the failure may
// be nothing but that.
func adviseTimeout(ctx context.Context, fix string) string {
	if ctx.Err() != nil {
		return "take a longer --timeout, which was over before there was an answer; " + fix
	}
	return fix
}

// adviseForRead says what to do about a read that failed. Only for a refusal it is a permission.
func (k *check) adviseForRead(ctx context.Context, err error) string {
	switch {
	case errors.Is(err, cloud.ErrNotFound):
		return k.adviseKeys("correct")
	case errors.Is(err, cloud.ErrUnavailable):
		return adviseTimeout(ctx, whereAPI)
	}
	return "allow what " + k.n.t.Keys.Policy + " does"
}

// sayUnauthorized reports the permission that is missing.
func (k *check) sayUnauthorized(err error, what string) {
	e, _ := errors.AsType[*driver.Error](err)
	k.found.Failed("permission "+e.Action, "allow it as in "+k.n.t.Keys.Policy+what, err)
}

// checkClock reports how far the node's clock is off, by the time in the last answer.
func (k *check) checkClock() {
	c, can := capability[driver.Clocked](k.n.d)
	if !can {
		return
	}
	if ahead, known := c.Skew(); known {
		k.found.Clock(ahead)
	} else {
		k.found.Say("clock", cloud.Unknown, "", "no answer had a date")
	}
}

// clockIsRight tells whether, by the last answer, the clock is close enough for signatures.
func (k *check) clockIsRight() bool {
	c, can := capability[driver.Clocked](k.n.d)
	if !can {
		return false
	}
	ahead, known := c.Skew()
	return known && ahead.Abs() < cloud.MostSkew
}

// reportENIs reports the ENIs of the instance, and each that is left out. One that is left out
// is only Careful: the agent works without it, but it takes room that pods could have.
func (k *check) reportENIs() {
	ours, others := 0, len(k.view.leftOut)
	for _, i := range k.view.nics {
		if i.Ours {
			ours++
		}
	}
	k.found.Say("ENIs", cloud.Works, "", "%d attached, %d of them made by enipool, and %d not for pods; its primary one is %s in %s",
		len(k.view.nics)+others, ours, others, k.home.primary, k.home.subnet)
	for _, q := range k.n.Quarantined() {
		if q.Address.IsValid() {
			k.found.Say("address "+q.Address.String(), cloud.Careful, "take it from the ENI, if nobody needs it: it takes the room of one for pods", "ENI %s: %s", q.ID, q.Why)
			continue
		}
		if q.Subnet != "" {
			k.found.Say("subnet "+q.Subnet, cloud.Careful, "set its range right", "%s", q.Why)
			continue
		}
		k.found.Say("ENI "+q.ID, cloud.Careful, "detach it, if nobody needs it", "it is left out: %s", q.Why)
	}
}
