package agent

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/health"
	"github.com/enipool/enipool/pkg/pool"
)

// obstacles returns why the node can't have one more slot now: nothing where it can,
// or has all it can ever have and wants no more. there is how many addresses each ENI
// of the snapshot has.
func (a *Agent) obstacles(s pool.Snapshot, there []int, now time.Duration) []health.Cause {
	if most := a.decision.Most; a.demand.owned >= most {
		if a.demand.wanted <= most {
			return nil
		}
		return []health.Cause{{Reason: health.AddressLimitReached, What: strings.Join(a.status.Blockers, ", ")}}
	}
	return append(a.troubles(), a.supply(s, there, now)...)
}

// troubles are what is wrong with the way in which addresses come, from wherever. A
// failure stands until it has worked again, so that it does not come and go with each
// new try.
func (a *Agent) troubles() []health.Cause {
	var list []health.Cause
	for _, c := range [...]class{looks, grows} {
		if h, failed := a.backoffs[of(c)]; failed {
			list = append(list, h.because())
		}
	}
	if h, failed := a.backoffs[of(adopts)]; failed {
		list = append(list, health.Cause{Reason: health.SetupFailed, What: h.err.Error()})
	}
	for _, s := range a.backoffs.scopes() {
		if s.class == adopts && s.kind == anENI {
			list = append(list, health.Cause{Reason: health.SetupFailed, What: a.backoffs[s].err.Error()})
		}
	}
	if len(a.waitingLinks) > 0 {
		list = append(list, health.Cause{Reason: health.LinkMissing, What: a.noLink()})
	}
	return list
}

// cause is because as long as it is left alone, and while the next try may be under way.
// After that it says nothing: nobody may want to try.
func (v backoff) cause(now time.Duration) health.Cause {
	if v.err == nil || v.until+quiet <= now {
		return health.Cause{}
	}
	return v.because()
}

// because tells a failure of the cloud in the words of a node's health.
func (v backoff) because() health.Cause {
	reason := health.CloudFailed
	switch cloud.Kind(v.err) {
	case cloud.ErrForbidden:
		reason = health.CloudForbidden
	case cloud.ErrUnavailable:
		reason = health.CloudUnavailable
	case cloud.ErrThrottled:
		reason = health.CloudThrottled
	case cloud.ErrLimit:
		reason = health.ENILimitReached
	}
	return health.Cause{Reason: reason, What: v.err.Error()}
}

// supply says why no ENI and no subnet has one more slot for the node, nothing if one
// has.
func (a *Agent) supply(s pool.Snapshot, there []int, now time.Duration) []health.Cause {
	var list []health.Cause
	slots, addresses := perENI(s)
	for i := range s.ENIs {
		e := &s.ENIs[i]
		if e.Index < a.firstIndex() || e.Leaving || there[i] >= addresses || a.crowded(e, s.Families) {
			continue
		}
		c := a.noLinkCause(e.ID)
		if c.Reason == "" {
			c = a.subnet(e.Subnet, 1, now)
		}
		if c.Reason == "" {
			c = a.backoffs[assignsTo(e.ID)].cause(now)
		}
		if c.Reason == "" {
			return nil
		}
		list = append(list, c)
	}
	more := a.newENI(s, slots, now)
	if len(more) == 0 {
		return nil
	}
	return join(append(list, more...))
}

