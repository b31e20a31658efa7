package operator

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/placement"
	"github.com/enipool/enipool/pkg/pool"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// subnet is one as the operator knows it.
type subnet struct {
	object  *crd.Subnet // nil as long as there is none
	older   *crd.Subnet // that the watch told of last, if it is older than object
	place   cloud.Place
	lacking int           // describes in a row that did not show it
	began   time.Duration // when the last describe that showed it began
	state   placement.Isolation
	moves   []*move
	sums    *moved // of the moves that count, nil after a change
	emptied
	kept kept // ranges that are reserved in the cloud
	named
	toldSubnet
}

// named is what topologies say of a subnet.
type named struct {
	topologiesSay bool           // all were told of
	ofTopologies  []netip.Prefix // are to be reserved in the cloud
	text          string         // the same
}

// move is what a call takes of a subnet's addresses, or gives it back: below zero.
type move struct {
	count  int
	ended  time.Duration // 0 while it is under way
	before bool          // the last refusal knew of it
}

// moved is what calls have taken of a subnet and given back since the last describe, with what those under way are to take.
type moved struct{ granted, released int }

// sum returns what the moves come to, without those that the last refusal knew of if only later ones count. It is worked out again
// when one of them has changed.
func (s *subnet) sum(later bool) moved {
	if s.sums != nil && !later {
		return *s.sums
	}
	var sums moved
	for _, m := range s.moves {
		switch {
		case m.ended > 0 && m.ended < s.began, later && m.before:
		case m.count > 0:
			sums.granted += m.count
		case m.ended > 0:
			sums.released -= m.count
		}
	}
	if !later {
		s.sums = &sums
	}
	return sums
}

// emptied is what the last refusal for want of addresses says: that there was none, whatever the describe before it showed. For a while
// only what was released since counts as there.
type emptied struct {
	at    time.Duration // 0: there was none
	until time.Duration
	is    bool
}

// noteRefused takes in that the cloud had no address left.
func (s *subnet) noteRefused(now time.Duration) {
	s.state = s.state.Refused(now)
	s.emptied = emptied{max(now, 1), s.state.RetryAt, true}
	for _, m := range s.moves {
		m.before = m.ended > 0 || m.count > 0
	}
}

// wasEmpty tells whether it was refused since the last describe.
func (s *subnet) wasEmpty() bool { return s.emptied.at > 0 && s.emptied.at >= s.began }

// isDescribed tells whether the cloud shows the subnet. Once may be a lagging answer.
func (s *subnet) isDescribed() bool { return s.place.ID != "" && s.lacking < 2 }

// takes notes that a call is to take addresses.
func (s *subnet) takes(count int) *move {
	m := &move{count: count}
	s.moves, s.sums = append(s.moves, m), nil
	return m
}

// settings returns what people say of it.
func (s *subnet) settings() placement.Settings {
	if s.object == nil {
		return placement.Settings{Use: placement.Disabled} // what people say of it is not known yet
	}
	spec := s.object.Spec
	return placement.Settings{Use: placement.Use(spec.Use), Weight: int(spec.Weight), NodeSelector: spec.NodeSelector,
		KeepFree: int(spec.KeepFree), IsolateBelow: int(spec.IsolateBelow)}
}

// forPlacement returns what placement goes by.
func (s *subnet) forPlacement(attached []placement.Target) placement.Subnet {
	return s.placed(attached, s.emptied.is)
}

// placed is that with what a describe showed, or with nothing but what came since the last refusal.
func (s *subnet) placed(attached []placement.Target, empty bool) placement.Subnet {
	p := placement.Subnet{ID: s.place.ID, Zone: s.place.Zone, Settings: s.settings(), Free: s.place.Free, Attached: attached,
		State: s.state.State, RetryAt: s.state.RetryAt, Described: s.isDescribed() && s.place.New}
	if p.State == "" {
		p.State = placement.Ready
	}
	if empty {
		p.Free = 0
	}
	sum := s.sum(empty)
	p.Granted, p.Released = sum.granted, sum.released
	return p
}

// forPlan returns the subnet as the plan of a node knows it: room is for new ENIs and those that are there alike.
func forPlan(p placement.Subnet, n placement.Node, now time.Duration) pool.Subnet {
	s := pool.Subnet{ID: p.ID, Free: max(0, p.Room())}
	switch {
	case p.State == placement.Full && now < p.RetryAt:
		s.Blocked = pool.Cause{Kind: pool.SubnetFull, Object: p.ID, Next: p.RetryAt, Words: fmt.Sprintf("subnet %s has no free address", p.ID)}
	case p.State == placement.Low:
		s.NoNew = pool.Cause{Kind: order.Isolated, Object: p.ID, Words: fmt.Sprintf("subnet %s has %d addresses left and gets no new ENI below %d", p.ID, p.Room(), p.IsolateBelow)}
	}
	// Whether it is for the node at all: what keeps it from being used now is said above.
	p.State = placement.Ready
	s.New = p.For(n, now)
	return s
}

// tell returns the object with its next status, and whether that says anything new.
func (s *subnet) tell(p placement.Subnet, counts portion, now order.Moment) (*crd.Subnet, bool) {
	next := s.object.DeepCopy()
	status := &next.Status
	if s.place.ID != "" {
		status.VPC, status.Zone, status.Free = s.place.VPC, s.place.Zone, int32(s.place.Free)
		if s.place.V4Net.IsValid() {
			status.V4 = s.place.V4Net.String()
		}
		if s.place.V6Net.IsValid() {
			status.V6 = s.place.V6Net.String()
		}
	}
	status.Owed, status.Room = int32(p.Owed()), int32(p.Room())
	status.Interfaces, status.Addresses = int32(counts.interfaces), int32(counts.addresses)
	wall := func(at time.Duration) *metav1.Time {
		return &metav1.Time{Time: now.Wall.Add(at - now.Mono).Truncate(time.Second)}
	}
	// What people say comes before what the cloud shows, and that before what it refused.
	status.FullSince, status.RetryAt = nil, nil
	switch {
	case p.Use == placement.Disabled:
		status.State = "Disabled"
	case !s.isDescribed():
		status.State = "Missing"
	default:
		status.State = string(p.State)
		if p.State == placement.Full {
			status.FullSince, status.RetryAt = wall(s.state.Since), wall(s.state.RetryAt)
		}
	}
	if s.place.ID != "" {
		status.DescribedAt = wall(s.began)
	}
	s.kept.tell(next, now.Wall)
	return next, !sameSubnet(s.object.Status, *status)
}

// sameSubnet tells whether a status says nothing new: times alone cause no write.
func sameSubnet(a, b crd.SubnetStatus) bool {
	a.DescribedAt, b.DescribedAt, a.RetryAt, b.RetryAt, a.FullSince, b.FullSince = nil, nil, nil, nil, nil, nil
	return saysSameKept(a, b) && a.VPC == b.VPC && a.Zone == b.Zone && a.V4 == b.V4 && a.V6 == b.V6 && a.Free == b.Free && a.Owed == b.Owed && a.Room == b.Room &&
		a.Interfaces == b.Interfaces && a.Addresses == b.Addresses && a.State == b.State
}
