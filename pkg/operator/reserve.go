package operator

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/placement"
	"github.com/enipool/enipool/pkg/quota"
	"k8s.io/apimachinery/pkg/types"
)

// kept is what is known of the ranges of a subnet that are reserved in the cloud.
type kept struct {
	compared bool                // they were compared with what the object names, in this term, or that was tried
	version  version             // of the object then
	at       time.Duration       // when to do that again, 0: not before the object changes
	failures int                 // in a row
	unnamed  bool                // ranges may be reserved though no object says so: one may have been deleted
	listed   bool                // ranges is true
	ranges   []cloud.Reservation // those that are this cluster's or that the object names
	says     condition           // what the object says of them, the zero condition for nothing
}

// version is which object, with which spec, and which ranges topologies name.
type version struct {
	uid        types.UID
	generation int64
	topologies string
}

func (s *subnet) version() version { return version{s.object.UID, s.object.Generation, s.text} }

// keptDue returns when what the object names is to be compared with what is reserved. Nobody asks the cloud where no range is named and none was.
func (s *subnet) keptDue() (at time.Duration, is bool) {
	switch {
	case s.object == nil || s.object.DeletionTimestamp != nil || !s.isDescribed():
		return 0, false
	case s.kept.compared && s.kept.version == s.version():
		return s.kept.at, s.kept.at > 0
	}
	return 0, s.kept.unnamed || len(s.object.Spec.Reserve)+len(s.ofTopologies) > 0 || s.saysKept()
}

// saysKept tells whether the object says something of reserved ranges, or is about to.
func (s *subnet) saysKept() bool {
	return s.kept.says.Type != "" || s.object != nil && (len(s.object.Status.Reserved) > 0 || keptIn(s.object.Status).Type != "")
}

// reserve has what the Subnet objects name reserved in the cloud, one subnet after the other, and what they don't name any more no longer. It
// returns how long until there is something to do.
func (t *term) reserve(now time.Duration) time.Duration {
	wait := patience
	if t.reserves || t.o.Observe {
		return wait
	}
	for _, id := range slices.Sorted(maps.Keys(t.subnets)) {
		s := t.subnets[id]
		switch at, is := s.keptDue(); {
		case !is || t.claiming != nil && !s.topologiesSay: // what they name would end
		case at > now:
			wait = min(wait, at-now)
		default:
			t.reserveIn(id, s, now)
			return 0 // others may be due
		}
	}
	return wait
}

// reserveIn begins to reserve what a subnet's object names.
func (t *term) reserveIn(id string, s *subnet, now time.Duration) {
	of := s.version()
	want, err := wantedRanges(s)
	if err == nil && !t.o.Region.Does().Keeps && len(want) > 0 {
		err = errKeepsNone
	}
	if err != nil || !t.o.Region.Does().Keeps {
		s.kept = kept{compared: true, version: of, listed: s.kept.listed, ranges: s.kept.ranges, says: keptCondition(want, reserving{err: err}, of.generation)}
		if err == nil {
			s.kept.listed = true // nothing is reserved
		}
		t.tellSubnet(s)
		return
	}
	t.reserves = true
	// Nothing waits for it: it is of the last class.
	place := &ticket{Request: quota.Request{Node: "subnet " + id, Class: quota.Giving, Since: now}, name: "reserve"}
	t.under.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithValue(t.ctx, ticketKey{}, place), longJob)
		defer cancel()
		out := reserveRanges(ctx, t.o.Region, id, want)
		t.o.Gate.endJob(place)
		t.post(func(t *term) { t.endReserving(id, s, of, want, out, place) })
	})
}

// wantedRanges returns what a subnet's object and topologies name, or why that can't be reserved.
func wantedRanges(s *subnet) ([]netip.Prefix, error) {
	var list []netip.Prefix
	for _, text := range s.object.Spec.Reserve {
		in, err := netip.ParsePrefix(text)
		if err != nil || in != in.Masked() { // the API server has refused it before
			return nil, &badRange{"what is no range can't be reserved: " + text}
		}
		list = append(list, in)
	}
	list, err := placement.Ranges(append(list, s.ofTopologies...), s.place.V4Net, s.place.V6Net)
	if err != nil {
		return nil, &badRange{err.Error()}
	}
	return list, nil
}

