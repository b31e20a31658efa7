package pool

import (
	"math"

	"github.com/enipool/enipool/pkg/eni"
)

// ledger is a plan in the making: what there is, and what the plan does to it.
type ledger struct {
	c       Config
	s       Snapshot
	asked   int // the target as the caller gave it
	most    int // slots that the node can hold
	target  int // slots to reach: what was asked for, within most
	ceiling int // slots up to which none is released

	nics    []*nic   // those that carry pods and stay, oldest first
	subnets []*field // in the order of the snapshot
	created []Step

	owned    int // slots there, on their way and planned
	there    int // slots there when the plan began
	arriving int // slots on their way when the plan began
	attached int // ENIs on the instance, with those on their way and planned
	carriers int // of those: the ones for pods
}

// newLedger counts what the snapshot has. Torn blocks are kept before anything else is planned, for what
// they bring is no longer missing.
func newLedger(c Config, s Snapshot, target int) *ledger {
	s.Limits = c.Within(s.Limits)
	l := &ledger{c: c, s: s, asked: target, attached: len(s.ENIs) + s.Unmanaged + len(s.Pending)}
	l.most = c.Most(s.Limits, s.Families, s.forPods())
	l.target = max(0, min(target, l.most))
	l.ceiling = l.target
	if c.Mode == BestEffort {
		l.ceiling = min(l.target+c.MaxAboveWatermark, l.most)
	}
	for _, n := range s.Subnets {
		n.Spared = n.Spared && c.Mode != Burstable // whose ENIs are full or go as a whole
		l.subnets = append(l.subnets, newField(n, s))
	}
	first := c.FirstIndex(s.Limits)
	for i := range s.ENIs {
		e := &s.ENIs[i]
		if e.Index < first {
			continue
		}
		l.carriers++
		if e.Leaving {
			continue
		}
		n := newNIC(e, s)
		n.field = l.subnet(e.Subnet)
		l.nics = append(l.nics, n)
		l.owned += n.slots()
		l.there += n.present()
	}
	for _, p := range s.Pending {
		l.owned += p.Slots
		l.carriers++
	}
	l.arriving = l.owned - l.there
	for _, n := range l.nics {
		l.keepTornBlocks(n)
	}
	return l
}

// subnet returns the field with the ID, nil if there is none.
func (l *ledger) subnet(id string) *field {
	for _, f := range l.subnets {
		if f.ID == id {
			return f
		}
	}
	return nil
}

// short returns how many slots are missing.
func (l *ledger) short() int { return l.target - l.owned }

// present returns how many slots there are with those of the plan, and without
// those on their way: only what is there for certain makes others superfluous.
func (l *ledger) present() int {
	sum := 0
	for _, n := range l.nics {
		sum += n.present()
	}
	for _, s := range l.created {
		sum += s.Count
	}
	return sum
}

// field is a subnet with what a plan may still take from it.
type field struct {
	Subnet
	left []int // of each family
}

// newField subtracts what calls under way will take. Subnet.Free counts the scarcer family, so
// it is a bound for each.
func newField(n Subnet, s Snapshot) *field {
	f := &field{Subnet: n, left: make([]int, len(s.Families))}
	for i, family := range s.Families {
		f.left[i] = n.Free
		for _, e := range s.ENIs {
			if e.Subnet == n.ID {
				f.left[i] -= takenOfSubnet(s.Limits, family, comingOf(e, family))
			}
		}
		for _, p := range s.Pending {
			if p.Subnet == n.ID {
				f.left[i] -= takenOfSubnet(s.Limits, family, startCount(s.Limits, family, p.Slots, math.MaxInt)) + 1
			}
		}
	}
	return f
}

// room returns how many addresses of each family are left.
func (f *field) room() int {
	n := math.MaxInt
	for _, left := range f.left {
		n = min(n, left)
	}
	return n
}

// comingOf returns how many addresses of the family calls under way bring to the ENI.
func comingOf(e ENI, f eni.Family) int {
	n := 0
	for _, c := range e.Coming {
		if c.Family == f {
			n += c.Count
		}
	}
	return n
}

