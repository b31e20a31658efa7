package engine

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud/driver"
)

// memory is what a Node knows of its ENIs without asking. Accounts let few describes pass, and
// all nodes share them. So what is known is not described again before a change: if it is wrong,
// the cloud refuses the change.
type memory struct {
	lastDescribe
	tokens    map[string]string      // by ID: the node's ENIs that were made for it, as last shown
	loose     map[string]bool        // by ID: those of them that were attached nowhere
	seen      map[string]seenENI     // by ID: ENIs as they were shown attached last
	deeds     map[string]deeds       // by ID: what calls have done a short while ago
	making    map[string]intent      // by token
	begun     map[string]bool        // by token: those that an earlier process may have made ENIs with
	occupied  map[place]string       // device indexes, and which ENI is there
	attaching map[place]string       // those that calls under way attach ENIs at
	primary6  map[string]netip.Addr  // by ID: what primaryV6 chose
	left      map[string]time.Time   // by ID: ENIs that a call has detached, or tried to
	mine      map[string]bool        // by ID: ENIs that this process has made, of which it knows all
	marks     map[string]driver.Mark // by ID: of the ENIs that calls of this process have made or finished
	away      map[string]away        // by ID: ENIs that were shown at another instance
	bound     map[string]string      // by ID: the attachment that a call has bound to the instance's end
	ready     map[string]seenENI     // by ID: ENIs as calls have made them ready
	deleted   map[string]time.Time   // by ID: ENIs that calls have deleted
}

// seenENI is an ENI as it was shown, or as a call has made it.
type seenENI struct {
	nic
	at time.Time // when the cloud was asked, or when the call had made it
}

// shown is what a describe of all the node's ENIs has shown.
type shown struct {
	nics []nic
	at   time.Time // when the cloud was asked
}

// away is at which other instance an ENI was shown.
type away struct {
	instance string
	at       time.Time // when the cloud was asked
}

// lastDescribe is the newest describe of all the node's ENIs, and what it showed.
type lastDescribe struct {
	looked  time.Time  // when it began
	sure    time.Time  // until then each look asks for ENIs that are attached nowhere
	next    time.Time  // from then on the next one does
	shown   shown      // what it showed
	leftOut []outsider // what the view of it leaves out: it takes the room of others
	blocks4 bool       // an ENI has delegated prefixes of IPv4
}

// intent is what must be the same in each request for an ENI, because clouds refuse a token that
// comes with other parameters.
type intent struct {
	asked time.Time
	index int  // where the cloud has none
	try   int  // how many ENIs of the token are surely gone
	begun bool // the cloud was asked, and may have made it
	few   bool // it was asked for with fewer addresses, because the subnet had not as many
	// missing is since when describes do not show the ENI that the cloud has answered with,
	// named its ID, "" if it told none.
	missing time.Time
	named   string
}

// place is a device index of a network card.
type place struct{ card, index int }

const (
	recent      = 8 * time.Minute  // how old what is known may be: less than forgetAfter
	forgetAfter = 10 * time.Minute // longer than describes lag, and than a node goes without a look
	doubtful    = 2 * time.Minute  // longer than an effect comes late, and any lag
	allEvery    = 80 * time.Minute // on average; what may be there asks sooner, and idle nodes share the account
	refusedFor  = 10 * time.Minute // how long a subnet that may not be asked for is not
	mostIntents = 256              // far more than are being made at once
)

func newMemory() memory {
	return memory{tokens: map[string]string{}, loose: map[string]bool{}, seen: map[string]seenENI{}, deeds: map[string]deeds{}, making: map[string]intent{}, begun: map[string]bool{},
		occupied: map[place]string{}, attaching: map[place]string{}, primary6: map[string]netip.Addr{}, left: map[string]time.Time{}, mine: map[string]bool{},
		marks: map[string]driver.Mark{}, ready: map[string]seenENI{}, deleted: map[string]time.Time{}, away: map[string]away{}, bound: map[string]string{}}
}

// isRecent tells whether what was shown then can be relied on without another describe.
func isRecent(at, now time.Time) bool { return !at.IsZero() && now.Sub(at) <= recent }

