package engine

import (
	"cmp"
	"context"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/eni"
)

// Limits implements cloud.Cloud. ENIs that are left out, of which the first look tells, take
// the room of others.
func (n *Node) Limits(ctx context.Context) (l eni.Limits, err error) {
	defer nameError(&err, "Limits", "")
	if err := n.askShape(ctx); err != nil {
		return eni.Limits{}, err
	}
	n.mu.Lock()
	one := n.shape.ENIs == 1 // whatever a look would show
	n.mu.Unlock()
	if !one {
		if _, err := n.findHome(ctx); err != nil {
			return eni.Limits{}, err
		}
	}
	return n.knownLimits(ctx)
}

// LimitsNow implements cloud.Sizer.
func (n *Node) LimitsNow() eni.Limits { return n.limits() }

// askShape asks what the instance may carry.
func (n *Node) askShape(ctx context.Context) error {
	self, err := n.whoami(ctx)
	if err != nil {
		return err
	}
	s, err := n.d.Shape(ctx, self)
	if err != nil {
		return err
	}
	n.sayIf(s.Builtin != nil, "type", "limits of the instance type are those of the built-in table: the cloud did not tell them", "type", s.Type, "error", s.Builtin)
	n.sayIf(n.o.Prefixes && !s.Prefixes, "prefixes", "the instance takes no prefixes: addresses come one by one", "type", s.Type)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.shape = s
	return nil
}

// knownLimits asks for the limits unless it has been done.
func (n *Node) knownLimits(ctx context.Context) (eni.Limits, error) {
	n.mu.Lock()
	known := n.shape.ENIs > 0
	n.mu.Unlock()
	if !known {
		if err := n.askShape(ctx); err != nil {
			return eni.Limits{}, err
		}
	}
	l := n.limits()
	if l.V4 < 1 && l.V6 < 1 {
		fix := ""
		if n.t.Keys.Room != "" {
			fix = "; name " + n.t.Keys.Room
		}
		return eni.Limits{}, because(cloud.ErrUnavailable, "bad answer: nothing in it tells how many addresses an ENI may have%s", fix)
	}
	return l, nil
}

// limits are what the options make of the instance's shape.
func (n *Node) limits() eni.Limits {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.shape
	may := n.may()
	l := eni.Limits{ENIs: max(min(n.room(), may), 1), V4: s.V4}
	if n.o.Prefixes && s.Prefixes && n.t.Bits4 > 0 {
		l.V4Block = eni.Block{Bits: n.t.Bits4, Size: 1 << (32 - n.t.Bits4)}
		l.V4 = 1 + (s.V4-1)*l.V4Block.Size
	}
	if l.V4Block.Size == 0 && n.memory.blocks4 { // prefixes were turned off: those that are left go as a whole
		l.V4Block = eni.Block{Bits: n.t.Bits4, Size: 1}
	}
	l.V4 = cmp.Or(n.o.Limits.V4, l.V4)
	l.NoPrimary = s.NoPrimary || s.PrimaryAlone && may > 1
	if n.o.IPv6 && s.V6 > 0 && (!n.t.MarksV6 || may > 1) { // of an ENI without a mark nobody knows its primary address
		l.V6 = s.V6
		if s.Prefixes && n.t.Bits6 > 0 && s.V6 > 1 {
			l.V6 = l.V4 // each pod gets one of both
			l.V6Block = eni.Block{Bits: n.t.Bits6, Size: l.V4 - 1}
		}
		l.V6 = cmp.Or(n.o.Limits.V6, l.V6)
	}
	return l
}

// room is how many ENIs for pods the instance may have: those that are left out take the
// room of their own network card, which may have none for others, and of the instance. One
// that a call is to finish yet is among those that it may have. The caller holds the lock.
func (n *Node) room() int {
	all, others := n.most(), map[int]int{}
	for _, o := range n.memory.leftOut {
		if o.token == "" || !n.isBegun(o.token) {
			others[o.card]++
			all--
		}
	}
	switch {
	case len(n.shape.Cards) == 0 && n.shape.Builtin != nil: // the table knows the first card alone, where all places are
		return n.most() - others[0]
	case len(n.shape.Cards) == 0 || n.most() > n.shape.ENIs:
		return all
	}
	onCards := 0
	for card, most := range n.shape.Cards {
		onCards += max(most-others[card], 0)
	}
	return min(all, onCards)
}

// may is how many ENIs pods may ever have on the instance, its primary one among them, by what the
// cloud and the configuration say. What they may have on each goes by this, and not by the room
// that is left: an ENI that a look leaves out is attached all the same.
// The caller holds the lock.
func (n *Node) may() int {
	may := eni.MaxIndex + 1
	if n.t.NoIndex {
		may = eni.MaxIndex // others' ENIs count down from there
	}
	may = min(may, n.most())
	if named := n.o.Limits.ENIs; named > 0 {
		may = min(may, named)
	}
	return may
}

// most is how many ENIs the instance takes: who names more than the cloud knows better. On
// several network cards there is no place for more, though. The caller holds the lock.
func (n *Node) most() int {
	if len(n.shape.Cards) > 1 {
		return n.shape.ENIs
	}
	return max(n.shape.ENIs, n.o.Limits.ENIs)
}

// sizeV6 is how many addresses of an IPv6 prefix pods may have. Who has none need not
// know.
func (n *Node) sizeV6(ctx context.Context, raw []driver.Interface) (int, error) {
	if !slices.ContainsFunc(raw, func(r driver.Interface) bool {
		return slices.ContainsFunc(r.Blocks, func(b netip.Prefix) bool { return b.Addr().Is6() })
	}) {
		return 0, nil
	}
	l, err := n.knownLimits(ctx)
	return l.V6Block.Size, err
}
