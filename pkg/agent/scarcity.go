package agent

import (
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/pool"
	"github.com/enipool/enipool/pkg/scale"
)

const (
	// quiet is how long a subnet must not have been full for the node to stop sparing
	// its addresses: without it the nodes of a cluster would swing together.
	quiet = time.Minute

	// longestQuiet bounds how long that becomes: it doubles each time that the subnet is
	// full again soon after the node took its spare addresses back.
	longestQuiet = 16 * time.Minute

	// emptyDescribes is how many describes in a row must show a subnet without
	// addresses before a node that got all it asked for releases spare ones for others.
	// One is not enough: as long as nobody lacks any, all nodes would release theirs and
	// take them again, together.
	emptyDescribes = 3
)

// scarcity is what the node knows of a subnet that has or had no addresses left.
type scarcity struct {
	at      time.Duration // when it was last heard to have none
	full    bool          // it is spared: it refused an address, or was empty for long enough
	refused bool          // it refused one: this node itself lacks some
	empty   int           // describes that showed none, with others between them for less than untaken
	some    time.Duration // since when they show some, 0 if the newest did not
	enough  int           // how many of those make it full: drawn, so that nodes don't act together
	offer   offer         // what the node released for others
	keeps   int           // where others have room: slots that the node keeps there
	quiet   time.Duration // how long it is spared after at
	ended   time.Duration // when it was last spared no more
}

// scarcityOf returns what is known of the subnet, to be added to.
func (a *Agent) scarcityOf(id string) *scarcity {
	s := a.scarce[id]
	if s == nil {
		s = &scarcity{keeps: all}
		a.scarce[id] = s
	}
	return s
}

// noteRefusal notes that the subnet refused an address for having none.
func (a *Agent) noteRefusal(id string, now time.Duration) {
	s := a.scarcityOf(id)
	s.spare(now)
	s.at, s.refused = now, true
}

// noteEmptySubnets notes which subnets a describe showed without addresses.
func (a *Agent) noteEmptySubnets(d described) {
	for _, n := range d.subnets {
		s := a.scarce[n.ID]
		switch {
		case n.Free > 0 && s != nil:
			if s.sawSome(d.start) {
				a.backoffs.clear(fullSubnet(n.ID))
				a.eager.looks = 0
			}
		case n.Free <= 0:
			a.scarcityOf(n.ID).sawEmpty(d.start, a.Rand.IntN(emptyDescribes), a.view.inBlocks(), a.view.hides(n))
		}
	}
}

// sawEmpty notes a describe that showed no addresses. Where prefixes are taken that
// means little: the subnet may reserve for them what it does not show. Where it says that
// it may, only a refusal keeps it spared, or it would be spared for ever.
func (s *scarcity) sawEmpty(at time.Duration, jitter int, prefixes, hides bool) {
	if s.empty == 0 {
		s.enough = emptyDescribes + jitter
	}
	s.empty++
	s.some = 0
	if s.empty >= s.enough && !prefixes {
		s.spare(at)
		s.offer.noteTaken(at)
	}
	if !hides {
		s.at = at
	}
}

// sawSome notes a describe that showed addresses, and tells whether that is news: then who was
// refused some need not wait out its back-off. What another node released for those that wait
// is there until one of them sees it: nothing more is released meanwhile, and if it is gone
// within untaken, all that was seen of the subnet before still holds.
func (s *scarcity) sawSome(at time.Duration) (news bool) {
	if news = s.some == 0 && s.empty > 0; s.some == 0 {
		s.some = at
	}
	s.offer.noteUntaken(at - s.some)
	if at-s.some >= untaken {
		s.empty = 0
	}
	return news
}

// spare begins to leave the subnet's addresses to those that need them.
func (s *scarcity) spare(now time.Duration) {
	switch {
	case s.full:
		return
	case s.ended > 0 && now-s.ended < longestQuiet:
		s.quiet = min(2*s.quiet, longestQuiet)
	default:
		s.quiet = quiet
	}
	s.full = true
}

// isFull tells whether the subnet had no address when one was asked for, or in several
// describes in a row, and whatever was heard of it since quiet before now was that it
// still has none.
func (a *Agent) isFull(id string, now time.Duration) bool {
	s := a.scarce[id]
	if s == nil || !s.full {
		return false
	}
	n, known := a.view.subnet(id)
	return now-s.at < quiet || known && n.Free <= 0 && !a.view.hides(n)
}

