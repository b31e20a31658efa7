package sim

import (
	"fmt"
	"net/netip"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// nodeView is what a read of the account says about one node.
type nodeView struct {
	*Tx
	spec NodeSpec
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
	snap := Snapshot{Nodes: make(map[string][]cloud.Interface, len(a.nodes.byName)), Owners: make(map[netip.Addr]string, a.inUse())}
	for name, m := range a.nodes.byName {
		snap.Nodes[name] = nodeView{&Tx{a: a}, m}.interfaces()
		for _, i := range snap.Nodes[name] {
			// Blocks are in Addresses one by one, but only as far as pods may have their addresses.
			for _, n := range []eni.Net{i.V4, i.V6} {
				if n.IsValid() {
					snap.Owners[n.Primary.Addr()] = i.ID
				}
			}
			for _, addr := range i.Addresses {
				snap.Owners[addr] = i.ID
			}
		}
	}
	for _, sub := range (&Tx{a: a}).Subnets() {
		snap.Subnets = append(snap.Subnets, sub.asCloudSubnet(true))
	}
	return snap
}

// Attached returns what the node truly has, without lag and faults, in the order of
// creation.
func (a *Account) Attached(node string) []cloud.Interface {
	a.lock()
	defer a.mu.Unlock()
	m, known := a.nodes.byName[node]
	if !known {
		return nil
	}
	return nodeView{&Tx{a: a, at: a.now}, m}.interfaces()
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
		block := p.blockOf(addr)
		if n := a.byID[p.blocks[block]]; n != nil {
			return a.unassignFrom(n, Got{Prefixes: []netip.Prefix{block}})
		}
		n := a.byID[p.used[addr]]
		if n != nil && addr != n.Primary && !(n.First6 && addr == n.V6[0]) {
			return a.unassignFrom(n, Got{V4: []netip.Addr{addr}, V6: []netip.Addr{addr}})
		}
	}
	return fmt.Errorf("take away %s: no ENI has it as a secondary address", addr)
}

// checkNode checks the indexes and tokens of a node's ENIs.
func (h nodeView) checkNode(bad complain) {
	indexes, tokens := map[int]bool{}, map[string]bool{}
	for n, iface := range h.InterfacesOf(h.spec.Name, tagInstance, h.spec.Name) {
		index := -1
		if iface.Status == InUse {
			index = iface.Attachment.Index
		}
		if index >= h.spec.Limits.ENIs || index >= 0 && indexes[index] {
			bad("node %s: ENI %s is at index %d, which is taken or beyond %d ENIs", h.spec.Name, iface.ID, index, h.spec.Limits.ENIs)
		}
		if (n == 0) != (index == 0) || h.isMade(iface) == (n == 0) {
			bad("node %s: ENI %s at index %d is number %d", h.spec.Name, iface.ID, index, n)
		}
		if token := iface.Tags[tagToken]; h.isMade(iface) && tokens[token] {
			bad("node %s: token %q has made two ENIs", h.spec.Name, token)
		}
		indexes[index], tokens[iface.Tags[tagToken]] = true, true
	}
}
