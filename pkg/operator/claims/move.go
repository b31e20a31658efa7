package claims

import (
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/topology"
)

// Moves is what moves in one call go by. Its times are a leader's, since it got the lease.
type Moves struct {
	Now       time.Duration
	Described time.Duration // when the last describe of everything began
	Fence     time.Duration // for how long what was sent may take effect

	// Reserved are the ranges that are reserved in the cloud, by the subnets whose addresses it moves in one call; nil if it never does. Nobody is
	// given an address of such a range between two calls, and the second one is refused where another ENI has it: they are the safer ones there.
	Reserved map[string][]netip.Prefix
}

// moving is what a leader remembers of calls in one, its own and those of leaders before it.
type moving struct {
	Moves
	under     map[netip.Addr]int           // calls under way
	until     map[netip.Addr]time.Duration // until when one whose answer is lost may take effect
	mine      map[netip.Addr]bool          // what the claim says of one this leader has written: before there was none
	confirmed map[netip.Addr]bool          // the claim's object has been the newest one in this term
	describes time.Duration                // when a describe may begin that says what late calls did, 0 for none
	refused   map[netip.Addr]time.Duration // until when an address is moved by two calls, since the cloud has refused one
}

func newMoving() moving {
	return moving{under: map[netip.Addr]int{}, until: map[netip.Addr]time.Duration{}, mine: map[netip.Addr]bool{}, confirmed: map[netip.Addr]bool{}, refused: map[netip.Addr]time.Duration{}}
}

// SetMoves replaces what moves in one call go by.
func (k *Known) SetMoves(m Moves) { k.moving.Moves = m }

// NoteMoving takes in that a call is about to be sent that moves addresses in one.
func (k *Known) NoteMoving(addrs []netip.Addr) {
	for _, at := range addrs {
		k.moving.under[at]++
	}
}

// NoteMoved takes in how such a call has ended. Of an address in doubt nobody knows whether it will take effect.
func (k *Known) NoteMoved(addrs []netip.Addr, inDoubt func(netip.Addr) bool, now time.Duration) {
	for _, at := range addrs {
		if k.moving.under[at]--; k.moving.under[at] <= 0 {
			delete(k.moving.under, at)
		}
		if inDoubt(at) {
			k.moving.until[at] = now + k.moving.Fence
		}
	}
}

// NoteUnmovable takes in that the cloud does not move an address in one call.
func (k *Known) NoteUnmovable(at netip.Addr, now time.Duration) {
	k.moving.refused[at] = now + topology.ConflictRetry
}

// NoteWritten takes in that the status of a claim was written, over one that said before.
func (k *Known) NoteWritten(at netip.Addr, before, is topology.Status) {
	k.moving.confirmed[at] = true
	switch {
	case is.ToENI == "":
		delete(k.moving.mine, at)
		delete(k.moving.until, at)
	case before.ToENI == "":
		k.moving.mine[at] = true
	}
}

// mayMove tells whether the cloud may be asked to move a claim's address in one call. Where others can be given the address, one that comes late
// could take it from them.
func (k *Known) mayMove(c topology.Claim) bool {
	reserved, can := k.moving.Reserved[c.Subnet]
	within := func(p netip.Prefix) bool { return p.Contains(c.Addr) }
	return can && c.Family() == eni.IPv4 && !slices.ContainsFunc(reserved, within) && k.moving.refused[c.Addr] <= k.moving.Now
}

// isOwn tells whether an ENI of the node lies in a subnet, or is none: no call moves an address from or to one of another subnet.
func (n Node) isOwn(id, subnet string) bool {
	return id == "" || slices.ContainsFunc(n.ENIs, func(e ENI) bool { return e.ID == id && e.Subnet == subnet })
}

// isLate tells whether a call that moves a claim's address to its ToENI may take effect yet, for all that this leader knows. What leaders before
// it have sent may for a fence; and after that a describe has to show what it did.
func (k *Known) isLate(c topology.Claim) bool {
	if c.ToENI == "" {
		return false
	}
	m := &k.moving
	until := m.until[c.Addr]
	if !m.mine[c.Addr] {
		until = max(until, m.Fence)
	}
	late := until > 0 && m.Described < until
	if late {
		m.describes = max(m.describes, until)
	}
	return m.under[c.Addr] > 0 || late
}

// DescribesAt returns when a describe of everything is to begin by which claims go on that wait for late calls, 0 if none does.
func (k *Known) DescribesAt() time.Duration {
	if k.moving.Described >= k.moving.describes {
		return 0
	}
	return k.moving.describes
}

// mustConfirm tells whether a claim's status is to be written again before something is done for it. A leader before may have written that it
// calls, and the watch may be late to tell: the write is refused then.
func (d *decision) mustConfirm(at netip.Addr, do topology.Action) bool {
	acts := do == topology.Unassign || do == topology.Assign || do == topology.Reassign
	return acts && d.moving.Reserved != nil && !d.moving.confirmed[at] && d.moving.Now < d.moving.Fence
}

// lateTarget returns the ENI of a node to which a call may move a claim's address, if it can carry it. only: it goes to no other one.
func (d *decision) lateTarget(n Node, c topology.Claim) (id string, only bool) {
	for _, e := range n.ENIs {
		if c.ToENI != "" && e.ID == c.ToENI && d.mayCarry(n, e, Name{c.Namespace, c.Pod}, c.Family()) {
			d.takePlace(n, e, c)
			return e.ID, true
		}
	}
	return "", d.isLate(c)
}

// move has one call move an address to an ENI. What comes from another ENI waits for the next call.
func (d *decision) move(node, target string, from Move) {
	o := d.of(node)
	if is, has := o.Move[target]; has {
		if is.ENI != from.ENI {
			return
		}
		from.Addrs = append(is.Addrs, from.Addrs...)
	}
	o.Move[target] = from
}

// moved returns the addresses that come by moves, as many lists as there are calls.
func (o *Orders) moved() (list [][]netip.Addr) {
	for _, m := range o.Move {
		list = append(list, m.Addrs)
	}
	return list
}

// forget drops what is remembered for the claim of an address that is gone: none was, that a late call could have moved.
func (m moving) forget(at netip.Addr) {
	delete(m.until, at)
	delete(m.mine, at)
	delete(m.confirmed, at)
	delete(m.refused, at)
}
