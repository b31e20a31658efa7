package sim

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// Snapshot is the truth of an account at one moment.
type Snapshot struct {
	Nodes   map[string][]cloud.Interface // by node, in the order of their creation
	Subnets []cloud.Subnet               // by ID, each of them as if New
	Owners  map[netip.Addr]string        // the ENI of every address, primary ones too
}

// Snapshot returns the truth, without lag and faults.
func (a *Account) Snapshot() Snapshot {
	a.lock()
	defer a.mu.Unlock()
	s := Snapshot{Nodes: map[string][]cloud.Interface{}, Owners: map[netip.Addr]string{}}
	for name, m := range a.machines {
		for _, n := range m.enis {
			s.Nodes[name] = append(s.Nodes[name], n.shown())
		}
	}
	for addr, n := range a.owner {
		s.Owners[addr] = n.ID
	}
	for _, sub := range a.subnets {
		s.Subnets = append(s.Subnets, sub.view(sub.free(), true))
	}
	slices.SortFunc(s.Subnets, func(a, b cloud.Subnet) int { return strings.Compare(a.ID, b.ID) })
	return s
}

// Attached returns what the node truly has, without lag and faults, in the order of
// creation. It is for looking at: nothing in it may be changed.
func (a *Account) Attached(node string) []cloud.Interface {
	a.lock()
	defer a.mu.Unlock()
	m := a.machines[node]
	if m == nil {
		return nil
	}
	list := make([]cloud.Interface, len(m.enis))
	for i, n := range m.enis {
		list[i] = n.Interface
	}
	return list
}

// Calls returns how many calls of each method there were, failed ones too.
func (a *Account) Calls() map[string]int {
	a.lock()
	defer a.mu.Unlock()
	return maps.Clone(a.calls)
}

// Check returns what is wrong with the account: an address on two ENIs or outside
// of its subnet, a limit exceeded, numbers that don't add up, a Network that
// holds something else.
func (a *Account) Check() error {
	a.lock()
	defer a.mu.Unlock()
	return a.check()
}

func (a *Account) check() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if a.o.MaxENIs > 0 && len(a.enis) > a.o.MaxENIs {
		bad("the account has %d ENIs, it may have %d", len(a.enis), a.o.MaxENIs)
	}
	used := map[netip.Addr]string{}
	listed := 0
	for _, m := range a.machines {
		listed += len(m.enis)
		m.check(bad)
		for _, n := range m.enis {
			if a.enis[n.ID] != n || n.Node != m.Name {
				bad("ENI %s of node %s is not in the account", n.ID, m.Name)
			}
			for _, addr := range n.all() {
				if other, ok := used[addr]; ok {
					bad("address %s is on ENI %s and on ENI %s", addr, other, n.ID)
				}
				used[addr] = n.ID
				if a.owner[addr] != n {
					bad("address %s of ENI %s is another's in the account's book", addr, n.ID)
				}
				a.subnets[n.Subnet].checkUse(addr, bad)
			}
		}
	}
	if listed != len(a.enis) || len(used) != len(a.owner) {
		bad("nodes have %d ENIs and %d addresses, the account %d and %d", listed, len(used), len(a.enis), len(a.owner))
	}
	delegated := a.delegated(bad)
	for _, s := range a.subnets {
		for _, f := range s.families() {
			if p := s.pool(f); len(p.Blocks) != delegated[p] {
				bad("subnet %s: ENIs have %d blocks of it, it has given %d", s.ID, delegated[p], len(p.Blocks))
			}
			if err := s.pool(f).check(used); err != nil {
				bad("subnet %s: %w", s.ID, err)
			}
		}
	}
	return errors.Join(append(errs, a.checkWires())...)
}

type complain func(format string, args ...any)

// check looks at a node's limits, indexes and tokens.
func (m *machine) check(bad complain) {
	indexes, tokens := map[int]bool{}, map[string]bool{}
	for i, n := range m.enis {
		if n.Index >= m.Limits.ENIs || n.Index >= 0 && indexes[n.Index] {
			bad("node %s: ENI %s is at index %d, which is taken or beyond %d ENIs", m.Name, n.ID, n.Index, m.Limits.ENIs)
		}
		if (i == 0) != (n.Index == 0) || n.Ours == (i == 0) {
			bad("node %s: ENI %s at index %d is number %d", m.Name, n.ID, n.Index, i)
		}
		if n.Ours && tokens[n.Token] {
			bad("node %s: token %q has made two ENIs", m.Name, n.Token)
		}
		indexes[n.Index], tokens[n.Token] = true, true
		n.check(m.Limits, bad)
		if !slices.IsSortedFunc(n.Addresses, netip.Addr.Compare) {
			bad("addresses of ENI %s are not in order: %v", n.ID, n.Addresses)
		}
	}
}

// checkUse tells whether the address may be on an ENI of the subnet.
func (s *subnet) checkUse(addr netip.Addr, bad complain) {
	p := s.pool(eni.FamilyOf(addr))
	switch {
	case p == nil || !p.net.Contains(addr):
		bad("address %s is not of subnet %s", addr, s.ID)
	case p.reserved[addr]:
		bad("address %s is reserved in subnet %s", addr, s.ID)
	case p.Next.IsValid() && !addr.Less(p.Next) && !p.delegated(addr):
		bad("address %s is used, and subnet %s would give it out", addr, s.ID)
	}
}