// wantsUnattached tells whether a describe that begins now includes the ENIs of the node that are
// attached nowhere.
func (n *Node) wantsUnattached() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.clock.Now()
	return len(n.memory.loose) > 0 || now.Before(n.memory.sure) || !now.Before(n.memory.next)
}

// rememberView keeps what a describe has shown. all: it included ENIs that are attached nowhere.
func (n *Node) rememberView(began time.Time, all bool, v view) {
	n.mu.Lock()
	defer n.mu.Unlock()
	memory := &n.memory
	memory.looked, memory.tokens, memory.loose = began, map[string]string{}, map[string]bool{}
	memory.occupied, memory.leftOut = v.occupied, v.leftOut
	memory.blocks4 = slices.ContainsFunc(v.nics, func(i nic) bool {
		return slices.ContainsFunc(i.blocks, func(b netip.Prefix) bool { return b.Addr().Is4() })
	})
	memory.shown = shown{v.nics, began}
	for _, i := range v.nics {
		memory.keepSeen(i, i.read)
		n.takeIndex(i)
		if i.Ours {
			memory.tokens[i.ID] = i.Token
			if i.Index < 0 {
				memory.loose[i.ID] = true
			}
		}
	}
	memory.forgetOld(n.clock.Now())
	if !all {
		return
	}
	// By chance, so that nodes that were started together spread these requests.
	if memory.next = memory.sure; !began.Before(memory.sure) {
		memory.next = began.Add(allEvery/2 + n.o.Random(allEvery))
	}
}

// takeIndex notes, if the cloud has no indexes, that the index of an ENI is occupied: the one that
// it has, and the one in its mark.
func (n *Node) takeIndex(i nic) {
	if !n.t.NoIndex {
		return
	}
	if i.Index >= 0 {
		n.memory.occupied[place{0, i.Index}] = i.ID
	}
	if i.Ours {
		n.memory.occupied[place{0, i.raw.Mark.Index}] = i.ID
	}
}

// forgetOld drops what is too old to override a describe.
func (m *memory) forgetOld(now time.Time) {
	maps.DeleteFunc(m.seen, func(_ string, s seenENI) bool { return now.Sub(s.at) > forgetAfter })
	maps.DeleteFunc(m.ready, func(_ string, s seenENI) bool { return now.Sub(s.at) > forgetAfter })
	maps.DeleteFunc(m.deleted, func(_ string, at time.Time) bool { return now.Sub(at) > forgetAfter })
	maps.DeleteFunc(m.away, func(_ string, a away) bool { return now.Sub(a.at) > forgetAfter })
	maps.DeleteFunc(m.left, func(_ string, at time.Time) bool { return now.Sub(at) > forgetAfter })
	for id, list := range m.deeds {
		maps.DeleteFunc(list, func(_ netip.Addr, d deed) bool { return now.Sub(d.at) > forgetAfter })
		if len(list) == 0 {
			delete(m.deeds, id)
		}
	}
}

// expectUnattached notes that a call may leave an ENI attached nowhere, now or a little later. For
// two minutes each describe asks for such ENIs, and the first one after that once more.
func (n *Node) expectUnattached() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.memory.sure = n.clock.Now().Add(doubtful)
	n.memory.next = n.memory.sure
}

// keepSeen remembers an ENI as it was shown then. Of describes that run at the same time, the one
// that was requested last counts, not the one that answers last.
func (m *memory) keepSeen(i nic, at time.Time) {
	if a, is := m.away[i.ID]; is && !a.at.After(at) {
		delete(m.away, i.ID)
	}
	if i.Index >= 0 && !m.seen[i.ID].at.After(at) {
		m.seen[i.ID] = seenENI{i, at}
	}
}

// noteSeen remembers an ENI as a describe of it alone has shown it.
func (n *Node) noteSeen(i nic, at time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.memory.keepSeen(i, at)
	n.takeIndex(i)
	if i.Ours {
		n.memory.tokens[i.ID] = i.Token
	}
}

