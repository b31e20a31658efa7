package sim

import (
	"fmt"
	"net/netip"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// hand is a node's place in the account at one moment.
type hand struct {
	*Tx
	m Machine
}

// Snapshot is the truth of an account of Nodes at one moment.
type Snapshot struct {
	Nodes   map[string][]cloud.Interface // by node, in the order of their creation
	Subnets []cloud.Subnet               // by ID, each of them as if New
	Owners  map[netip.Addr]string        // the ENI of every address, primary ones too
}

// Snapshot returns the truth, without lag and faults.
func (a *Account) Snapshot() Snapshot {
	a.lock()
	defer a.mu.Unlock()
	s := Snapshot{Nodes: make(map[string][]cloud.Interface, len(a.nodes.machines)), Owners: make(map[netip.Addr]string, a.inUse())}
	for name, m := range a.nodes.machines {
		s.Nodes[name] = hand{&Tx{a: a}, m}.interfaces()
		for _, i := range s.Nodes[name] {
			for _, n := range []eni.Net{i.V4, i.V6} {
				if n.IsValid() {
					s.Owners[n.Primary.Addr()] = i.ID
				}
			}
			for _, addr := range i.Addresses {
				s.Owners[addr] = i.ID
			}
		}
	}
	for _, sub := range (&Tx{a: a}).Subnets() {
		s.Subnets = append(s.Subnets, sub.view(true))
	}
	return s
}

// Attached returns what the node truly has, without lag and faults, in the order of
// creation.
func (a *Account) Attached(node string) []cloud.Interface {
	a.lock()
	defer a.mu.Unlock()
	m, known := a.nodes.machines[node]
	if !known {
		return nil
	}
	return hand{&Tx{a: a, at: a.now}, m}.interfaces()
}

// TakeAway takes a secondary address from its ENI behind its node's back, with the rest
// of its block if it is of one.
func (a *Account) TakeAway(addr netip.Addr) error {
	a.lock()
	defer a.mu.Unlock()
	for _, s := range a.subnets {
		p := s.pool(eni.FamilyOf(addr))
		if p == nil || !p.net.Contains(addr) {
			continue
		}
		block := p.block(addr)
		if n := a.byID[p.blocks[block]]; n != nil {
			return a.unassign(n, Got{Prefixes: []netip.Prefix{block}})
		}
		n := a.byID[p.used[addr]]
		if n != nil && addr != n.Primary && !(n.First6 && addr == n.V6[0]) {
			return a.unassign(n, Got{V4: []netip.Addr{addr}, V6: []netip.Addr{addr}})
		}
	}
	return fmt.Errorf("take away %s: no ENI has it as a secondary address", addr)
}

// check looks at what a node has: its indexes and tokens.
func (h hand) check(bad complain) {
	indexes, tokens := map[int]bool{}, map[string]bool{}
	for n, i := range h.InterfacesOf(h.m.Name, tagInstance, h.m.Name) {
		index := -1
		if i.Status == InUse {
			index = i.Attachment.Index
		}
		if index >= h.m.Limits.ENIs || index >= 0 && indexes[index] {
			bad("node %s: ENI %s is at index %d, which is taken or beyond %d ENIs", h.m.Name, i.ID, index, h.m.Limits.ENIs)
		}
		if (n == 0) != (index == 0) || h.made(i) == (n == 0) {
			bad("node %s: ENI %s at index %d is number %d", h.m.Name, i.ID, index, n)
		}
		if token := i.Tags[tagToken]; h.made(i) && tokens[token] {
			bad("node %s: token %q has made two ENIs", h.m.Name, token)
		}
		indexes[index], tokens[i.Tags[tagToken]] = true, true
	}
}
