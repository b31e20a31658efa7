package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
)

// ranges returns subnets whose ranges are known, or asks for them. Free may be old.
func (n *Node) ranges(ctx context.Context, ids []string) (map[string]driver.Subnet, error) {
	known := map[string]driver.Subnet{}
	var unknown []string
	for _, id := range ids {
		if s, found := n.known.get(id); found {
			known[id] = s
		} else if id != "" && !slices.Contains(unknown, id) {
			unknown = append(unknown, id)
		}
	}
	asked, err := n.describeSubnets(ctx, driver.SubnetFilter{IDs: unknown})
	for _, s := range asked {
		known[s.ID] = s
	}
	return known, err
}

// rangesOf returns the subnets of ENIs. Without those of ENIs that the node needs there is
// nothing to go by. Others may lie anywhere, also where the role may not look: what is
// refused of them is why they are left out, by subnet, and asked for again later.
func (n *Node) rangesOf(ctx context.Context, raw []driver.Interface, needs func(driver.Interface) bool) (known map[string]driver.Subnet, refused map[string]error, err error) {
	refused = map[string]error{}
	var needed, others []string
	for _, r := range raw {
		if needs(r) {
			needed = append(needed, r.Subnet)
		}
	}
	for _, r := range raw {
		if slices.Contains(needed, r.Subnet) || slices.Contains(others, r.Subnet) {
			continue
		}
		if why := n.known.refusal(r.Subnet, n.clock.Now()); why != nil {
			refused[r.Subnet] = why
			continue
		}
		others = append(others, r.Subnet)
	}
	known, err = n.ranges(ctx, slices.Concat(needed, others))
	if isRefused(err) && len(others) > 0 {
		if known, err = n.ranges(ctx, needed); err != nil {
			return known, refused, err
		}
		for _, id := range others {
			one, err := n.ranges(ctx, []string{id})
			switch {
			case isRefused(err):
				refused[id] = err
				n.known.refuse(id, err, n.clock.Now().Add(refusedFor))
			case err != nil:
				return known, refused, err
			default:
				known[id] = one[id]
			}
		}
	}
	if err != nil {
		return known, refused, err
	}
	return known, refused, n.askGrown(ctx, raw, needed, known)
}

// askGrown asks again for subnets that have got an IPv6 range since they were asked for, as
// a primary address outside of it tells; the IPv4 range they have for life.
func (n *Node) askGrown(ctx context.Context, raw []driver.Interface, needed []string, known map[string]driver.Subnet) error {
	var ours, others []string
	for _, r := range raw {
		in := known[r.Subnet]
		if _, wrong := netOf(in, r.V6); in.ID == "" || wrong == nil {
			continue
		}
		if slices.Contains(needed, in.ID) {
			ours = append(ours, in.ID)
		} else {
			others = append(others, in.ID)
		}
	}
	asked, err := n.describeSubnets(ctx, driver.SubnetFilter{IDs: sorted(slices.Concat(ours, others))})
	if isRefused(err) && len(others) > 0 { // the ENIs there are left out
		asked, err = n.describeSubnets(ctx, driver.SubnetFilter{IDs: sorted(ours)})
	}
	for _, s := range asked {
		known[s.ID] = s
	}
	return err
}

// isRefused tells whether a describe fails because of what it asks for.
func isRefused(err error) bool {
	return errors.Is(err, cloud.ErrForbidden) || errors.Is(err, cloud.ErrNotFound)
}

// ranges are what of subnets never changes, for all nodes of a Region.
type ranges struct {
	mu      sync.Mutex
	byID    map[string]driver.Subnet
	refused map[string]refusal
}

// refusal is why a subnet could not be described, and how long that is taken for granted.
type refusal struct {
	why   error
	until time.Time
}

func newRanges() *ranges {
	return &ranges{byID: map[string]driver.Subnet{}, refused: map[string]refusal{}}
}

func (r *ranges) keep(list []driver.Subnet) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range list {
		r.byID[s.ID] = s
	}
}

func (r *ranges) get(id string) (driver.Subnet, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, found := r.byID[id]
	return s, found
}

func (r *ranges) refuse(id string, why error, until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refused[id] = refusal{why, until}
}

// refusal returns why the subnet was refused a short while ago, nil if it was not or is
// known.
func (r *ranges) refusal(id string, now time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	was, refused := r.refused[id]
	if _, known := r.byID[id]; known || refused && !now.Before(was.until) {
		delete(r.refused, id)
		return nil
	}
	return was.why
}
