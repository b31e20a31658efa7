package agent

import (
	"cmp"
	"errors"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/health"
	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/pkg/pool"
	"github.com/enipool/enipool/pkg/status"
)

// tellCauses puts into the status what is wrong now, and returns what keeps the node from addresses,
// ranked: the first is what the metrics, an ADD's error, the condition and events are about too.
func (a *Agent) tellCauses(now time.Duration) []pool.Cause {
	s, r, m := &a.status, a.reasons(now), a.remedies()
	list, target := m.give(r.ranked()), m.give(a.targetCauses)
	s.TargetCauses, s.TargetNext, s.Causes, s.Problem = pool.Texts(target), time.Time{}, nil, r.wrongOnNode()
	if len(list) == 0 && len(target) > 0 { // it is what is told in place of a cause
		s.TargetCauses[0] = health.Explain(asFault(target[0]))
		if next := r.nextOf(target[0]); next > now {
			s.TargetNext = a.Wall().Add(next - now).Round(time.Second)
		}
	}
	for _, c := range list {
		told := status.Cause{Kind: c.Kind.String(), Object: c.Object, Slots: c.Slots, Reason: c.Kind.Reason(), What: health.Explain(asFault(c))}
		if c.Next > now {
			told.Next = a.Wall().Add(c.Next - now).Round(time.Second) // else each tick would write the status anew
		}
		s.Causes = append(s.Causes, told)
	}
	a.tellFull(list)
	if len(list) > 0 {
		s.Problem = s.Causes[0].What
	}
	return list
}

// nextOf returns when what the plan says of itself is tried again. Of subnets it knows only that they have no more.
func (r reasons) nextOf(c pool.Cause) time.Duration {
	if c.Kind == pool.SubnetFull && c.Next == 0 {
		return r.fullCause(c.Object).Next
	}
	return c.Next
}

// asFault is a cause as what the cluster is told.
func asFault(c pool.Cause) health.Cause {
	return health.Cause{Reason: c.Kind.Reason(), What: c.Words, Remedy: c.Todo}
}

// ranked returns what keeps the node from doing its work, or from addresses that pods wait for,
// the cause that counts first.
func (r reasons) ranked() []pool.Cause {
	s, list := r.status, r.failureCauses()
	switch {
	case len(list) > 0 || r.view.known:
	case r.view.operated:
		list = append(list, r.view.told...)
	case r.wait == untried:
		list = append(list, pool.Cause{Kind: pool.UnderWay, Next: r.look, Words: "cloud is not asked yet, and never answered an agent of this release with this configuration here"})
	case r.wait == noWait:
		list = append(list, pool.Cause{Kind: pool.UnderWay, Words: "cloud has not answered yet"})
	}
	list = append(list, r.toGrant()...)
	if r.cache.words != "" && !r.isUnbuilt() {
		list = append(list, r.noCache())
	}
	list = append(list, r.links.causes()...)
	if s.Most == 0 && r.sized { // an agent that ends before that knows nothing of room
		list = append(list, pool.Cause{Kind: pool.AddressLimit, Words: r.view.noRoom(r.families)})
	}
	if r.lacks() {
		list = append(list, r.short()...)
	}
	return pool.Rank(list)
}

// noCache is why the node cache can't be used. That it can't be built for this node is told as what it is: another
// name mends it, and nothing at the cache.
func (r reasons) noCache() pool.Cause {
	failed := r.backoffs[of(rebuilds)]
	if wrong, is := errors.AsType[*wrongInstanceError](failed.err); is {
		return pool.Cause{Kind: pool.WrongInstance, Next: failed.until, Words: wrong.Error()}
	}
	return pool.Cause{Kind: pool.CacheUnusable, Next: failed.until, Words: r.cache.words}
}

// isUnbuilt tells whether nothing else is wrong with the node cache than that the operator has not said yet what to build it
// from, as on a new node: people who read that it is missing would look for the fault on its disk.
func (r reasons) isUnbuilt() bool {
	return r.cache.missing && r.view.operated && !r.view.known && r.backoffs[of(rebuilds)].err == nil
}

// lacks tells whether pods have no address that is about to be theirs, or the cluster was told so and
// the next pod would have none.
func (r reasons) lacks() bool {
	return r.demand.unserved() > r.demand.free || r.status.Health.Faulty && r.demand.free == 0
}

// toGrant are calls about one object that the cloud forbids: a person has to allow them, also where
// others give the node addresses.
func (r reasons) toGrant() (list []pool.Cause) {
	for _, s := range r.backoffs.scopes() {
		if c := r.backoffs.cause(s, r.now); s.class == grows && c.Kind == pool.Forbidden {
			list = append(list, c)
		}
	}
	return list
}

// short returns why pods that wait get no addresses. What the plan says of itself counts where
// nothing else is known: it knows nothing of what the cloud said.
func (r reasons) short() (list []pool.Cause) {
	s := r.status
	if c := r.noENI(); c.Is() {
		list = append(list, c)
	}
	quota := r.backoffs.cause(newENIsIn(""), r.now)
	if quota.Is() {
		list = append(list, quota)
	}
	if len(s.Held) > 0 {
		list = append(list, pool.Cause{Kind: pool.HeldByOthers, Slots: len(s.Held), Words: heldProblem(s.Held)})
	}
	for _, c := range r.causes {
		// Another subnet, which people would be told to name, helps new ENIs alone.
		if !quota.Is() || c.Kind != pool.SubnetFull {
			list = append(list, c)
		}
	}
	if len(list) == 0 {
		return r.targetCauses
	}
	return list
}

// wrongOnNode says what is wrong with the node itself, "" if nothing is. It keeps no address away.
func (r reasons) wrongOnNode() string {
	s, releases := r.status, ""
	if r.backoffs.stands(of(gives), r.now) {
		releases = r.backoffs[of(gives)].why()
	}
	return cmp.Or(strings.Join(r.links.wrong, "; "), r.vpc, r.backoffs[of(compares)].why(), r.backoffs[of(shapes)].why(),
		strings.Join(s.Misrouted, "; "), strings.Join(s.Blocked, "; "), undoneProblem(s.Undone),
		r.backoffs[of(notices)].why(), r.backoffs[of(ticks)].why(), releases)
}

// why is what a pod without an address is told beside the pool's own numbers: one cause, and when
// it is tried again.
func (a *Agent) why() string {
	s := &a.status
	var text []string
	if a.sized { // else it knows neither
		text = append(text, nodecache.Sizing(s.Target, s.Most))
	}
	if len(s.InFlight) > 0 {
		text = append(text, "under way: "+s.InFlight[0])
	}
	switch {
	case s.Problem != "":
		text = append(text, "cause: "+s.Problem)
	case len(s.TargetCauses) > 0:
		text = append(text, s.TargetCauses[0])
	}
	// Beside a cause that counts more, too: it is why a pod whose packets nothing leads waits.
	if undone := undoneProblem(s.Undone); !strings.Contains(s.Problem, undone) {
		text = append(text, undone)
	}
	if next := s.NextTry(a.Wall()); next != "" {
		text = append(text, "next try "+next)
	}
	return strings.Join(text, ", ")
}
