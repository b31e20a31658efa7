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
	s := &a.status
	s.Blockers, s.Causes, s.Problem = pool.Texts(a.blockers), nil, a.wrongOnNode()
	for i, c := range a.ranked(now) {
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
func (a *Agent) ranked(now time.Duration) (list []pool.Cause) {
	s := &a.status
	if r, refused := a.refusal(now); refused {
		c := a.backoffs.because(r)
		c.Words = "cloud: " + a.backoffs[r].why()
		list = append(list, c)
	} else if !a.view.known {
		list = append(list, pool.Cause{Kind: pool.UnderWay, Words: "cloud has not answered yet"})
	}
	if a.view.known && (a.bookErr != nil || a.rebuildFails()) {
		list = append(list, pool.Cause{Kind: pool.CacheUnusable, Next: a.backoffs[of(rebuilds)].until, Words: "node cache: " + a.cacheProblem()})
	}
	if len(a.links.awaited) > 0 {
		list = append(list, pool.Cause{Kind: pool.LinkMissing, Object: strings.Join(a.links.awaited, ","), Words: a.links.missing()})
	}
	if len(s.Unlinked) > 0 {
		list = append(list, pool.Cause{Kind: pool.LinkMissing, Object: strings.Join(a.links.ids(), ","), Words: strings.Join(s.Unlinked, "; ")})
	}
	if wrong := cmp.Or(strings.Join(a.links.wrong, "; "), a.wrongVPC); wrong != "" {
		list = append(list, pool.Cause{Kind: pool.SetupFailed, Words: wrong})
	}
	if s.Most == 0 && a.sized { // an agent that ends before that knows nothing of room
		list = append(list, pool.Cause{Kind: pool.AddressLimit, Words: a.noRoom()})
	}
	if s.Addresses.Free == 0 && s.Waiters > 0 {
		list = append(list, a.short(now)...)
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
func (a *Agent) short(now time.Duration) (list []pool.Cause) {
	s := &a.status
	if c := a.noENI(now); c.Kind != 0 {
		list = append(list, explained(c))
	}
	quota := a.backoffs.cause(newENIsIn(""), now)
	if quota.Kind != 0 {
		list = append(list, explained(quota))
	} else if s.Exhausted != "" {
		list = append(list, pool.Cause{Kind: pool.SubnetFull, Object: s.Exhausted, Slots: s.Waiters, Next: a.lookDue(now),
			Words: "no addresses left in subnet " + s.Exhausted + ": name another one of the node's zone in cloud.subnets or cloud.subnetTags"})
	}
	if len(s.Held) > 0 {
		list = append(list, pool.Cause{Kind: pool.HeldByOthers, Slots: len(s.Held), Words: heldProblem(s.Held)})
	}
	for _, c := range a.causes {
		// Another subnet, which people would be told to name, helps new ENIs alone.
		if quota.Kind == 0 || c.Kind != pool.SubnetFull {
			list = append(list, explained(c))
		}
	}
	if len(list) == 0 && len(a.blockers) > 0 {
		c := pool.Rank(slices.Clone(a.blockers))[0]
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
func (a *Agent) refusal(now time.Duration) (scope, bool) {
	for _, c := range [...]class{grows, looks, gives} {
		if a.backoffs.stands(of(c), now) {
			return of(c), true
		}
	}
	for _, s := range a.backoffs.scopes() {
		if h := a.backoffs[s]; s.class == grows && cloud.Kind(h.err) == cloud.ErrForbidden && h.until+quiet > now {
			return s, true
		}
	}
	return scope{}, false
}

// wrongOnNode says what is wrong with the node itself, "" if nothing is. It keeps no address away.
func (a *Agent) wrongOnNode() string {
	s := &a.status
	return cmp.Or(a.backoffs[of(compares)].why(), a.backoffs[of(adopts)].why(), a.backoffs[of(shapes)].why(),
		strings.Join(s.Misrouted, "; "), strings.Join(s.Blocked, "; "), undoneProblem(s.Undone),
		a.backoffs[of(notices)].why(), a.backoffs[of(ticks)].why())
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