// newENI says why the node gets no more ENIs now, nothing if it does.
func (a *Agent) newENI(s pool.Snapshot, slots int, now time.Duration) []health.Cause {
	var list []health.Cause
	for _, c := range a.mem.Creates {
		h, failed := a.unmade(c, now)
		if !failed {
			return nil // it is being made
		}
		list = append(list, h.because())
	}
	n, full := len(s.ENIs)+s.Foreign+len(s.Pending), a.conf.Pool.Full(s)
	switch quota := a.backoffs[newENIsIn("")].cause(now); {
	case len(s.Pending) > 0:
		return list
	case full != "" && len(a.unlinked) > 0:
		// With its link that ENI would serve pods: another one is not what lacks.
		for _, id := range slices.Sorted(maps.Keys(a.unlinked)) {
			list = append(list, a.noLinkCause(id))
		}
		return list
	case n >= s.Limits.ENIs:
		return []health.Cause{{Reason: health.ENILimitReached, What: fmt.Sprintf("it has %d of %d ENIs, %d of them not enipool's", n, s.Limits.ENIs, s.Foreign)}}
	case full != "":
		return []health.Cause{{Reason: health.ENILimitReached, What: "it has " + full}}
	case quota.Reason != "":
		return []health.Cause{quota}
	}
	return a.noSubnet(slots, now)
}

// unmade returns what is the matter with an ENI that was begun, if something is. An intent that
// follows on one that was given up is no better off than that.
func (a *Agent) unmade(c create, now time.Duration) (h backoff, failed bool) {
	if h, failed = a.backoffs[intentOf(c.Token)]; failed {
		return h, true
	}
	h = a.backoffs[newENIsIn(c.Subnet)]
	return h, h.err != nil && h.until+quiet > now
}

// noENI says in one line why an ENI that was begun does not come, "" if nothing is known.
func (a *Agent) noENI(now time.Duration) string {
	for _, c := range a.mem.Creates {
		if h, failed := a.unmade(c, now); failed {
			return "cloud: " + h.why()
		}
	}
	for _, s := range a.view.subnets { // until the next intent
		if h, failed := a.unmade(create{Subnet: s.ID}, now); failed && s.New {
			return "cloud: " + h.why()
		}
	}
	return ""
}

// noSubnet says why no subnet takes a new ENI of that many slots, nothing if one does.
func (a *Agent) noSubnet(slots int, now time.Duration) []health.Cause {
	need := 1
	if a.conf.Pool.Mode == pool.Burstable && !a.conf.Pool.Partial {
		need = min(slots, a.decision.Most-a.demand.owned) // it is filled, or not made
	}
	var list []health.Cause
	for i := range a.view.subnets {
		n := &a.view.subnets[i]
		if !n.New {
			continue
		}
		c := a.backoffs[newENIsIn(n.ID)].cause(now)
		if c.Reason == health.CloudFailed {
			c.Reason = health.NoSubnet // it is not there, or takes none
		}
		if c.Reason == "" {
			c = a.subnet(n.ID, need+1, now) // its primary address is no pod's
		}
		if c.Reason == "" {
			return nil
		}
		list = append(list, c)
	}
	if len(list) == 0 {
		list = append(list, health.Cause{Reason: health.NoSubnet})
	}
	return list
}

// subnet says why the subnet does not give that many addresses; the cause has no
// reason where it does. One that had none lately has none until a while has passed:
// what others give back there is soon gone again.
func (a *Agent) subnet(id string, need int, now time.Duration) health.Cause {
	n, known := a.view.subnet(id)
	switch {
	case !known:
		return health.Cause{Reason: health.NoSubnet, What: "nothing is known of subnet " + id}
	case a.backoffs.active(fullSubnet(id), now), a.isFull(id, now), a.view.mayGive(n) < need:
		return health.Cause{Reason: health.SubnetExhausted, What: id}
	}
	return health.Cause{}
}

// join makes one cause of the subnets that have no more.
func join(list []health.Cause) []health.Cause {
	var full []string
	var rest []health.Cause
	for _, c := range list {
		switch {
		case c.Reason != health.SubnetExhausted:
			rest = append(rest, c)
		case !slices.Contains(full, c.What):
			full = append(full, c.What)
		}
	}
	if len(full) > 0 {
		slices.Sort(full)
		rest = append(rest, health.Cause{Reason: health.SubnetExhausted, What: "no addresses left in subnet " + strings.Join(full, ",")})
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
