package agent

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/pkg/pool"
	"github.com/enipool/enipool/pkg/scale"
	"github.com/enipool/enipool/pkg/status"
)

// reasons are what it follows from why the node does not have more addresses: values, none of which
// acts or asks.
type reasons struct {
	now      time.Duration
	pool     pool.Config
	families []eni.Family
	first    int // lowest device index of an ENI with addresses for pods
	view     *view
	cached   *ipam.State // nil if it can't be read
	cache    cacheFault
	creates  []create // ENIs that were begun
	links    links
	vpc      string // what is wrong with the VPC's ranges, "" if nothing is
	backoffs backoffs
	full     func(subnet string) bool // others need what the subnet has
	look     time.Duration            // when the cloud is looked at again
	wait     wait                     // for the first describe

	demand       demand
	decision     scale.Decision
	sized        bool           // the instance's limits are known to it
	targetCauses []pool.Cause   // why the target is out of reach
	causes       []pool.Cause   // what slotCauses said after the last plan
	status       *status.Status // what the tick counted
}

// cacheFault is what is wrong with the node cache.
type cacheFault struct {
	words   string // "" if nothing is
	missing bool
}

// reasons returns what is known now.
func (a *Agent) reasons(now time.Duration) reasons {
	r := reasons{now: now, pool: a.conf.Pool, families: a.conf.Settings.Families, first: a.firstIndex(), view: &a.view, cached: a.cached,
		creates: a.mem.Creates, links: a.links, vpc: a.wrongVPC, backoffs: a.backoffs, full: func(id string) bool { return a.isFull(id, now) },
		look: a.lookDue(now), wait: a.waitsFor(now), demand: a.demand, decision: a.decision, sized: a.sized, targetCauses: a.targetCauses, causes: a.causes, status: &a.status}
	r.cache.missing = errors.Is(a.cacheErr, nodecache.ErrMissing)
	if a.cacheErr != nil || a.rebuildFails() {
		r.cache.words = a.cacheProblem()
		if look := a.backoffs[of(looks)]; look.err != nil && !a.view.known { // who reads the condition has no log
			r.cache.words += ", and the cloud does not say what to build it from: " + look.why()
		}
	}
	return r
}

// slotCauses returns why the node can't have one more slot now: nothing where it can,
// or has all it can ever have and wants no more. there is how many addresses each ENI
// of the snapshot has.
func (r reasons) slotCauses(s pool.Snapshot, there []int) []pool.Cause {
	if most := r.decision.Most; r.demand.owned >= most {
		if r.demand.total <= most {
			return nil
		}
		limit := pool.Cause{Kind: pool.AddressLimit, Slots: r.demand.total - most}
		if i := slices.IndexFunc(r.targetCauses, func(c pool.Cause) bool { return c.Kind == limit.Kind }); i >= 0 {
			limit.Words = r.targetCauses[i].Words
		}
		if r.status.Most == 0 {
			limit.Words = r.view.noRoom(r.families)
		}
		return []pool.Cause{limit}
	}
	return pool.Rank(append(r.failureCauses(), r.supply(s, there)...))
}

// failureCauses are what is wrong with the way in which addresses come, from wherever.
func (r reasons) failureCauses() []pool.Cause {
	var list []pool.Cause
	for _, s := range r.backoffs.scopes() {
		if (s == of(looks) || s == of(grows) || s == of(asksFor) || s.class == adopts) && r.backoffs.stands(s, r.now) {
			list = append(list, r.backoffs.because(s))
		}
	}
	if len(r.links.awaited) > 0 {
		list = append(list, pool.Cause{Kind: pool.LinkMissing, Words: r.links.missing()})
	}
	return list
}

// stands tells whether a failure still says something. One of what is always tried again stands
// until it has worked, so that it does not come and go with each new try; another as long as it is
// left alone, and while the next try may be under way. After that nobody may want to try.
func (b backoffs) stands(s scope, now time.Duration) bool {
	v, failed := b[s]
	return failed && v.err != nil && (s.class == looks || s.class == adopts || v.until+quiet > now)
}

