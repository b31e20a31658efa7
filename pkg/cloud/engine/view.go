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
	nics     []nic // the primary one first, the others in the order of their creation
	out      []cloud.Quarantined
	primary  string // why the primary ENI is left out, "" if it is not
	occupied map[place]string
	// leftOut are the ENIs at the instance that are not among nics: pods can't use them, what
	// is told of them can't be right, or others are attaching them.
	leftOut []outsider
}

// outsider is an ENI at the instance that is left out.
type outsider struct {
	card  int
	token string // of the intent that it was made for, "" for another's or one that pods may not have
}

// hasPrimary returns an error if the view lacks the node's primary ENI, without which it is of no use.
func (v view) hasPrimary(self driver.Self, api string) error {
	if len(v.nics) > 0 && v.nics[0].raw.Primary {
		return nil
	}
	if v.primary != "" {
		return errorf(cloud.ErrUnavailable, "bad answer: the node's primary ENI %s", v.primary)
	}
	return &driver.Error{Kind: cloud.ErrNotFound, Why: cloud.NoSuchInstance,
		Detail: fmt.Sprintf("%s shows no ENI of instance %s: is that its ID, and this its region?", api, self.Instance)}
}

// makeView makes the node's ENIs of what a describe, requested at that time, has told. It checks
// everything, and leaves out what can't be right.
func (n *Node) makeView(ctx context.Context, self driver.Self, raw []driver.Interface, asked time.Time) (view, error) {
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
	n.noteAway(self, asked, raw...)
	seen := view{occupied: map[place]string{}}
	for _, one := range raw {
		if one.Index >= 0 && one.Instance == self.Instance {
			seen.occupied[place{one.Card, one.Index}] = one.ID
		}
		switch {
		case one.Unmanaged != "" && !one.Primary:
			continue
		case !one.Primary && !one.Mark.Ours(self.Instance) && one.State != driver.Attached:
			continue // an ENI of others that is on its way to or from the instance, or not there at all
		}
		if why := refused[one.Subnet]; why != nil {
			seen.leaveOut(one, fmt.Sprintf("subnet %s may not be described: %s", one.Subnet, detailOf(why)))
			continue
		}
		i, bad, err := n.readENI(self, one, subnets[one.Subnet], size6)
		i.read = asked
		seen.out = append(seen.out, bad...)
		if err != nil {
			seen.leaveOut(one, err.Error())
			continue
		}
		seen.nics = append(seen.nics, i)
	}
	slices.SortStableFunc(seen.nics, byCreation)
	n.numberENIs(seen.nics)
	seen.leaveOutClashing(func(i nic) []netip.Addr {
		gone, _ := n.recentDeeds(i, unassigned)
		return gone
	}, n.lastPlaced(asked))
	seen.countLeftOut(self, raw)
	return seen, nil
}

// countLeftOut notes which ENIs at the instance are left out. Those that others are detaching do not
// count: their room is about to be free.
func (v *view) countLeftOut(self driver.Self, raw []driver.Interface) {
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

// knowCards makes sure that the instance's network cards are known if an ENI of ours is on a further
// one: its index depends on the cards before. The built-in table only has the first card of a type.
// If it is all there is, the describe fails, rather than leave out ENIs whose addresses pods have.
func (n *Node) knowCards(ctx context.Context, self driver.Self, raw []driver.Interface) error {
	// Those of others on further cards do not matter: without their index they are left out.
	// Those of others on further cards do not matter: without their index they are left out.
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
		return errorf(cloud.ErrUnavailable, "it has ENIs on further network cards, and its cards are not known: %v", n.shape.Builtin)
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

// byCreation orders ENIs: the primary one first, then by the cloud's time of creation, which may be
// in seconds, then by the node's time in the mark.
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
