package operator

import (
	"cmp"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/pool"
	"github.com/enipool/enipool/pkg/quota"
)

// member is one node as the operator knows it in its term.
type member struct {
	node Node
	object
	term     *order.Term
	limits   eni.Limits
	recalled bool // limits are those that the object had at the beginning
	shown    *shown
	deeds    []deed
	jobs     map[string]*job // calls under way, by what they change: an ENI, "" for one that is being made
	refusals
	absences
	going
	shares
	backed

	times
	writing bool
	calm    bool // nothing is to be done for it unless a describe, its object or its Node says something new
	client  cloud.Cloud
	noPlace pool.Cause // why an ENI that it needs has no place
	said    string     // what was logged last
	succession
}

// succession is who was before a member and what comes after it.
type succession struct {
	next  *crd.NodeNetwork // what comes after this member
	rival string           // the Node that has the same instance, and had it first
	left  bool             // the object or the instance is another one now: it goes when its calls have ended
}

// object is the newest copy of the node's object.
type object struct {
	network  *crd.NodeNetwork // nil if there is none
	view     order.View       // of it
	wrong    error            // why there is no view
	answered *answered        // what the API server has not kept of the last write, nil if it has kept all
	unsaid   bool             // of what calls and describes have told of its addresses it does not say all yet
}

// shares are what a node has to do with others of its subnets.
type shares struct {
	has      map[string]portion // of each subnet, as the tally has it
	wants    map[string]int     // addresses by subnet that pods wait for, of calls that have not begun
	asksBack int                // idle slots that it is asked to do without, all in all
	asksIn   []string           // the subnets in any of which what it is asked for last is to lie
	askedAt  time.Duration      // when it was asked for some last, 0: not in this term
	deaf     int64              // the generation of its spec when it had not answered in time, 0 for it had
	had      int                // slots that it had when its agent wrote the spec
}

// times are of what a node does.
type times struct {
	wrote    time.Duration // when the last write ended
	barred   time.Duration // until when none is tried: the last ones failed
	pause    time.Duration // for how long that was
	held     time.Duration // since when there is news that can wait, 0 if there is none
	repeated time.Duration // the pause before the last write, where the API server keeps less than is sent
	joined   time.Duration // since when it is seen Joining
	short    time.Duration // since when it has less than it asks for, 0 if it has not
	owing    time.Duration // since when it has something to release, 0 if it has not
	due      time.Duration // when to look at it again although nothing changed, 0: not before something does
	waits    waitingSince
	bare     time.Duration // since when its Node lacks its provider ID or its zone, 0 if it has both
}

// waitingSince is since when pods wait, once by the agent's clock and once by this process's.
type waitingSince struct {
	wall time.Time
	mono time.Duration
}

// absences are ENIs that describes may show or not show against the truth.
type absences struct {
	untold    absence                  // describes that told nothing of the node
	unlimited absence                  // describes after which nothing told what the instance can carry
	noLimits  error                    // why not
	removed   map[string]time.Duration // by calls: until when a describe may still show it
	lacked    map[string]absence       // detached ones that the last describe lacked
	loose     map[string]time.Duration // attached nowhere: the first describe in a row that shows it so
	unneeded  time.Duration            // since when no new ENI is needed, 0 if one is
}

func newMember(n Node, term *order.Term) *member {
	return &member{node: n, term: term, jobs: map[string]*job{},
		refusals: refusals{pauses: map[attempt]pause{}, noMore: map[string]pool.Cause{}, stays: map[string]time.Duration{}, unsure: map[string]time.Duration{}},
		absences: absences{removed: map[string]time.Duration{}, lacked: map[string]absence{}, loose: map[string]time.Duration{}}}
}

// takeCopy takes over a newer copy of the object.
func (m *member) takeCopy(n *crd.NodeNetwork) {
	isFirst := m.network == nil
	isNewSpec := isFirst || m.network.Generation != n.Generation
	m.network, m.older = n, 0
	if n.Generation > m.putBack {
		m.putBack = 0
	}
	m.readView()
	m.takeReclaim(isFirst, isNewSpec)
}