// cause is because while that stands.
func (b backoffs) cause(s scope, now time.Duration) pool.Cause {
	if !b.stands(s, now) {
		return pool.Cause{}
	}
	return b.because(s)
}

// because tells a failure as what keeps addresses away. One object is tried again no sooner than
// its class.
func (b backoffs) because(s scope) pool.Cause {
	v := b[s]
	c := pool.Cause{Kind: cloud.MeaningOf(v.err).Cause, Object: s.id, Next: max(v.until, b[of(s.class)].until), Words: "the cloud refused lately"}
	if v.err != nil {
		c.Words = v.err.Error()
	}
	switch {
	case s.class == adopts:
		c.Kind = pool.SetupFailed
	case s.class == asksFor:
		c.Kind = pool.OperatorSilent
	}
	return c
}

// supply says why no ENI and no subnet has one more slot for the node, nothing if one
// has.
func (r reasons) supply(s pool.Snapshot, there []int) []pool.Cause {
	if r.view.operated {
		return r.view.told
	}
	var list []pool.Cause
	slots, addresses := perENI(s)
	for i := range s.ENIs {
		e := &s.ENIs[i]
		if e.Index < r.first || e.Leaving || there[i] >= addresses || r.view.crowded(r.cached, e, s.Families) {
			continue
		}
		c := r.links.cause(e.ID)
		if c.Kind == 0 {
			c = r.subnet(e.Subnet, 1)
		}
		if c.Kind == 0 {
			c = r.backoffs.cause(assignsTo(e.ID), r.now)
		}
		if c.Kind == 0 {
			c = r.backoffs.cause(adoptionOf(e.ID), r.now)
		}
		if c.Kind == 0 {
			return nil
		}
		c.Slots = addresses - max(0, there[i])
		list = append(list, c)
	}
	more := r.newENI(s, slots)
	if len(more) == 0 {
		return nil
	}
	return join(append(list, more...))
}

// newENI says why the node gets no more ENIs now, nothing if it does.
func (r reasons) newENI(s pool.Snapshot, slots int) []pool.Cause {
	var list []pool.Cause
	for _, c := range r.creates {
		why := r.unmade(c)
		if why.Kind == 0 {
			return nil // it is being made
		}
		list = append(list, why)
	}
	n, full := len(s.ENIs)+s.Unmanaged+len(s.Pending), r.pool.Full(s)
	switch quota := r.backoffs.cause(newENIsIn(""), r.now); {
	case len(s.Pending) > 0:
		return list
	case full != "" && len(r.links.lost) > 0:
		// With its link that ENI would serve pods: another one is not what lacks.
		return append(list, r.links.causes()...)
	case full != "" && len(r.untaken()) > 0: // neither does this one
		return append(list, r.untaken()...)
	case n >= s.Limits.ENIs:
		words := fmt.Sprintf("the node has %d of %d ENIs", n, s.Limits.ENIs)
		if s.Unmanaged > 0 {
			words += fmt.Sprintf(", %d of them not enipool's", s.Unmanaged)
		}
		return r.eniLimit(words, r.pool.MoreENIs(s))
	case full != "":
		return r.eniLimit("the node has "+full, r.pool.MoreENIs(s))
	case quota.Kind != 0:
		return []pool.Cause{quota}
	}
	return r.noSubnet(slots)
}

// eniLimit is the cause of a node that may have no more ENIs. Those that it has may have room for prefixes, but
// for single addresses.
func (r reasons) eniLimit(words, todo string) []pool.Cause {
	if singles := countPrefixes(r.view.limits.V4Block, r.cached).singleWords(); singles != "" {
		words += ", and " + singles + ", left from when its subnet had no whole one or prefixes were off"
	}
	return []pool.Cause{{Kind: pool.ENILimit, Words: words, Todo: todo}}
}

// untaken says which ENIs can't be taken into kernel or cache.
func (r reasons) untaken() (list []pool.Cause) {
	for _, s := range r.backoffs.scopes() {
		if s.class == adopts && s.kind == anENI && r.backoffs.stands(s, r.now) {
			list = append(list, r.backoffs.because(s))
		}
	}
	return list
}

