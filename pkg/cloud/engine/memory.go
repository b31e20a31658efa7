package engine

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud/driver"
)

// memory is what a Node knows of its ENIs without asking. Accounts let few describes
// pass, shared by all nodes: what is known is not asked for again before a change, which
// fails if it is wrong.
type memory struct {
	glance
	tokens   map[string]string      // by ID: the node's ENIs that were made for it, as last shown
	loose    map[string]bool        // by ID: those of them that were attached nowhere
	seen     map[string]sight       // by ID: ENIs as they were shown attached last
	deeds    map[string]deeds       // by ID: what calls have done a short while ago
	making   map[string]intent      // by token
	begun    map[string]bool        // by token: those that an earlier process may have made ENIs with
	taken    map[place]string       // device indexes, and which ENI is there
	going    map[place]string       // those that calls under way attach ENIs at
	primary6 map[string]netip.Addr  // by ID: what primaryV6 chose
	left     map[string]time.Time   // by ID: ENIs that a call has detached, or tried to
	mine     map[string]bool        // by ID: ENIs that this process has made, of which it knows all
	marks    map[string]driver.Mark // by ID: of the ENIs that calls of this process have made or finished
	away     map[string]away        // by ID: ENIs that were shown at another instance
	bound    map[string]string      // by ID: the attachment that a call has bound to the instance's end
	ready    map[string]sight       // by ID: ENIs as calls have made them ready
	deleted  map[string]time.Time   // by ID: ENIs that calls have deleted
}

// sight is an ENI as it was shown, or as a call has made it.
type sight struct {
	nic
	at time.Time // when the cloud was asked, or when the call had made it
}

// shown is what a look has shown.
type shown struct {
	nics []nic
	at   time.Time // when the cloud was asked
}

// away is where else an ENI was shown.
type away struct {
	instance string
	at       time.Time // when the cloud was asked
}

// glance is what the newest look was, and what it showed.
type glance struct {
	looked  time.Time  // when it began
	sure    time.Time  // until then each look asks for ENIs that are attached nowhere
	next    time.Time  // from then on the next one does
	shown   shown      // what it showed
	leftOut []outsider // what the view of it leaves out: it takes the room of others
	blocks4 bool       // an ENI has delegated prefixes of IPv4
}

// intent is what of an ENI that is being made must be the same with every try: clouds
// refuse a token that comes with other parameters.
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
	return memory{tokens: map[string]string{}, loose: map[string]bool{}, seen: map[string]sight{}, deeds: map[string]deeds{}, making: map[string]intent{}, begun: map[string]bool{},
		taken: map[place]string{}, going: map[place]string{}, primary6: map[string]netip.Addr{}, left: map[string]time.Time{}, mine: map[string]bool{},
		marks: map[string]driver.Mark{}, ready: map[string]sight{}, deleted: map[string]time.Time{}, away: map[string]away{}, bound: map[string]string{}}
}

// isRecent tells whether what was seen then may be relied on.
func isRecent(at, now time.Time) bool { return !at.IsZero() && now.Sub(at) <= recent }

// wantsAll tells whether a look that begins now asks for the ENIs of the node that are
// attached nowhere, too.
func (n *Node) wantsAll() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.clock.Now()
	return len(n.memory.loose) > 0 || now.Before(n.memory.sure) || !now.Before(n.memory.next)
}

// remember keeps what a look has shown. Nodes that began together do not ask for all of
// it together for ever.
func (n *Node) remember(began time.Time, all bool, v view) {
	n.mu.Lock()
	defer n.mu.Unlock()
	m := &n.memory
	m.looked, m.tokens, m.loose = began, map[string]string{}, map[string]bool{}
	m.taken, m.leftOut = v.taken, v.leftOut
	m.blocks4 = slices.ContainsFunc(v.nics, func(i nic) bool {
		return slices.ContainsFunc(i.blocks, func(b netip.Prefix) bool { return b.Addr().Is4() })
	})
	m.shown = shown{v.nics, began}
	for _, i := range v.nics {
		m.keepSight(i, i.read)
		n.takeIndex(i)
		if i.Ours {
			m.tokens[i.ID] = i.Token
			if i.Index < 0 {
				m.loose[i.ID] = true
			}
		}
	}
	m.forgetOld(n.clock.Now())
	if !all {
		return
	}
	if m.next = m.sure; !began.Before(m.sure) {
		m.next = began.Add(allEvery/2 + n.o.Random(allEvery))
	}
}