// readView makes the view of the copy. Nobody starts the pods of a node that the cluster does not reach, and nobody corrects what its agent wrote
// last: they would be the first ever after, and others give back for them.
func (m *member) readView() {
	if m.view, m.wrong = crd.View(m.network); m.node.Cut {
		m.view.Spec.Waiting = 0
	}
}

// isKnown tells whether there is an object that can be read.
func (m *member) isKnown() bool { return m.network != nil && m.wrong == nil && !m.left }

// isReady tells whether enough is known of the node to make calls for it.
func (m *member) isReady() bool {
	return m.isKnown() && m.shown != nil && m.shown.view.Err == nil && m.limits != (eni.Limits{}) &&
		m.term.Lease.MayDescribe(m.shown.began.Mono, m.term.Acquired)
}

// noteDescribe takes in what a describe shows.
func (m *member) noteDescribe(last *shown, status order.Status) {
	if !m.noteTold(last) {
		return
	}
	if m.shown = last; last.view.Err != nil {
		return
	}
	lacked := map[string]absence{}
	for _, e := range status.ENIs {
		if _, there := last.findENI(e.ID); !there && e.State == order.Detached {
			lacked[e.ID] = m.lacked[e.ID].add(last.began.Mono)
		}
	}
	m.lacked = lacked
	loose := map[string]time.Duration{}
	for _, nic := range last.looseENIs() {
		loose[nic.ID] = last.began.Mono
		if since, before := m.loose[nic.ID]; before {
			loose[nic.ID] = since
		}
	}
	m.loose = loose
	// A describe that began a consistency window after a call shows what it has done.
	settle := m.term.Lease.Settle
	for id, since := range m.unsure {
		if last.began.Mono >= since+settle {
			delete(m.unsure, id)
		}
	}
	for id, until := range m.removed {
		if last.began.Mono >= until {
			delete(m.removed, id)
		}
	}
}

// isLeft tells whether an ENI has been attached nowhere for so long, by the last describe and one before it: somebody who
// has detached it for a while attaches it again.
func (m *member) isLeft(id string, age, now time.Duration) bool {
	since, is := m.loose[id]
	return is && since < m.shown.began.Mono && now-since >= age
}

// isGone tells whether an ENI is no more, whatever the last describe shows.
func (m *member) isGone(id string) bool {
	_, removed := m.removed[id]
	return removed || m.lacked[id].isProof(m.term.Lease.Settle)
}

// wantsIn returns how many addresses of a subnet pods of the node wait for. While the node's status is being written its plan is
// not known: then it is what the pods need.
func (m *member) wantsIn(subnet string) int {
	if m.writing && m.isReady() && len(m.jobs) == 0 && slices.ContainsFunc(m.shown.view.Interfaces, func(nic cloud.Interface) bool { return nic.Subnet == subnet }) {
		return m.view.Spec.Waiting
	}
	return m.wants[subnet]
}

// comingFrom returns how many addresses of a subnet calls are to bring.
func (m *member) comingFrom(subnet string) (n int) {
	for _, j := range m.jobs {
		if j.Subnet == subnet && j.moved != nil {
			n += max(0, j.moved.count)
		}
	}
	return n
}

// planFacts returns what a plan goes by besides the object.
func (m *member) planFacts(subnets []pool.Subnet, now time.Duration) order.Facts {
	facts := order.Facts{Subnets: subnets, Calls: map[string]order.ENICall{}}
	if m.shown == nil {
		return facts
	}
	facts.Unmanaged = m.shown.countOthers(m.view.Status)
	if m.noNew.Next > now {
		facts.NoNew = m.noNew
	} else if m.node.Zone == "" && !m.isLate(now) {
		facts.NoNew = pool.Cause{Kind: pool.UnderWay, Next: m.bare + lateNode, Words: "the Node has no zone yet"}
	}
	for _, nic := range m.shown.view.Interfaces {
		_, unsure := m.unsure[nic.ID]
		call := order.ENICall{Busy: unsure, Stays: m.stays[nic.ID] > now, Kept: !nic.Ours}
		if why := m.noMore[nic.ID]; why.Next > now {
			call.NoMore = why
		} else if p := m.pauses[attempt{pool.Assign, nic.ID}]; p.until > now {
			call.NoMore = p.why
		}
		if j := m.jobs[nic.ID]; j != nil {
			call.Busy = true
			if j.Do == pool.Assign && len(j.bring) == 0 {
				call.Coming = []pool.Coming{{Family: j.Family, Count: j.Count}}
			}
		}
		facts.Calls[nic.ID] = call
	}
	if j := m.jobs[""]; j != nil {
		facts.Pending = append(facts.Pending, pool.Pending{Subnet: j.Subnet, Slots: j.Count})
	}
	return facts
}