// isScarce tells whether the subnet is spared, or may soon be. What is kept of one that was full once
// does not count.
func (s *scarcity) isScarce() bool { return s.full || s.empty > 0 }

// anyScarce tells whether a subnet is.
func (a *Agent) anyScarce() bool {
	for _, s := range a.scarce {
		if s.isScarce() {
			return true
		}
	}
	return false
}

// spareAddresses adds to the observation whether every subnet that could give the node
// more is full, and then how many addresses the node keeps. That a subnet has none left
// is not enough: as long as no node lacks any, all would let go of theirs and take them
// again, together. For the same reason a node that lacks none itself releases two, then four,
// then eight of its spare addresses, each time after a describe that shows that the ones before
// are gone, and takes them back only where there is room for all of them.
func (a *Agent) spareAddresses(o *scale.Observation, sizing scale.Config, s pool.Snapshot, now time.Duration) {
	var full []*scarcity
	candidates := a.candidates(s)
	for _, id := range candidates {
		c := a.scarce[id]
		if c == nil || !c.full {
			continue
		}
		_, usual := sizing.Decide(*a.mem.Scale, now, *o)
		if c.endIfRoom(a.view, id, usual.Target-o.Owned, now); c.full {
			full = append(full, c)
		}
	}
	if o.Exhausted = len(full) > 0 && len(full) == len(candidates); !o.Exhausted {
		return
	}
	refused := slices.ContainsFunc(full, func(c *scarcity) bool { return c.refused })
	if refused && a.view.inBlocks() {
		return // what describes show tells little of blocks: whether others wait for some
	}
	a.countAboveWatermark(o.Owned)
	o.Keep = a.mem.Scale.Target
	if comes(s) {
		return
	}
	if refused { // so others may be, too: it asks for no more than its pods need, and does not wait for those that left
		o.Keep = min(o.Keep, o.Owned)
	}
	if o.Releasing == 0 {
		need := max(o.Demand, a.mem.Scale.Peak(heed(sizing, refused))) + sizing.ExhaustedSpare
		o.Keep = keepAfter(full, o.Keep, o.Owned, need)
	}
}

// countAboveWatermark makes part of the target what a node that has so many may have too many: it goes step by step, too.
func (a *Agent) countAboveWatermark(owned int) {
	if conf := a.conf.Pool; !a.exhausted && conf.Mode == pool.BestEffort {
		a.mem.Scale.Target = max(a.mem.Scale.Target, min(owned, a.mem.Scale.Target+conf.MaxAboveWatermark))
	}
}

// endIfRoom stops sparing a subnet that has been quiet and has room for all that the
// node would take then. One that would take nothing finds room in what another node has
// released for pods that wait: it has to have seen some for longer. One that would take some leaves as many
// as an offer begins with: they may be its own, which it would release again.
func (s *scarcity) endIfRoom(v view, id string, missing int, now time.Duration) {
	n, known := v.subnet(id)
	hides := !known || v.hides(n)
	if now-s.at < s.quiet || missing <= 0 && s.empty > 0 && !hides {
		return
	}
	if hides || missing <= 0 && n.Free > 0 || n.Free >= missing+firstOffer {
		s.full, s.refused, s.empty, s.offer, s.keeps, s.ended = false, false, 0, offer{}, all, now
	}
}

// candidates returns the subnets that could give the node more addresses: those of its ENIs, those
// being made among them, and those where a new one may lie if it may have one more.
func (a *Agent) candidates(s pool.Snapshot) []string {
	var ids []string
	more := a.conf.Pool.Full(s) == ""
	for _, n := range s.Subnets {
		if n.New && more {
			ids = append(ids, n.ID)
		}
	}
	for _, e := range s.ENIs {
		if e.Index >= a.firstIndex() && !a.isFilled(e.Index, s) && !slices.Contains(ids, e.Subnet) {
			ids = append(ids, e.Subnet)
		}
	}
	for _, p := range s.Pending {
		if !slices.Contains(ids, p.Subnet) {
			ids = append(ids, p.Subnet)
		}
	}
	return ids
}

// isFilled tells whether the ENI carries as many addresses of a family as it may: it gives the node no more.
func (a *Agent) isFilled(index int, s pool.Snapshot) bool {
	if a.cached == nil {
		return false
	}
	for _, f := range s.Families {
		n := 0
		for i := range a.cached.Addresses {
			if line := &a.cached.Addresses[i]; line.ENI == index && line.Family() == f {
				n++
			}
		}
		if n >= s.Limits.PerENI(f) {
			return true
		}
	}
	return false
}