// unmade returns what is the matter with an ENI that was begun, no cause if nothing is. An intent
// that follows on one that was given up is no better off than that.
func (r reasons) unmade(c create) pool.Cause {
	s := intentOf(c.Token)
	if _, failed := r.backoffs[s]; !failed {
		return r.backoffs.cause(newENIsIn(c.Subnet), r.now)
	}
	why := r.backoffs.because(s)
	why.Object, why.Slots = c.Subnet, c.Slots
	return why
}

// noENI says why an ENI that was begun does not come, no cause if nothing is known.
func (r reasons) noENI() (why pool.Cause) {
	for _, c := range r.creates {
		if why = r.unmade(c); why.Kind != 0 {
			return why
		}
	}
	for _, s := range r.view.subnets { // until the next intent
		if why = r.unmade(create{Subnet: s.ID}); why.Kind != 0 && s.New {
			return why
		}
	}
	return pool.Cause{}
}

// noSubnet says why no subnet takes a new ENI of that many slots, nothing if one does.
func (r reasons) noSubnet(slots int) []pool.Cause {
	need := 1
	if r.pool.Mode == pool.Burstable && !r.pool.Partial {
		need = min(slots, r.decision.Most-r.demand.owned) // it is filled, or not made
	}
	return pool.NoSubnetCauses(r.view.subnets, func(n cloud.Subnet) (pool.Cause, bool) {
		refused := r.backoffs.cause(newENIsIn(n.ID), r.now)
		switch {
		case !n.New, n.Free > 0 && !r.view.takesNew(n): // a plan prefers one that shows enough
			return refused, false
		case refused.Is():
			return refused, true
		case n.Free == 0: // its primary address is no block's: not even blocks that the subnet does not show help
			return r.fullCause(n.ID), true
		}
		return r.subnet(n.ID, need+1), true // its primary address is no pod's
	})
}

// subnet says why the subnet does not give that many addresses; the cause has no
// reason where it does. One that had none lately has none until a while has passed:
// what others give back there is soon gone again.
func (r reasons) subnet(id string, need int) pool.Cause {
	n, known := r.view.subnet(id)
	switch {
	case !known:
		return pool.Cause{Kind: pool.NoSubnet, Object: id, Next: r.look, Words: "nothing is known of subnet " + id}
	case r.backoffs.active(fullSubnet(id), r.now), r.full(id), r.view.mayGive(n) < need:
		return r.fullCause(id)
	}
	return pool.Cause{}
}

// fullCause is that of a subnet without addresses. join has words for all of them together.
func (r reasons) fullCause(id string) pool.Cause {
	return pool.Cause{Kind: pool.SubnetFull, Object: id, Next: max(r.backoffs[fullSubnet(id)].until, r.backoffs[of(grows)].until, r.look)}
}

// join makes one cause of the subnets that have no more.
func join(list []pool.Cause) []pool.Cause {
	var full []string
	var rest []pool.Cause
	all := pool.Cause{Kind: pool.SubnetFull}
	for _, c := range list {
		switch {
		case c.Kind != pool.SubnetFull:
			rest = append(rest, c)
		case !slices.Contains(full, c.Object):
			full = append(full, c.Object)
			all.Slots, all.Next = all.Slots+c.Slots, max(all.Next, c.Next)
		}
	}
	if len(full) > 0 {
		slices.Sort(full)
		all.Object = strings.Join(full, ",")
		all.Words = "no addresses left in subnet " + all.Object
		rest = append(rest, all)
	}
	return rest
}

// perENI returns how many slots an ENI has for pods, and how many addresses that is.
func perENI(s pool.Snapshot) (slots, addresses int) {
	slots = math.MaxInt
	for _, f := range s.Families {
		size := max(s.Limits.Block(f).Size, 1)
		slots = min(slots, s.Limits.PerENI(f)/size*size)
	}
	for _, f := range s.Families {
		n, size := s.Limits.PerENI(f), s.Limits.Block(f).Size
		if size > 1 {
			n = (slots + size - 1) / size * size // more blocks serve nobody
		}
		addresses += n
	}
	return slots, addresses
}
