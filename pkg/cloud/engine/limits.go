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

// Limits implements cloud.Cloud. It describes the ENIs first, if that was not done yet: those
// that are left out take room.
func (n *Node) Limits(ctx context.Context) (l eni.Limits, err error) {
	defer nameError(&err, "Limits", "")
	if err := n.askShape(ctx); err != nil {
		return eni.Limits{}, err
	}
	n.mu.Lock()
	one := n.shape.ENIs == 1 // whatever a describe would show
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
	self, err := n.findSelf(ctx)
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

// knownLimits returns the limits, and asks for the shape only if it is not known.
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
		return eni.Limits{}, errorf(cloud.ErrUnavailable, "bad answer: nothing in it tells how many addresses an ENI may have%s", fix)
	}
	return l, nil
}

// limits returns what the options make of the instance's shape.
func (n *Node) limits() eni.Limits {
	n.mu.Lock()
	defer n.mu.Unlock()
	shape := n.shape
	may := n.mostForPods()
	limits := eni.Limits{ENIs: max(min(n.roomForENIs(), may), 1), V4: shape.V4}
	if n.o.Prefixes && shape.Prefixes && n.t.Bits4 > 0 {
		limits.V4Block = eni.Block{Bits: n.t.Bits4, Size: 1 << (32 - n.t.Bits4)}
		limits.V4 = 1 + (shape.V4-1)*limits.V4Block.Size
	}
	if limits.V4Block.Size == 0 && n.memory.blocks4 { // prefixes were turned off: those that are left go as a whole
		limits.V4Block = eni.Block{Bits: n.t.Bits4, Size: 1}
	}
	limits.V4 = cmp.Or(n.o.Limits.V4, limits.V4)
	limits.NoPrimary = shape.NoPrimary || shape.PrimaryAlone && may > 1
	if n.o.IPv6 && shape.V6 > 0 && (!n.t.MarksV6 || may > 1) { // of an ENI without a mark nobody knows its primary address
		limits.V6 = shape.V6
		if shape.Prefixes && n.t.Bits6 > 0 && shape.V6 > 1 {
			limits.V6 = limits.V4 // each pod gets one of both
			limits.V6Block = eni.Block{Bits: n.t.Bits6, Size: limits.V4 - 1}
		}
		limits.V6 = cmp.Or(n.o.Limits.V6, limits.V6)
	}
	return limits
}

// roomForENIs is how many ENIs for pods the instance may have now. ENIs that are left out take
// room of the instance and of their own network card, unless a call is still to finish them. The
// caller holds the lock.
func (n *Node) roomForENIs() int {
	all, others := n.mostENIs(), map[int]int{}
	for _, o := range n.memory.leftOut {
		if o.token == "" || !n.isBegun(o.token) {
			others[o.card]++
			all--
		}
	}
	switch {
	case len(n.shape.Cards) == 0 && n.shape.Builtin != nil: // the table knows the first card alone, where all places are
		return n.mostENIs() - others[0]
	case len(n.shape.Cards) == 0 || n.mostENIs() > n.shape.ENIs:
		return all
	}
	onCards := 0
	for card, most := range n.shape.Cards {
		onCards += max(most-others[card], 0)
	}
	return min(all, onCards)
}

// mostForPods is how many ENIs with pods the instance can have at all, its primary one among
// them, by the cloud and the configuration. What each of them can carry depends on this number,
// not on the room that is left now, so that it does not change when an ENI is left out. The
// caller holds the lock.
func (n *Node) mostForPods() int {
	may := eni.MaxIndex + 1
	if n.t.NoIndex {
		may = eni.MaxIndex // others' ENIs count down from there
	}
	may = min(may, n.mostENIs())
	if named := n.o.Limits.ENIs; named > 0 {
		may = min(may, named)
	}
	return may
}

// mostENIs is how many ENIs the instance takes. If the configuration has a larger number than the
// cloud tells, it counts, except on several network cards, which have no places for more. The
// caller holds the lock.
func (n *Node) mostENIs() int {
	if len(n.shape.Cards) > 1 {
		return n.shape.ENIs
	}
	return max(n.shape.ENIs, n.o.Limits.ENIs)
}

// sizeV6 is how many addresses of an IPv6 prefix pods may have. It is 0, without asking for the
// limits, if no ENI has such a prefix.
func (n *Node) sizeV6(ctx context.Context, raw []driver.Interface) (int, error) {
	if !slices.ContainsFunc(raw, func(r driver.Interface) bool {
		return slices.ContainsFunc(r.Blocks, func(b netip.Prefix) bool { return b.Addr().Is6() })
	}) {
		return 0, nil
	}
	l, err := n.knownLimits(ctx)
	return l.V6Block.Size, err
}

// recallLimits takes what an earlier process was told of the instance. Where addresses come in prefixes it does not tell the
// shape. The caller holds the lock.
func (n *Node) recallLimits(l eni.Limits) {
	if n.shape.ENIs == 0 && l.V4Block.Size <= 1 && l.V6Block.Size <= 1 {
		n.shape.ENIs, n.shape.V4, n.shape.V6, n.shape.NoPrimary = l.ENIs, l.V4, l.V6, l.NoPrimary
	}
}