// takeIndex notes the index of an ENI where the cloud has none: the one that it has, and
// the one that its mark asks for.
func (n *Node) takeIndex(i nic) {
	if !n.t.NoIndex {
		return
	}
	if i.Index >= 0 {
		n.memory.taken[place{0, i.Index}] = i.ID
	}
	if i.Ours {
		n.memory.taken[place{0, i.raw.Mark.Index}] = i.ID
	}
}

// forgetOld drops what nobody may rely on any longer.
func (m *memory) forgetOld(now time.Time) {
	maps.DeleteFunc(m.seen, func(_ string, s sight) bool { return now.Sub(s.at) > forgetAfter })
	maps.DeleteFunc(m.ready, func(_ string, s sight) bool { return now.Sub(s.at) > forgetAfter })
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

// doubt notes that an ENI may be attached nowhere, or may come to be: looks ask for all
// for a while, and once when what is late has come.
func (n *Node) doubt() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.memory.sure = n.clock.Now().Add(doubtful)
	n.memory.next = n.memory.sure
}

// keepSight keeps an ENI in mind as it was then. Of describes that run beside each other the one that
// was asked for last counts, whichever answers last.
func (m *memory) keepSight(i nic, at time.Time) {
	if a, is := m.away[i.ID]; is && !a.at.After(at) {
		delete(m.away, i.ID)
	}
	if i.Index >= 0 && !m.seen[i.ID].at.After(at) {
		m.seen[i.ID] = sight{i, at}
	}
}

// saw keeps an ENI as it was then in mind: another describe may show less.
func (n *Node) saw(i nic, at time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.memory.keepSight(i, at)
	n.takeIndex(i)
	if i.Ours {
		n.memory.tokens[i.ID] = i.Token
	}
}

// lastSeen returns an ENI as it was shown attached at most so long ago.
func (n *Node) lastSeen(id string, age time.Duration) (nic, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s, seen := n.memory.seen[id]
	return s.nic, seen && n.clock.Now().Sub(s.at) <= age
}

// lastHere returns an ENI as it was shown attached at most so long ago, unless something has
// shown since that it has left.
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

// goesAway notes which of the ENIs that the node had are shown at another instance, by a describe
// that was asked for then.
func (n *Node) goesAway(self driver.Self, asked time.Time, raw ...driver.Interface) {
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

// forget: the cloud has no such ENI.
func (n *Node) forget(id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	m := &n.memory
	delete(m.deeds, id)
	delete(m.primary6, id)
	delete(m.left, id)
	delete(m.mine, id)
	delete(m.marks, id)
	delete(m.seen, id)
	delete(m.away, id)
	delete(m.bound, id)
	delete(m.tokens, id)
	delete(m.loose, id)
	maps.DeleteFunc(m.taken, func(_ place, at string) bool { return at == id })
}

// forgetGone drops what is kept for good of ENIs that somebody else has deleted: a look at all of
// the node's does not show them, nor did one lately, and none of them is being made.
func (n *Node) forgetGone(shown []driver.Interface) {
	n.mu.Lock()
	defer n.mu.Unlock()
	m := &n.memory
	is := map[string]bool{}
	for _, i := range shown {
		is[i.ID] = true
	}
	isGone := func(id string) bool {
		_, seen := m.seen[id]
		_, ready := m.ready[id]
		_, making := m.making[m.marks[id].Token]
		return !is[id] && !seen && !ready && !making
	}
	maps.DeleteFunc(m.mine, func(id string, _ bool) bool { return isGone(id) })
	maps.DeleteFunc(m.bound, func(id, _ string) bool { return isGone(id) })
	maps.DeleteFunc(m.primary6, func(id string, _ netip.Addr) bool { return isGone(id) })
	maps.DeleteFunc(m.marks, func(id string, _ driver.Mark) bool { return isGone(id) })
}

// unmake notes that a call begins to take the ENI away: only describes tell how far it got.
func (n *Node) unmake(id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.memory.ready, id)
}

// noteDeleted notes that a call has deleted the ENI.
func (n *Node) noteDeleted(id string) {
	n.forget(id)
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

// leaves notes that a call detaches the ENI.
func (n *Node) leaves(id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.memory.left[id] = n.clock.Now()
}

// hasLeft tells whether a call has detached the ENI so shortly before it was read that the
// answer may show what was before.
func (n *Node) hasLeft(on nic) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	at, left := n.memory.left[on.ID]
	return left && !at.Add(n.t.Times.Settle).Before(on.read)
}