// badRange is why what the object names can't be reserved, whatever the cloud has.
type badRange struct{ text string }

func (b *badRange) Error() string { return b.text }

// errKeepsNone: the cloud reserves no ranges.
var errKeepsNone = errors.New("this cloud reserves no ranges of subnets")

// reserving is what came of an attempt to have exactly the wanted ranges reserved.
type reserving struct {
	ranges []cloud.Reservation // that are reserved now
	listed bool                // ranges is true
	made   []netip.Prefix
	ended  []netip.Prefix
	plan   placement.Reserving
	err    error // the first one
}

// reserveRanges has exactly these ranges of a subnet reserved, as far as this cluster has reserved them and others let it.
func reserveRanges(ctx context.Context, region cloud.Region, subnet string, want []netip.Prefix) (out reserving) {
	if out.ranges, out.err = region.Reserved(ctx, subnet); out.err != nil {
		return out
	}
	out.listed = true
	var there []placement.Reserved
	for _, is := range out.ranges {
		there = append(there, placement.Reserved{Range: is.Range, Ours: is.Ours, Blocks: is.Blocks})
	}
	out.plan = placement.PlanReserving(want, there)
	// What follows a refusal for the rate would be refused too.
	goesOn := func() bool { return !errors.Is(out.err, cloud.ErrThrottled) && ctx.Err() == nil }
	note := func(err error) bool {
		if out.err == nil || errors.Is(err, cloud.ErrThrottled) {
			out.err = cmp.Or(err, out.err)
		}
		return err == nil
	}
	for _, in := range out.plan.End {
		if goesOn() && note(region.Unreserve(ctx, subnet, in)) {
			out.ended = append(out.ended, in)
		}
	}
	for _, in := range out.plan.Make {
		if goesOn() && note(region.Reserve(ctx, subnet, in)) {
			out.made = append(out.made, in)
		}
	}
	if len(out.made)+len(out.ended) > 0 {
		list, err := region.Reserved(ctx, subnet)
		out.ranges, out.listed = list, note(err)
	}
	return out
}

// firstRetry and longestRetry are when what failed is tried again, later each time.
const (
	firstRetry   = 30 * time.Second
	longestRetry = 10 * time.Minute
)

// endReserving takes in what came of it.
func (t *term) endReserving(id string, s *subnet, of version, want []netip.Prefix, out reserving, place *ticket) {
	t.reserves = false
	now := t.now().Mono
	if errors.Is(out.err, cloud.ErrThrottled) {
		t.o.Gate.noteThrottled(place.last, retryAfter(out.err))
	}
	// Until the next describe what is reserved now counts as taken: clouds leave it out of what is free.
	for _, in := range out.made {
		if in.Addr().Is4() {
			s.takes(placement.Size(in, max(s.place.Free, 0))).ended = max(now, 1)
		}
	}
	if len(out.made)+len(out.ended) > 0 {
		t.o.Log.Info("reserved ranges of a subnet were changed", "subnet", id, "made", out.made, "ended", out.ended)
	}
	k := kept{compared: true, version: of, listed: out.listed, says: keptCondition(want, out, of.generation)}
	for _, is := range out.ranges {
		if is.Ours || slices.Contains(want, is.Range) && !is.Blocks {
			k.ranges = append(k.ranges, is)
		}
	}
	switch {
	case place.unsent: // the cloud has said nothing
		k, k.at = s.kept, now+firstRetry
		k.compared, k.version = true, of
	case out.err != nil || len(out.plan.Barred) > 0:
		k.failures, k.at = s.kept.failures+1, now+min(longestRetry, firstRetry<<min(s.kept.failures, 5))
	case len(want) > 0:
		k.at = now + t.o.Describe // somebody may end it
	}
	if len(want) == 0 && !k.listed && !s.saysKept() { // nobody has asked for anything: a role without the right is fine
		k.says = condition{}
		if errors.Is(out.err, cloud.ErrForbidden) {
			k.at = 0
		}
	}
	s.kept = k
	t.tellSubnet(s)
}
