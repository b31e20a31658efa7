package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/order"
)

// zoneNamer is a Region whose cloud has several names for a zone.
type zoneNamer interface {
	// ZoneName returns the one that Subnets has.
	ZoneName(name string) string
}

// zoneName returns the name that the subnets of a zone have: all that the term compares has that one.
func (o *Operator) zoneName(zone string) string {
	if r, can := o.o.Region.(zoneNamer); can {
		return r.ZoneName(zone)
	}
	return zone
}

// noteLimits keeps when the first of the calls under way has to have ended.
func (t *term) noteLimits() {
	var first time.Time
	for j := range t.running {
		if at := t.lead.Acquired.Add(j.began + j.limit()); first.IsZero() || at.Before(first) {
			first = at
		}
	}
	t.mu.Lock()
	t.oldest = first
	t.mu.Unlock()
}

// together is how long a describe waits for other nodes that need one.
const together = time.Second

// describeMembers begins a describe if one is due, and returns how long until then. Nodes that need one are described together, with all others
// if that is due too; but while describes of everything fail those of some nodes go on.
func (t *term) describeMembers(now time.Duration) time.Duration {
	if t.looks.under {
		return patience // its end wakes the loop
	}
	whole := max(t.looks.all, t.looks.whole.until)
	begin := whole
	if at, _, is := t.describe.next(); is {
		begin = min(begin, max(at+together, t.looks.some.until))
	}
	if begin > now {
		return begin - now
	}
	if now < whole {
		t.look(t.describe.take(now), false, false)
	} else if first := t.firstLook(); len(first) > 0 {
		t.look(first, false, true) // all others follow
	} else {
		t.look(t.describe.take(now), true, true)
	}
	return patience
}

// mostEarly is how many nodes a term's first describe has.
const mostEarly = 100

// firstLook returns the nodes that are described once in a term before everything is: with thousands of nodes that takes as long as their pods
// have waited. Those whose pods wait come first, the longest of them at the beginning; then those that have no ENI yet, whose agents can't tell
// what they need before a describe has shown their instance.
func (t *term) firstLook() []string {
	if t.looks.early || !t.looks.shown.IsZero() {
		return nil
	}
	t.looks.early = true
	waiting, bare, now := []string{}, []string{}, t.now()
	since := map[string]time.Duration{}
	for name, node := range t.members {
		// Where there is no instance to describe, or the agent calls, nothing comes of it.
		if node.shown != nil || node.client == nil || !node.isKnown() || node.network.Spec.Mode != crd.Operator {
			continue
		}
		if t.starving[name] != nil {
			waiting, since[name] = append(waiting, name), node.waitingFrom(now)
		} else if len(node.network.Status.ENIs) == 0 {
			bare = append(bare, name)
		}
	}
	slices.SortFunc(waiting, func(a, b string) int {
		return cmp.Or(cmp.Compare(since[a], since[b]), cmp.Compare(a, b))
	})
	slices.Sort(bare)
	names := append(waiting, bare...)
	return names[:min(len(names), mostEarly)]
}

// seen is what a describe has brought.
type seen struct {
	began     order.Moment
	views     map[string]cloud.View // by instance
	limits    map[string]eni.Limits // by node
	types     map[string]string     // of those that were asked for limits, as they were then
	unlimited map[string]error      // why a node's are not known
	places    []cloud.Place
	asked     bool // for the places
	all       bool // everything was described
	whole     bool // everything was to be
	err       error
}

// look describes nodes, or everything, beside the loop; the subnets too where places says so.
func (t *term) look(names []string, all, places bool) {
	t.looks.under = true
	members, instances := map[string]*member{}, []string{}
	asked := names
	if all {
		names = slices.Collect(maps.Keys(t.members))
	}
	for _, name := range names {
		if node := t.members[name]; node != nil && node.client != nil && !node.left {
			members[name] = node
			instances = append(instances, node.node.Instance)
		}
	}
	if all {
		for name, guest := range t.guests {
			members[name] = guest
			instances = append(instances, guest.node.Instance)
		}
	}
	clients, types := map[string]cloud.Cloud{}, map[string]string{}
	for name, node := range t.unlimited(members, all) {
		clients[name], types[name] = node.client, node.node.Type
	}
	began := t.now() // before the first request: what a call does meanwhile the describe may lack
	t.under.Go(func() {
		ctx, cancel := context.WithTimeout(t.ctx, longJob)
		defer cancel()
		s := t.ask(ctx, instances, clients, types, all, places)
		s.began, s.types = began, types
		t.post(func(t *term) {
			t.looked(s, members)
			for _, name := range asked { // of which it has perhaps told nothing
				t.dirty[name] = true
			}
		})
	})
}