// lastSeen returns an ENI as it was last shown attached, if that is no longer ago than age.
func (n *Node) lastSeen(id string, age time.Duration) (nic, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s, seen := n.memory.seen[id]
	return s.nic, seen && n.clock.Now().Sub(s.at) <= age
}

// lastHere is lastSeen, unless a describe has shown since that the ENI has left the instance.
func (n *Node) lastHere(id string, age time.Duration) (nic, bool) {
	on, seen := n.lastSeen(id, age)
	if _, gone := n.isAway(id); !seen || gone {
		return nic{}, false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	// What was shown later than describes may lag has not shown it attached.
	return on, !n.memory.seen[id].at.Add(n.t.Times.Settle).Before(n.memory.looked)
}

// noteAway notes which of the node's ENIs a describe, requested at that time, shows at another
// instance.
func (n *Node) noteAway(self driver.Self, asked time.Time, raw ...driver.Interface) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, r := range raw {
		s, seen := n.memory.seen[r.ID]
		had, elsewhere := seen || r.Mark.Ours(self.Instance), r.Instance != "" && r.Instance != self.Instance
		if had && elsewhere && !s.at.After(asked) && !n.memory.away[r.ID].at.After(asked) {
			n.memory.away[r.ID] = away{r.Instance, asked}
		}
	}
}

// isAway returns the other instance that an ENI was shown at last.
func (n *Node) isAway(id string) (instance string, is bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	a, is := n.memory.away[id]
	return a.instance, is
}

// forgetENI drops all that is known of an ENI that the cloud does not have.
func (n *Node) forgetENI(id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	memory := &n.memory
	delete(memory.deeds, id)
	delete(memory.primary6, id)
	delete(memory.left, id)
	delete(memory.mine, id)
	delete(memory.marks, id)
	delete(memory.seen, id)
	delete(memory.away, id)
	delete(memory.bound, id)
	delete(memory.tokens, id)
	delete(memory.loose, id)
	maps.DeleteFunc(memory.occupied, func(_ place, at string) bool { return at == id })
}

// forgetGone drops what forgetOld does not, of ENIs that somebody else has deleted: a describe of
// all of the node's ENIs lacks them, as did all recent ones, and none of them is being made.
func (n *Node) forgetGone(shown []driver.Interface) {
	n.mu.Lock()
	defer n.mu.Unlock()
	memory := &n.memory
	is := map[string]bool{}
	for _, i := range shown {
		is[i.ID] = true
	}
	isGone := func(id string) bool {
		_, seen := memory.seen[id]
		_, ready := memory.ready[id]
		_, making := memory.making[memory.marks[id].Token]
		return !is[id] && !seen && !ready && !making
	}
	maps.DeleteFunc(memory.mine, func(id string, _ bool) bool { return isGone(id) })
	maps.DeleteFunc(memory.bound, func(id, _ string) bool { return isGone(id) })
	maps.DeleteFunc(memory.primary6, func(id string, _ netip.Addr) bool { return isGone(id) })
	maps.DeleteFunc(memory.marks, func(id string, _ driver.Mark) bool { return isGone(id) })
}

// noteRemoving notes that a call begins to remove the ENI. From now on describes count, and no
// longer that a call has made it ready.
func (n *Node) noteRemoving(id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.memory.ready, id)
}

// noteDeleted notes that a call has deleted the ENI.
func (n *Node) noteDeleted(id string) {
	n.forgetENI(id)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.memory.deleted[id] = n.clock.Now()
}

// noteMade notes that this process has made the ENI.
func (n *Node) noteMade(id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.memory.mine[id] = true
}

// mayLack tells whether describes may lack what an earlier process has done to the ENI.
func (n *Node) mayLack(id string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.memory.mine[id] && n.clock.Now().Before(n.born.Add(n.t.Times.Settle))
}

// noteDetached notes that a call has begun to detach the ENI.
func (n *Node) noteDetached(id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.memory.left[id] = n.clock.Now()
}

// hasLeft tells whether a call has detached the ENI after this describe, or so shortly before it
// that the describe may still show it attached.
func (n *Node) hasLeft(on nic) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	at, left := n.memory.left[on.ID]
	return left && !at.Add(n.t.Times.Settle).Before(on.read)
}
