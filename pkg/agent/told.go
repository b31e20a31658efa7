package agent

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/health"
	"github.com/enipool/enipool/pkg/pool"
	"github.com/enipool/enipool/pkg/status"
)

// tellCauses puts into the status what is wrong now: the one cause that counts in words, all of
// them as values, and what keeps the target out of reach.
func (a *Agent) tellCauses(now time.Duration) {
	s, r := &a.status, a.reasons(now)
	s.Blockers, s.Causes, s.Problem = pool.Texts(a.blockers), nil, r.wrongOnNode()
	for i, c := range r.ranked() {
		if i == 0 {
			s.Problem = c.Words
		}
		told := status.Cause{Kind: c.Kind.String(), Object: c.Object, Slots: c.Slots, What: c.Words}
		if c.Next > now {
			told.Next = a.Wall().Add(c.Next - now).Round(time.Second) // else each tick would write the status anew
		}
		s.Causes = append(s.Causes, told)
	}
}

// ranked returns what keeps the node from doing its work, or from addresses that pods wait for,
// the cause that counts first.
func (r reasons) ranked() (list []pool.Cause) {
	s := r.status
	if about, refused := r.refusal(); refused {
		c := r.backoffs.because(about)
		c.Words = "cloud: " + r.backoffs[about].why()
		list = append(list, c)
	} else if !r.view.known && !r.waits {
		list = append(list, pool.Cause{Kind: pool.UnderWay, Words: "cloud has not answered yet"})
	}
	if r.cache != "" {
		list = append(list, pool.Cause{Kind: pool.CacheUnusable, Next: r.backoffs[of(rebuilds)].until, Words: r.cache})
	}
	if len(r.links.awaited) > 0 {
		list = append(list, pool.Cause{Kind: pool.LinkMissing, Object: strings.Join(r.links.awaited, ","), Words: r.links.missing()})
	}
	if len(s.Unlinked) > 0 {
		list = append(list, pool.Cause{Kind: pool.LinkMissing, Object: strings.Join(r.links.ids(), ","), Words: strings.Join(s.Unlinked, "; ")})
	}
	if wrong := cmp.Or(strings.Join(r.links.wrong, "; "), r.vpc); wrong != "" {
		list = append(list, pool.Cause{Kind: pool.SetupFailed, Words: wrong})
	}
	if s.Most == 0 && r.sized { // an agent that ends before that knows nothing of room
		list = append(list, pool.Cause{Kind: pool.AddressLimit, Words: r.view.noRoom(r.families)})
	}
	if s.Addresses.Free == 0 && s.Waiters > 0 {
		list = append(list, r.short()...)
	}
	told := map[pool.Cause]bool{} // one thing may be known from two sides
	return slices.DeleteFunc(pool.Rank(list), func(c pool.Cause) bool {
		key := pool.Cause{Kind: c.Kind, Object: c.Object}
		was := told[key]
		told[key] = true
		return was
	})
}

// short returns why pods that wait get no addresses. What the plan says of itself counts where
// nothing else is known: it knows nothing of what the cloud said.
func (r reasons) short() (list []pool.Cause) {
	s := r.status
	if c := r.noENI(); c.Kind != 0 {
		list = append(list, explained(c))
	}
	quota := r.backoffs.cause(newENIsIn(""), r.now)
	if quota.Kind != 0 {
		list = append(list, explained(quota))
	} else if s.Exhausted != "" {
		list = append(list, pool.Cause{Kind: pool.SubnetFull, Object: s.Exhausted, Slots: s.Waiters, Next: r.look,
			Words: "no addresses left in subnet " + s.Exhausted + ": name another one of the node's zone in cloud.subnets or cloud.subnetTags"})
	}
	if len(s.Held) > 0 {
		list = append(list, pool.Cause{Kind: pool.HeldByOthers, Slots: len(s.Held), Words: heldProblem(s.Held)})
	}
	for _, c := range r.causes {
		// Another subnet, which people would be told to name, helps new ENIs alone.
		if quota.Kind == 0 || c.Kind != pool.SubnetFull {
			list = append(list, explained(c))
		}
	}
	if len(list) == 0 && len(r.blockers) > 0 {
		c := pool.Rank(slices.Clone(r.blockers))[0]
		c.Words = strings.Join(s.Blockers, "; ")
		list = append(list, c)
	}
	return list
}

// explained returns the cause with what a person can do about it.
func explained(c pool.Cause) pool.Cause {
	c.Words = health.Explain([]health.Cause{{Reason: c.Kind.Reason(), What: c.Words}})
	return c
}

// refusal returns what the cloud refuses the node: a class of calls, or what a person has to
// grant.
func (r reasons) refusal() (scope, bool) {
	for _, c := range [...]class{grows, looks, gives} {
		if r.backoffs.stands(of(c), r.now) {
			return of(c), true
		}
	}
	for _, s := range r.backoffs.scopes() {
		if h := r.backoffs[s]; s.class == grows && cloud.Kind(h.err) == cloud.ErrForbidden && h.until+quiet > r.now {
			return s, true
		}
	}
	return scope{}, false
}

// wrongOnNode says what is wrong with the node itself, "" if nothing is. It keeps no address away.
func (r reasons) wrongOnNode() string {
	s := r.status
	return cmp.Or(r.backoffs[of(compares)].why(), r.backoffs[of(adopts)].why(), r.backoffs[of(shapes)].why(),
		strings.Join(s.Misrouted, "; "), strings.Join(s.Blocked, "; "), undoneProblem(s.Undone),
		r.backoffs[of(notices)].why(), r.backoffs[of(ticks)].why())
}

// why is what a pod without an address is told beside the pool's own numbers: one cause, and when
// it is tried again.
func (a *Agent) why() string {
	s := &a.status
	text := fmt.Sprintf("target %d, at most %d", s.Target, s.Most)
	if len(s.InFlight) > 0 {
		text += ", under way: " + s.InFlight[0]
	}
	switch {
	case s.Problem != "":
		text += ", problem: " + s.Problem
	case len(s.Blockers) > 0:
		text += ", " + s.Blockers[0]
	}
	if next := s.NextTry(a.Wall()); next != "" {
		text += ", next try " + next
	}
	return text
}
