package engine

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// Known implements cloud.Cloud. What a call has done overrides a describe that was requested
// less than Settle after it.
func (n *Node) Known() []cloud.Interface {
	n.mu.Lock()
	shown, ready, deleted := n.memory.shown, maps.Clone(n.memory.ready), maps.Clone(n.memory.deleted)
	for _, q := range n.quarantined {
		if !q.Address.IsValid() && !ready[q.ID].at.After(shown.at) {
			delete(ready, q.ID) // the describe has shown it in a way that can't be right
		}
	}
	n.mu.Unlock()
	counts := func(at time.Time) bool { return !at.Add(n.t.Times.Settle).Before(shown.at) }
	var list []nic
	show := func(i nic) {
		addrs, blocks := n.currentAddresses(i)
		i.Addresses, i.Partial = addrs, partialBlocks(blocks)
		list = append(list, i)
	}
	for _, i := range shown.nics {
		made, isMade := ready[i.ID]
		delete(ready, i.ID)
		if at, isDeleted := deleted[i.ID]; isDeleted && counts(at) {
			continue
		}
		if isMade && (made.read.After(i.read) || counts(made.at) && (i.Index < 0 || made.V6.IsValid() && !i.V6.IsValid())) {
			i = made.nic // it has more by now: an index, a primary IPv6 address
		}
		show(i)
	}
	for _, made := range ready {
		if counts(made.at) {
			show(made.nic)
		}
	}
	list = n.lastPlaced(shown.at).keepUncontradicted(list) // answers lag, or a call that takes from another ENI has not returned yet
	// The describe may have shown an ENI that is younger than one of ready.
	slices.SortStableFunc(list, byCreation)
	var out []cloud.Interface
	for _, i := range list {
		out = append(out, n.forCallers(i))
	}
	return out
}

// forCallers returns an ENI as callers see it: addresses of other subnets are not the pool's.
func (n *Node) forCallers(i nic) cloud.Interface {
	if !n.t.CrossSubnet {
		return i.Interface
	}
	out := i.Interface
	out.Addresses = nil
	for _, a := range i.Addresses {
		own := i.Net(eni.FamilyOf(a)).Primary.Masked().Contains(a) || slices.ContainsFunc(i.Pods, func(p netip.Prefix) bool { return p.Contains(a) })
		if own {
			out.Addresses = append(out.Addresses, a)
		} else {
			out.CrossSubnet = append(out.CrossSubnet, a)
		}
	}
	return out
}

// Notes implements cloud.Cloud.
func (n *Node) Notes() cloud.Notes {
	n.mu.Lock()
	defer n.mu.Unlock()
	// After the consistency window describes show it all, and the next process needs no notes.
	fresh := func(at time.Time) bool { return n.clock.Now().Sub(at) <= n.t.Times.Settle }
	notes := cloud.Notes{Listed: n.listed}
	for id, list := range n.memory.deeds {
		var gone []netip.Addr
		for a, d := range list {
			if d.was == unassigned && fresh(d.at) {
				gone = append(gone, a)
			}
		}
		if len(gone) > 0 {
			if notes.Gone == nil {
				notes.Gone = map[string][]netip.Addr{}
			}
			notes.Gone[id] = union(gone)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(n.memory.deleted)) {
		if fresh(n.memory.deleted[id]) {
			notes.Deleted = append(notes.Deleted, id)
		}
	}
	return notes
}

// Recall implements cloud.Cloud. Notes have no times, because the clock may have been set since:
// all of them count as of now, which only means that they are kept a little longer.
func (n *Node) Recall(notes cloud.Notes) {
	for id, gone := range notes.Gone {
		n.noteDeed(id, gone, nil, unassigned)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listed = notes.Listed
	n.recallLimits(notes.Limits)
	for _, id := range notes.Deleted {
		n.memory.deleted[id] = n.clock.Now()
	}
	for _, token := range notes.Begun {
		n.memory.begun[token] = true
	}
}
