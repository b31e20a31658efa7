package agent

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/pool"
)

// obstacles returns why the node can't have one more slot now: nothing where it can,
// or has all it can ever have and wants no more. there is how many addresses each ENI
// of the snapshot has.
func (a *Agent) obstacles(s pool.Snapshot, there []int, now time.Duration) []pool.Cause {
	if most := a.decision.Most; a.demand.owned >= most {
		if a.demand.wanted <= most {
			return nil
		}
		words := strings.Join(pool.Texts(a.blockers), ", ")
		if a.status.Most == 0 {
			words = a.noRoom()
		}
		return []pool.Cause{{Kind: pool.AddressLimit, Slots: a.demand.wanted - most, Words: words}}
	}
	return pool.Rank(append(a.troubles(now), a.supply(s, there, now)...))
}

// troubles are what is wrong with the way in which addresses come, from wherever.
func (a *Agent) troubles(now time.Duration) []pool.Cause {
	var list []pool.Cause
	for _, s := range a.backoffs.scopes() {
		if (s == of(looks) || s == of(grows) || s.class == adopts) && a.backoffs.stands(s, now) {
			list = append(list, a.backoffs.because(s))
		}
	}
	if len(a.links.awaited) > 0 {
		list = append(list, pool.Cause{Kind: pool.LinkMissing, Words: a.links.missing()})
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

// because tells a failure as what keeps addresses away.
func (b backoffs) because(s scope) pool.Cause {
	v := b[s]
	c := pool.Cause{Kind: pool.CallFailed, Object: s.id, Next: v.until, Words: v.err.Error()}
	switch kind := cloud.Kind(v.err); {
	case s.class == adopts:
		c.Kind = pool.SetupFailed
	case kind == cloud.ErrForbidden:
		c.Kind = pool.Forbidden
	case kind == cloud.ErrUnavailable:
		c.Kind = pool.Unavailable
	case kind == cloud.ErrThrottled:
		c.Kind = pool.Throttled
	case kind == cloud.ErrLimit:
		c.Kind = pool.ENILimit
	case kind == cloud.ErrNotFound && s.kind == newENIs:
		c.Kind = pool.NoSubnet
	}
	return c
}

// supply says why no ENI and no subnet has one more slot for the node, nothing if one
// has.
func (a *Agent) supply(s pool.Snapshot, there []int, now time.Duration) []pool.Cause {
	var list []pool.Cause
	slots, addresses := perENI(s)
	for i := range s.ENIs {
		e := &s.ENIs[i]
		if e.Index < a.firstIndex() || e.Leaving || there[i] >= addresses || a.view.crowded(a.book, e, s.Families) {
			continue
		}
		c := a.links.cause(e.ID)
		if c.Kind == 0 {
			c = a.subnet(e.Subnet, 1, now)
		}
		if c.Kind == 0 {
			c = a.backoffs.cause(assignsTo(e.ID), now)
		}
		if c.Kind == 0 {
			return nil
		}
		c.Slots = addresses - max(0, there[i])
		list = append(list, c)
	}
	more := a.newENI(s, slots, now)
	if len(more) == 0 {
		return nil
	}
	return join(append(list, more...))
}

// newENI says why the node gets no more ENIs now, nothing if it does.
func (a *Agent) newENI(s pool.Snapshot, slots int, now time.Duration) []pool.Cause {
	var list []pool.Cause
	for _, c := range a.mem.Creates {
		why := a.unmade(c, now)
		if why.Kind == 0 {
			return nil // it is being made
		}
		list = append(list, why)
	}
	n, full := len(s.ENIs)+s.Foreign+len(s.Pending), a.conf.Pool.Full(s)
	switch quota := a.backoffs.cause(newENIsIn(""), now); {
	case len(s.Pending) > 0:
		return list
	case full != "" && len(a.links.lost) > 0:
		// With its link that ENI would serve pods: another one is not what lacks.
		return append(list, a.links.causes()...)
	case n >= s.Limits.ENIs:
		return []pool.Cause{{Kind: pool.ENILimit, Words: fmt.Sprintf("it has %d of %d ENIs, %d of them not enipool's", n, s.Limits.ENIs, s.Foreign)}}
	case full != "":
		return []pool.Cause{{Kind: pool.ENILimit, Words: "it has " + full}}
	case quota.Kind != 0:
		return []pool.Cause{quota}
	}
	return a.noSubnet(slots, now)
}

// unmade returns what is the matter with an ENI that was begun, no cause if nothing is. An intent
// that follows on one that was given up is no better off than that.
func (a *Agent) unmade(c create, now time.Duration) pool.Cause {
	s := intentOf(c.Token)
	if _, failed := a.backoffs[s]; !failed {
		return a.backoffs.cause(newENIsIn(c.Subnet), now)
	}
	why := a.backoffs.because(s)
	why.Object, why.Slots = c.Subnet, c.Slots
	return why
}

// noENI says why an ENI that was begun does not come, no cause if nothing is known.
func (a *Agent) noENI(now time.Duration) (why pool.Cause) {
	for _, c := range a.mem.Creates {
		if why = a.unmade(c, now); why.Kind != 0 {
			return why
		}
	}
	for _, s := range a.view.subnets { // until the next intent
		if why = a.unmade(create{Subnet: s.ID}, now); why.Kind != 0 && s.New {
			return why
		}
	}
	return pool.Cause{}
}

// noSubnet says why no subnet takes a new ENI of that many slots, nothing if one does.
func (a *Agent) noSubnet(slots int, now time.Duration) []pool.Cause {
	need := 1
	if a.conf.Pool.Mode == pool.Burstable && !a.conf.Pool.Partial {
		need = min(slots, a.decision.Most-a.demand.owned) // it is filled, or not made
	}
	var list []pool.Cause
	for i := range a.view.subnets {
		n := &a.view.subnets[i]
		if !n.New {
			continue
		}
		c := a.backoffs.cause(newENIsIn(n.ID), now)
		if c.Kind == 0 {
			c = a.subnet(n.ID, need+1, now) // its primary address is no pod's
		}
		if c.Kind == 0 {
			return nil
		}
		list = append(list, c)
	}
	if len(list) == 0 {
		list = append(list, pool.Cause{Kind: pool.NoSubnet, Words: "no subnet takes the ENI that is needed"})
	}
	return list
}

// subnet says why the subnet does not give that many addresses; the cause has no
// reason where it does. One that had none lately has none until a while has passed:
// what others give back there is soon gone again.
func (a *Agent) subnet(id string, need int, now time.Duration) pool.Cause {
	n, known := a.view.subnet(id)
	switch {
	case !known:
		return pool.Cause{Kind: pool.NoSubnet, Object: id, Next: a.lookDue(now), Words: "nothing is known of subnet " + id}
	case a.backoffs.active(fullSubnet(id), now), a.isFull(id, now), a.view.mayGive(n) < need:
		return pool.Cause{Kind: pool.SubnetFull, Object: id, Next: max(a.backoffs[fullSubnet(id)].until, a.lookDue(now))}
	}
	return pool.Cause{}
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
