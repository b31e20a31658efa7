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
	"github.com/enipool/enipool/pkg/eni"
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
		k.found.Failed("instance", "run this on the instance that will be the node; where no metadata service answers, "+k.keys("set"), err)
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
		k.found.Failed("API", "is it up, and does the node reach it: DNS, route, proxy? cloud.region and cloud.endpoint in agent.yaml say where it is", err)
		return false
	case k.n.t.Keys.Policy == "":
		k.found.Failed(what, "", err)
		return false
	default:
		k.found.Failed(what, k.role()+": these come before the role, also where they are wrong or have expired", err)
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

func (k *check) limits(ctx context.Context) {
	l, err := k.n.Limits(ctx)
	if err != nil {
		k.found.Failed("limits", "allow what "+k.n.t.Keys.Policy+" does", err)
		return
	}
	k.limited = true
	verdict, fix, how := cloud.Works, "", ""
	if l.V4Block.Size > 1 {
		how = ", by prefixes"
	}
	if l.NoPrimary {
		how += ", none of them on its primary one"
	}
	k.n.mu.Lock()
	builtin, guessed := k.n.shape.Builtin, k.n.shape.Guessed
	k.n.mu.Unlock()
	switch {
	case l.V4Block.Size <= 1 && k.n.o.Prefixes:
		verdict, fix, how = cloud.Careful, "take an instance type that takes prefixes, or leave cloud.prefixes out", how+"; the type takes no prefixes"
	case builtin != nil:
		verdict, fix = cloud.Careful, "allow what "+k.n.t.Keys.Policy+" does, or compare with the limits of the instance type: cloud.maxENIs and cloud.maxIPsPerENI correct them"
		how += fmt.Sprintf("; enipool's own numbers, for %s did not tell: %v", k.n.t.Name, builtin)
	case guessed:
		how += fmt.Sprintf("; addresses of an ENI by enipool's own rule, which cloud.maxIPsPerENI corrects: %s does not tell them", k.n.t.Name)
	}
	k.found.Say("limits", verdict, fix, "%d ENIs, %d addresses for pods%s", l.ENIs, (l.ENIs-l.FirstIndex())*l.PerENI(eni.IPv4), how)
}

// subnets tells which of the chosen ones new ENIs may lie in, and their room.
func (k *check) subnets(ctx context.Context) {
	all, err := k.n.chosen(ctx, k.home)
	if err != nil {
		k.found.Failed("subnets", "allow what "+k.n.t.Keys.Policy+" does", err)
		return
	}
	usable := 0
	for _, s := range all {
		if k.n.isNew(s, k.home) || slices.Contains(k.n.o.Subnets, s.ID) || k.n.t.OneNIC && s.ID == k.home.subnet {
			usable += k.subnet(s)
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

// subnet returns 1 if new ENIs may lie in the subnet.
func (k *check) subnet(s driver.Subnet) int {
	what := "subnet " + s.ID
	switch {
	case s.Wrong != "":
		k.found.Say(what, cloud.Broken, "leave it out", "what %s tells of it can't be right: %s", k.n.t.Name, s.Wrong)
		return 0
	case s.VPC != "" && s.VPC != k.home.vpc:
		k.found.Say(what, cloud.Broken, "take it out of cloud.subnets", "it is in VPC %s, the node in %s", s.VPC, k.home.vpc)
		return 0
	case !k.n.sameZone(s.Zone, k.home.zone):
		k.found.Say(what, cloud.Works, "", "it is in zone %s, for nodes there; this one is in %s", s.Zone, k.home.zone)
		return 0
	case !s.Ready:
		k.found.Say(what, cloud.Broken, "wait until it is available", "%s does not call it available", k.n.t.Name)
		return 0
	}
	if k.n.mayReserve() && roomOf(s) < 1<<(32-k.n.t.Bits4) {
		k.found.Say(what, cloud.Careful, fmt.Sprintf("see that ranges are reserved for prefixes there (%s), or name another subnet", k.n.t.Keys.Reserved),
			"%d addresses are free beside those that may be reserved for prefixes; %s does not tell how many of these are left", s.Free, k.n.t.Name)
		return 1
	}
	k.found.Room(s.ID, roomOf(s))
	return 1
}