// nic is an ENI of the plan.
type nic struct {
	*ENI
	field   *field // nil if nothing is known of its subnet
	tallies []tally
	deleted bool

	yielded int // planned slots that are released for other nodes

	demanded int // planned slots that demand asks for
	evened   int // planned slots that lacked only one family
	filled   int // planned slots that make the ENI full
	mended   int // planned addresses that are restored because others of their block stay

	slotsReleased int // planned slots that are released

	needed bool // pods need some of what is planned
}

// tally is what an ENI has of one family.
type tally struct {
	family eni.Family
	size   int // addresses that are assigned together, 1 for no blocks
	bits   int // length of the prefix of a block, 0 where none are or were assigned
	blocks []block
	limit  int // addresses that the ENI may carry
	taken  int // of the limit, by what is there or on its way
	free   int
	held   int // used or cooling
	going  int // releasing, which can be undone
	gone   int // releasing for good
	lost   int // still a pod's, no longer the ENI's
	others int // held by others: they take room and serve no pod of enipool
	coming int // being assigned by calls under way

	restore, assign, release int // planned
	awaited                  int // to be planned when the call under way has ended
	asked                    int // of the limit, by assign and awaited
}

func newNIC(e *ENI, s Snapshot) *nic {
	n := &nic{ENI: e}
	for _, f := range s.Families {
		t := tally{family: f, size: unitSize(s.Limits, f), bits: s.Limits.Block(f).Bits, coming: comingOf(*e, f)}
		t.limit = max(0, s.Limits.PerENI(f)-e.Promised*t.size)
		for _, a := range e.Addresses {
			if a.Family() == f {
				t.count(a)
			}
		}
		t.taken = t.free + t.held + t.going + t.gone + t.lost + t.others + t.coming
		if t.inBlocks() {
			t.sortIntoBlocks(e.Addresses)
		}
		n.tallies = append(n.tallies, t)
	}
	return n
}

// inBlocks tells whether the addresses are released in blocks: also where no more are assigned so.
func (t *tally) inBlocks() bool { return t.bits > 0 }

func (t *tally) count(a Address) {
	switch {
	case a.Lost:
		t.lost++
	case a.State == eni.Releasing && a.Committed:
		t.gone++
	case a.State == eni.Releasing:
		t.going++
	case a.State == eni.Free:
		t.free++
	case a.State == eni.Held || a.IsKept():
		t.others++
	default:
		t.held++
	}
}

// there returns the addresses that pods may have, as the plan leaves them.
func (t tally) there() int { return t.free + t.held + t.restore + t.assign - t.release }

// owned returns those and the ones on their way.
func (t tally) owned() int { return t.there() + t.coming + t.awaited }

// room returns how much of the limit is left. A lost address takes room too: it may
// be back with the next describe.
func (t *tally) room() int { return t.limit - t.taken - t.asked }

// nextCount returns how many addresses the ENI is asked to get at once, of a subnet with
// that many left: a block where it may have a whole one, else a single address.
func (t *tally) nextCount(left int) int {
	switch {
	case t.room() < t.size || left <= 0:
		return 0
	case left >= t.size || t.family == eni.IPv6:
		return t.size
	}
	return 1
}

// planAssign plans the next addresses to be assigned.
func (t *tally) planAssign(left *int) {
	n := t.nextCount(*left)
	t.assign += n
	t.asked += t.size
	if t.family == eni.IPv6 {
		n = 1
	}
	*left -= n
}

// slots returns how many pods the ENI is enough for: by the family it has least of.
func (n *nic) slots() int { return n.fewest(tally.owned) }

// present returns the same without what is on its way.
func (n *nic) present() int { return n.fewest(tally.there) }

// freeSlots returns how many whole slots could be released.
func (n *nic) freeSlots() int { return n.fewest(func(t tally) int { return t.free - t.release }) }

func (n *nic) fewest(count func(tally) int) int {
	low := math.MaxInt
	for _, t := range n.tallies {
		low = min(low, count(t))
	}
	return low
}

// uneven returns how many slots lack only the addresses of one family. What a block
// has beyond the slots lacks nothing: it came along.
func (n *nic) uneven() int {
	high, slots := 0, n.slots()
	for _, t := range n.tallies {
		high = max(high, (t.owned()-slots)/t.size*t.size)
	}
	return high
}

// unmatched returns how many slots there would be more if the other family came.
func (n *nic) unmatched() int {
	high := 0
	for _, t := range n.tallies {
		high = max(high, t.owned())
	}
	return high - n.slots()
}
