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

// check is a Check under way.
type check struct {
	n     *Node
	self  driver.Self
	view  view
	home  home
	found cloud.Findings
	// limited: what the instance may carry is known.
	limited bool
}

var (
	_ cloud.Checker  = (*Node)(nil)
	_ cloud.Believer = (*Node)(nil)
)

// Beliefs implements cloud.Believer by what the driver takes for granted.
func (n *Node) Beliefs() []cloud.Belief {
	if b, tells := able[cloud.Believer](n.d); tells {
		return b.Beliefs()
	}
	return nil
}

// Check implements cloud.Checker.
func (n *Node) Check(ctx context.Context) []cloud.Finding {
	k := &check{n: n}
	if !k.instance(ctx) || !k.interfaces(ctx) {
		return k.found
	}
	k.limits(ctx)
	k.subnets(ctx)
	k.probe(ctx)
	return k.found
}

// probe looks at what only some clouds tell without a change: permissions, security groups.
func (k *check) probe(ctx context.Context) {
	o, groups := k.n.o, k.n.o.SecurityGroups
	if len(groups) == 0 {
		groups = k.home.groups
	}
	if p, can := able[driver.Prober](k.n.d); can {
		about := k.view.nics[0]
		if at := slices.IndexFunc(k.view.nics, func(i nic) bool { return i.Ours }); at >= 0 {
			about = k.view.nics[at]
		}
		k.found = append(k.found, p.Probe(ctx, driver.Probe{Self: k.self, VPC: k.home.vpc, Groups: groups, Any: about.raw, Cluster: o.Cluster, IPv6: o.IPv6})...)
		return
	}
	if k.n.t.Keys.Policy == "" {
		return // nobody has to be allowed anything
	}
	k.found.Say("permissions", cloud.Unknown, "", "%s has no dry run: whether ENIs may be made and changed shows when the agent does it; %s lists what it needs", k.n.t.Name, k.n.t.Keys.Policy)
	names := strings.Join(groups, " ")
	if len(o.SecurityGroups) > 0 {
		k.found.Say("security groups", cloud.Unknown, "", "%s: %s tells only when it makes an ENI whether they are right", names, k.n.t.Name)
	} else {
		k.found.Say("security groups", cloud.Works, "", "those of the node's own ENI: %s", names)
	}
}

func (k *check) instance(ctx context.Context) bool {
	self, err := k.n.whoami(ctx)
	if err != nil {
		k.found.Failed("instance", late(ctx, "run this on the instance that will be the node; where no metadata service answers, "+k.keys("set")), err)
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

// keys says what to do with the keys that tell which instance this is.
func (k *check) keys(do string) string {
	return do + " " + cmp.Or(k.n.t.Keys.Self, "node") + " in agent.yaml"
}

// role says how the agent gets credentials.
func (k *check) role() string {
	text := "give the instance a role with " + k.n.t.Keys.Policy
	if k.n.t.Keys.Keyring != "" {
		text += ", or set " + k.n.t.Keys.Keyring
	}
	return text
}

// interfaces makes the first call that is signed: it tells of credentials and clock.
func (k *check) interfaces(ctx context.Context) bool {
	const what = "credentials"
	v, err := k.n.look(ctx)
	k.clock()
	switch driver.Reason(err) {
	case driver.WrongClock:
		if k.rightClock() { // the same code is for temporary credentials that have run out
			k.found.Failed(what, "renew the temporary credentials, or leave them out: "+k.role(), err)
			return false
		}
		k.found.Failed("clock", "set the node's clock: it must be within 5 minutes of the cloud's", err)
		return false
	case driver.Unauthorized:
		k.found.Say(what, cloud.Works, "", "%s knows them", k.n.t.Name)
		k.refused(err, "; nothing else can be looked at without it")
		return false
	case driver.Unsigned:
		k.found.Failed(what, k.role(), err)
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
		k.found.Failed("ENIs", k.keys("correct")+", or leave out what the instance metadata tells", err)
		return false
	case driver.Reason(err) == driver.Between:
		k.found.Failed("API", "what answers in its place is to let it through: name its host in NO_PROXY of the agent's environment, or correct cloud.endpoint in agent.yaml", err)
		return false
	case errors.Is(err, cloud.ErrUnavailable):
		k.found.Failed("API", late(ctx, whereAPI), err)
		return false
	case k.n.t.Keys.Policy == "":
		k.found.Failed(what, "", err)
		return false
	default:
		fix := k.role() + ": these come before the role, also where they are wrong or have expired"
		if region := k.self.Region; region != "" { // a signature names it
			fix += fmt.Sprintf("; %s answers the same where cloud.endpoint is not in region %s, or the account may not use that", k.n.t.Name, region)
		}
		k.found.Failed(what, fix, err)
		return false
	}
	k.found.Say(what, cloud.Works, "", "%s knows them", k.n.t.Name)
	k.view = v
	k.n.mu.Lock()
	k.home = k.n.home
	k.n.mu.Unlock()
	k.attached()
	return true
}

// whereAPI is what to look at where the API does not answer.
const whereAPI = "is it up, and does the node reach it: DNS, route, proxy? cloud.region and cloud.endpoint in agent.yaml say where it is"

// late adds to what to do that the time of the check was over: what was waited for is not known then.
func late(ctx context.Context, fix string) string {
	if ctx.Err() != nil {
		return "take a longer --timeout, which was over before there was an answer; " + fix
	}
	return fix
}

// unread says what to do about a read that failed. Only a refusal is the policy's matter.
func (k *check) unread(ctx context.Context, err error) string {
	switch {
	case errors.Is(err, cloud.ErrNotFound):
		return k.keys("correct")
	case errors.Is(err, cloud.ErrUnavailable):
		return late(ctx, whereAPI)
	}
	return "allow what " + k.n.t.Keys.Policy + " does"
}

// refused tells which permission lacks.
func (k *check) refused(err error, what string) {
	e, _ := errors.AsType[*driver.Error](err)
	k.found.Failed("permission "+e.Action, "allow it as in "+k.n.t.Keys.Policy+what, err)
}

// clock compares the clocks by the last answer.
func (k *check) clock() {
	c, can := able[driver.Clocked](k.n.d)
	if !can {
		return
	}
	if ahead, known := c.Skew(); known {
		k.found.Clock(ahead)
	} else {
		k.found.Say("clock", cloud.Unknown, "", "no answer had a date")
	}
}

// rightClock tells whether the last answer shows that the clock is not what was refused.
func (k *check) rightClock() bool {
	c, can := able[driver.Clocked](k.n.d)
	if !can {
		return false
	}
	ahead, known := c.Skew()
	return known && ahead.Abs() < cloud.MostSkew
}

// attached tells of the ENIs that there are.
func (k *check) attached() {
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