// ask makes the describes, of the subnets too where places says so. What an instance can carry comes after its ENIs: those that are left out take room.
func (o *Operator) ask(ctx context.Context, instances []string, clients map[string]cloud.Cloud, types map[string]string, all, places bool) (s seen) {
	s = seen{all: all, whole: all, asked: places}
	if len(instances) > 0 {
		if s.views, s.err = o.o.Region.Look(ctx, instances); s.err != nil {
			return s
		}
	}
	s.limits, s.unlimited = o.askLimits(ctx, clients, types)
	if places {
		var err error
		if s.places, err = o.o.Region.Subnets(ctx); err != nil {
			s.err, s.all = cmp.Or(s.err, err), false
		}
	}
	return s
}

// askLimits asks what instances can carry: for all types in a few requests where the cloud tells that, else instance by instance. One of which
// it is not told does not keep the others from theirs.
func (o *Operator) askLimits(ctx context.Context, clients map[string]cloud.Cloud, types map[string]string) (limits map[string]eni.Limits, unknown map[string]error) {
	limits, unknown = map[string]eni.Limits{}, map[string]error{}
	byType := map[string]eni.Limits{}
	if o.o.Region.Does().Types {
		names := slices.Sorted(maps.Values(types))
		names = slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
		// Where types are refused the instances tell, for those that are asked in time.
		byType, _ = o.o.Region.Limits(ctx, names)
	}
	for name, client := range clients {
		l, known := byType[types[name]]
		if !known {
			var err error
			if l, err = client.Limits(ctx); err != nil {
				unknown[name] = err
				continue
			}
		}
		limits[name] = l
	}
	return limits, unknown
}

// looked takes in what a describe has brought.
func (t *term) looked(s seen, members map[string]*member) {
	now := t.now()
	t.looks.under, t.looks.last = false, s.err
	for name, node := range members {
		if l, known := s.limits[name]; known && s.types[name] != node.node.Type {
			t.dirty[name] = true // it was asked about another type
		} else if known {
			node.calm = node.calm && node.limits == l
			node.limits, node.recalled, node.unlimited, node.noLimits = l, false, absence{}, nil
		} else if err := s.unlimited[name]; err != nil {
			node.unlimited, node.noLimits = node.unlimited.add(s.began.Mono), err
			t.dirty[name] = true
		}
		view, is := s.views[node.node.Instance]
		if is {
			t.noteChanges(node, view)
		}
		switch {
		case t.guests[name] == node && is:
			node.shown = &shown{s.began, view}
		case t.members[name] != node || !node.isKnown() || !is:
		case node.calm && node.shown != nil && reflect.DeepEqual(node.shown.view, view):
			node.shown = &shown{s.began, view} // nothing follows from that
		default:
			node.noteDescribe(&shown{s.began, view}, node.view.Status)
			t.dirty[name] = true
		}
	}
	for name, node := range t.members {
		if node.left {
			t.dirty[name] = true // it waited for the end of the describe
		}
	}
	if s.err != nil {
		t.lookFailed(s, now.Mono)
		return
	}
	if t.looks.some = (misses{}); s.all {
		t.looks.whole = misses{}
	}
	if t.looks.failed != nil && t.looks.whole.count == 0 {
		t.looks.failed = nil
		t.dirtyAll()
	}
	if s.asked {
		t.tellNoPlace(len(s.places) == 0)
		t.takePlaces(s)
	}
	if s.all {
		t.looks.all, t.looks.shown, t.looks.begun = s.began.Mono+t.o.Describe, s.began.Wall, s.began.Mono
		t.o.Meter.Described(now.Mono - s.began.Mono)
		t.leaveToOthers(s.began.Mono)
		t.compareNames()
		t.findDrifts(now)
		for name, node := range t.members {
			if !node.calm { // what subnets have left may be what it waits for
				t.dirty[name] = true
			}
		}
	}
}

// tellNoPlace says once that there is no subnet. Nodes hear of it as late as they need an ENI: what they have still fills up.
func (t *term) tellNoPlace(none bool) {
	if none && !t.looks.noPlace {
		t.o.Log.Warn("no node gets a new ENI: the cloud shows no subnet that cloud.subnets or cloud.subnetTags of operator.yaml names; `enipoolctl migrate check` says what it shows")
	}
	t.looks.noPlace = none
}

// tellAfter is for how long describes fail before the nodes are told: all of their objects are written then, and again when describes
// succeed.
const tellAfter = time.Minute

// lookFailed takes in that a describe failed. Nodes are told once, whatever else the next ones fail of.
func (t *term) lookFailed(s seen, now time.Duration) {
	failures := &t.looks.some
	if s.whole {
		failures = &t.looks.whole
	}
	*failures = failures.add(now)
	t.o.Log.Warn("a describe failed; it is tried again, and `enipoolctl migrate check` says what the operator may do in the cloud", "error", s.err)
	if errors.Is(s.err, cloud.ErrThrottled) {
		t.o.Gate.noteThrottled(t.action("Page", -1), retryAfter(s.err))
	}
	if failures.count >= 2 && now-failures.since >= tellAfter && t.looks.failed == nil {
		why := causeOf(s.err)
		why.Words = fmt.Sprint("describes fail: ", s.err)
		t.looks.failed = &why
		t.dirtyAll()
	}
}

func (t *term) dirtyAll() {
	for name := range t.members {
		t.dirty[name] = true
	}
}