// classOf returns how urgent what the node lacks is, and since when.
func (m *member) classOf(view order.View, now order.Moment) (quota.Class, time.Duration) {
	if view.Spec.Waiting > 0 {
		return quota.Starving, m.waitingFrom(now)
	}
	if order.Have(view.Spec, view.Status) == 0 {
		return quota.Empty, m.short
	}
	return quota.Short, m.short
}

// longestWait is for how long pods count as waiting at most when that is read first: what an agent writes decides about its place
// among the others, and must not decide for ever.
const longestWait = time.Hour

// waitingFrom returns since when pods wait, on this process's clock. It is worked out once for each time that the agent
// wrote: the clocks of both may be set meanwhile.
func (m *member) waitingFrom(now order.Moment) time.Duration {
	since := m.network.Spec.WaitingSince
	if since == nil {
		return cmp.Or(m.short, now.Mono)
	}
	if !since.Time.Equal(m.waits.wall) {
		m.waits = waitingSince{since.Time, now.Mono - min(max(0, now.Wall.Sub(since.Time)), longestWait)}
	}
	return m.waits.mono
}

// noteShort keeps since when the node has less than it asks for.
func (m *member) noteShort(isShort bool, now time.Duration) {
	switch {
	case !isShort:
		m.short = 0
	case m.short == 0:
		m.short = max(now, 1)
	}
}

// noteGiving does that for what goes back.
func (m *member) noteGiving(s order.Status, now time.Duration) {
	switch {
	case len(s.Releasing)+len(s.LeavingInterfaces) == 0 && (m.shown == nil || len(m.shown.looseENIs()) == 0):
		m.owing = 0
	case m.owing == 0:
		m.owing = max(now, 1)
	}
}

// isBusy tells whether calls are under way.
func (m *member) isBusy() bool { return len(m.jobs) > 0 }

// describeDue returns when only a describe can tell what is next for the node, and whether there is such a time.
func (m *member) describeDue(view order.View, now order.Moment) (at time.Duration, is bool) {
	settle := m.term.Lease.Settle
	if m.untold.describes > 0 {
		return m.untold.last + m.untold.pause(settle), true
	}
	wants := func(t time.Duration) {
		if !is || t < at {
			at, is = t, true
		}
	}
	if m.shown == nil {
		return max(m.term.Acquired+settle, m.met.at), true // those that come after it are described together
	}
	switch {
	case m.limits != (eni.Limits{}):
	case m.unlimited.describes > 0:
		wants(m.unlimited.last + m.unlimited.pause(settle))
	default: // there was no time for it in the last describe
		wants(m.shown.began.Mono + together)
	}
	if counts := m.term.Acquired + settle; m.shown.began.Mono < counts { // an object that was made again since follows one that ended later
		wants(counts)
	}
	again := m.shown.began.Mono + settle
	if lacked, is := m.term.DescribeAgain(); is {
		wants(max(lacked, again))
	}
	for _, since := range m.unsure {
		wants(since + settle)
	}
	if at := m.term.KnownFrom(); order.IsBehind(view) && at > 0 {
		wants(max(at, m.shown.began.Mono+time.Second))
	} else if order.IsBehind(view) {
		wants(again)
	}
	if view.Status.Mode == order.Joining {
		wants(max(m.joined, m.shown.began.Mono) + settle)
	}
	// A quarantine ends by a describe that begins after it.
	for _, q := range view.Status.Quarantined {
		if until := m.term.QuarantineEnds(q, now); until > m.shown.began.Mono {
			wants(max(until, m.shown.began.Mono+time.Second))
		} else {
			wants(again) // it has lacked the address
		}
	}
	for _, e := range view.Status.ENIs {
		if e.State == order.Detached {
			wants(again)
		}
	}
	return at, is
}
