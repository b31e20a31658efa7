package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/host"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nodecache"
)

// Grow adds to the kernel what next needs and removes nothing: it comes before
// next is in the cache. It returns a line for each thing it added.
func (n Node) Grow(ctx context.Context, next *ipam.State) ([]string, error) {
	missing, err := unlinked(next)
	if err != nil {
		return nil, err
	}
	// For an ENI that lost its link the kernel can hold nothing. The others go on.
	next = withoutENIs(next, missing)
	var old *ipam.State
	_ = n.Cache.View(ctx, func(s *ipam.State) error { old = s; return nil }) // without a node state all is new
	lines, err := n.apply(ctx, fixed(next), change{addOnly: true, fresh: newToSNAT(old, next), watch: n.Watch})
	if err := errors.Join(err, n.growFast(next)); err != nil {
		return lines, err
	}
	return append(lines, forgetConnections(ctx, n.Cache.View, next)...), nil
}

// Sync is Apply for a node state of which parts are leaving: the kernel
// forgets the ENIs with the given ids, and what only gone (nil for none) asked
// for. It returns a line for each thing it changed.
func (n Node) Sync(ctx context.Context, leaving []string, gone *ipam.State) ([]string, error) {
	viewState := n.sound(n.leaving(leaving))
	obsolete := &ipam.State{}
	if gone != nil {
		obsolete = gone
	}
	var all netconf.Node
	err := n.Cache.View(ctx, func(s *ipam.State) error {
		all = netconf.NewNode(&ipam.State{Settings: s.Settings, ENIs: slices.Concat(s.ENIs, missingENIs(obsolete.ENIs, s.ENIs))})
		return nil
	})
	if err != nil {
		return nil, err
	}
	lines, err := n.apply(ctx, viewState, change{obsolete: all, watch: n.Watch, retried: true})
	return lines, errors.Join(err, n.followFast(ctx, viewState))
}

// leaving is the view of the cache without the ENIs with the ids and their addresses.
func (n Node) leaving(ids []string) view {
	return func(ctx context.Context, fn func(*ipam.State) error) error {
		return n.Cache.View(ctx, func(s *ipam.State) error { return fn(withoutENIs(s, ids)) })
	}
}

// sound is a view that fails where the node state has damaged records: what those said of pods
// would be removed from the kernel until a rebuild.
func (n Node) sound(viewState view) view {
	return func(ctx context.Context, fn func(*ipam.State) error) error {
		return viewState(ctx, func(s *ipam.State) error {
			if len(s.Damaged) > 0 {
				return n.Cache.DamagedRecord(s.Damaged[0].Cause)
			}
			return fn(s)
		})
	}
}

// withoutENIs returns the node state without the ENIs and their addresses.
func withoutENIs(s *ipam.State, leaving []string) *ipam.State {
	if len(leaving) == 0 {
		return s
	}
	c := s.Clone()
	out := map[int]bool{}
	c.ENIs = slices.DeleteFunc(c.ENIs, func(nic eni.Interface) bool {
		out[nic.Index] = slices.Contains(leaving, nic.ID)
		return out[nic.Index]
	})
	c.Addresses = slices.DeleteFunc(c.Addresses, func(a eni.Address) bool { return out[a.ENI] })
	return c
}

// missingENIs returns those of list whose device is none of have's.
func missingENIs(list, have []eni.Interface) []eni.Interface {
	return slices.DeleteFunc(slices.Clone(list), func(nic eni.Interface) bool {
		return slices.ContainsFunc(have, func(h eni.Interface) bool { return h.Device == nic.Device })
	})
}

// unlinked returns the ids of the ENIs whose links are not on the node.
func unlinked(s *ipam.State) (ids []string, err error) {
	links, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list the node's links: %w", err)
	}
	for _, nic := range s.ENIs {
		if !slices.ContainsFunc(links, func(l net.Interface) bool { return l.Name == nic.Device }) {
			ids = append(ids, nic.ID)
		}
	}
	return ids, nil
}

// Links returns the links that ENIs may have on the node by MAC in the usual form, with name and
// MTU, as ENIs without the rest.
func (n Node) Links(context.Context) (map[string]eni.Interface, error) {
	h, err := host.New()
	if err != nil {
		return nil, err
	}
	defer h.Close()
	return h.NICs()
}

// Occupancy reads what the kernel holds for single addresses, whoever's it is. Without
// a node cache that can be used, all of it, it looks into all pods for their addresses.
func (n Node) Occupancy(ctx context.Context) (netconf.Occupancy, error) {
	owners := map[eni.Key]bool{}
	err := n.Cache.View(ctx, func(s *ipam.State) error {
		for _, a := range s.Used() {
			owners[a.Owner.Key] = len(s.Damaged) == 0
		}
		return nil
	})
	if err != nil && !nodecache.Unusable(err) {
		return netconf.Occupancy{}, err
	}
	h, err := host.New()
	if err != nil {
		return netconf.Occupancy{}, err
	}
	defer h.Close()
	return h.Occupancy(n.Now(), func(k eni.Key) bool { return owners[k] })
}
