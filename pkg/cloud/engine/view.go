package engine

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
)

// view is the ENIs of the node at one time.
type view struct {
	nics    []nic // the primary one first, the others in the order of their creation
	out     []cloud.Quarantined
	primary string // why the primary ENI is left out, "" if it is not
	taken   map[place]string
	// leftOut are the ENIs at the instance that are not among nics: pods can't use them, what
	// is told of them can't be right, or others are attaching them.
	leftOut []outsider
}

// outsider is an ENI at the instance that is left out.
type outsider struct {
	card  int
	token string // of the intent that it was made for, "" for another's or one that pods may not have
}

// hasPrimary tells why a view is none to work with: it lacks the node's primary ENI.
func (v view) hasPrimary(self driver.Self, api string) error {
	if len(v.nics) > 0 && v.nics[0].raw.Primary {
		return nil
	}
	if v.primary != "" {
		return because(cloud.ErrUnavailable, "bad answer: the node's primary ENI %s", v.primary)
	}
	return because(cloud.ErrNotFound, "%s shows no ENI of instance %s: is that its ID, and this its region?", api, self.Instance)
}

// understand makes ENIs of the node of what the cloud told when it was asked then. It believes
// nothing: what can't be right is left out.
func (n *Node) understand(ctx context.Context, self driver.Self, raw []driver.Interface, asked time.Time) (view, error) {
	raw = n.withMarks(raw)
	subnets, refused, err := n.rangesOf(ctx, raw, func(r driver.Interface) bool { return r.Primary || r.Mark.Ours(self.Instance) })
	if err != nil {
		return view{}, err
	}
	size6, err := n.sizeV6(ctx, raw)
	if err != nil {
		return view{}, err
	}
	if err := n.knowCards(ctx, self, raw); err != nil {
		return view{}, err
	}
	n.goesAway(self, asked, raw...)
	v := view{taken: map[place]string{}}
	for _, r := range raw {
		if r.Index >= 0 && r.Instance == self.Instance {
			v.taken[place{r.Card, r.Index}] = r.ID
		}
		switch {
		case r.Unmanaged != "" && !r.Primary:
			continue
		case !r.Primary && !r.Mark.Ours(self.Instance) && r.State != driver.Attached:
			continue // others' on their way to or from here, or not here at all
		}
		if why := refused[r.Subnet]; why != nil {
			v.leaveOut(r, fmt.Sprintf("subnet %s may not be described: %s", r.Subnet, detail(why)))
			continue
		}
		i, bad, err := n.read(self, r, subnets[r.Subnet], size6)
		i.read = asked
		v.out = append(v.out, bad...)
		if err != nil {
			v.leaveOut(r, err.Error())
			continue
		}
		v.nics = append(v.nics, i)
	}
	slices.SortStableFunc(v.nics, byCreation)
	n.number(v.nics)
	v.separate(func(i nic) []netip.Addr {
		gone, _ := n.lately(i, taken)
		return gone
	}, n.lastPlaced(asked))
	v.count(self, raw)
	return v, nil
}

// count notes what of the ENIs at the instance is left out. The room of those that others
// detach comes free.
func (v *view) count(self driver.Self, raw []driver.Interface) {
	for _, r := range raw {
		here := r.Instance == self.Instance || r.Instance == "" && r.State == driver.Attached // of an answer about the instance
		leaves := r.State == driver.Detaching && r.Unmanaged == ""
		if here && !leaves && !slices.ContainsFunc(v.nics, func(i nic) bool { return i.ID == r.ID }) {
			o := outsider{card: r.Card}
			if r.Mark.Ours(self.Instance) && r.Unmanaged == "" {
				o.token = r.Mark.Token
			}
			v.leftOut = append(v.leftOut, o)
		}
	}
}

// knowCards sees to it that the instance's network cards are known where an ENI for pods is
// on a further one: its index comes after those of the cards before. A table that knows
// instance types by their first card alone must not take such ENIs off the node. Those of
// others are no reason to show none.
func (n *Node) knowCards(ctx context.Context, self driver.Self, raw []driver.Interface) error {
	if !slices.ContainsFunc(raw, func(r driver.Interface) bool { return r.Card > 0 && r.Unmanaged == "" && r.Mark.Ours(self.Instance) }) {
		return nil
	}
	n.mu.Lock()
	known := len(n.shape.Cards) > 0
	n.mu.Unlock()
	if known {
		return nil
	}
	if err := n.askShape(ctx); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.shape.Cards) == 0 && n.shape.Builtin != nil {
		return because(cloud.ErrUnavailable, "it has ENIs on further network cards, and its cards are not known: %v", n.shape.Builtin)
	}
	return nil
}

// leaveOut quarantines an ENI.
func (v *view) leaveOut(r driver.Interface, why string) {
	v.out = append(v.out, cloud.Quarantined{ID: r.ID, Why: why})
	if r.Primary {
		v.primary = cmp.Or(v.primary, r.ID+": "+why)
	}
}

// byCreation puts the primary ENI first, then orders by the cloud's time, which may be in
// seconds, then by the node's.
func byCreation(a, b nic) int {
	return cmp.Or(compareBool(b.raw.Primary, a.raw.Primary), a.Created.Compare(b.Created),
		a.raw.Mark.Asked.Compare(b.raw.Mark.Asked), cmp.Compare(a.Index, b.Index), cmp.Compare(a.raw.Mark.Index, b.raw.Mark.Index), cmp.Compare(a.ID, b.ID))
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}
