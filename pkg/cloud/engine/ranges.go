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

// subnetRanges returns subnets by their IDs. It describes only those that are not known, so only what
// never changes about a subnet counts in them: Free may be old.
func (n *Node) subnetRanges(ctx context.Context, ids []string) (map[string]driver.Subnet, error) {
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

// rangesOf returns the subnets of ENIs, by their IDs. Those of ENIs that the node needs must be
// found. ENIs of others can be in any subnet, also in one that the role must not describe: refused
// has the error by subnet. For ten minutes such a subnet is not asked for again.
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
		if why := n.known.whyRefused(r.Subnet, n.clock.Now()); why != nil {
			refused[r.Subnet] = why
			continue
		}
		others = append(others, r.Subnet)
	}
	// A refusal does not say which of several subnets it is for. Then those of others are asked for
	// one by one, after those that the node needs.
	known, err = n.subnetRanges(ctx, slices.Concat(needed, others))
	if isRefused(err) && len(others) > 0 {
		if known, err = n.subnetRanges(ctx, needed); err != nil {
			return known, refused, err
		}
		for _, id := range others {
			one, err := n.subnetRanges(ctx, []string{id})
			switch {
			case isRefused(err):
				refused[id] = err
				n.known.noteRefused(id, err, n.clock.Now().Add(refusedFor))
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

// askGrown describes again the subnets that have got an IPv6 range since they were described: an
// ENI has a primary IPv6 address outside the known range. IPv4 ranges never change.
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
	asked, err := n.describeSubnets(ctx, driver.SubnetFilter{IDs: sortedSet(slices.Concat(ours, others))})
	if isRefused(err) && len(others) > 0 { // the ENIs there are left out
		asked, err = n.describeSubnets(ctx, driver.SubnetFilter{IDs: sortedSet(ours)})
	}
	for _, s := range asked {
		known[s.ID] = s
	}
	return err
}

// isRefused tells whether a describe failed because of what it asked for.
func isRefused(err error) bool {
	return errors.Is(err, cloud.ErrForbidden) || errors.Is(err, cloud.ErrNotFound)
}

// ranges keep what never changes about subnets, for all nodes of a Region.
type ranges struct {
	mu      sync.Mutex
	byID    map[string]driver.Subnet
	refused map[string]refusal
}

// refusal is why a subnet could not be described, and until when it is not asked for again.
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

func (r *ranges) noteRefused(id string, why error, until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refused[id] = refusal{why, until}
}

// whyRefused returns why a describe of the subnet was refused a short while ago, nil if none was or
// the subnet is known by now.
func (r *ranges) whyRefused(id string, now time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	was, refused := r.refused[id]
	if _, known := r.byID[id]; known || refused && !now.Before(was.until) {
		delete(r.refused, id)
		return nil
	}
	return was.why
}
