package sim

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/eni"
)

// saved is an account as a file holds it.
type saved struct {
	Format  int // savedFormat
	Made    int
	Subnets []*subnet
	Nodes   []savedNode
	Late    []lateCall
}

type savedNode struct {
	Machine
	ENIs []*nic
}

const savedFormat = 1

// Save writes the account's state as JSON: its subnets, nodes and ENIs, and the
// calls whose effect is still to come. Options, faults and counts are not in it.
func (a *Account) Save(w io.Writer) error {
	a.lock()
	defer a.mu.Unlock()
	s := saved{Format: savedFormat, Made: a.made, Late: a.late}
	s.Subnets = slices.SortedFunc(maps.Values(a.subnets), func(a, b *subnet) int { return strings.Compare(a.ID, b.ID) })
	for _, name := range slices.Sorted(maps.Keys(a.machines)) {
		s.Nodes = append(s.Nodes, savedNode{a.machines[name].Machine, a.machines[name].enis})
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "\t")
	if err := e.Encode(s); err != nil {
		return fmt.Errorf("save account: %w", err)
	}
	return nil
}

// Load makes an account of what Save has written. It changes nothing in a
// Network: that must be the one that the account had, in the same process, and
// Load fails where it holds something else. A Network can't be opened again by
// another process, so there an account lives on in memory only.
func Load(o Options, r io.Reader) (*Account, error) {
	var s saved
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	err := d.Decode(&s)
	if err == nil && s.Format != savedFormat {
		err = fmt.Errorf("its format is %d, this version reads %d", s.Format, savedFormat)
	}
	a := NewAccount(o)
	if err == nil {
		err = a.restore(s)
	}
	if err != nil {
		return nil, fmt.Errorf("load account: %w", err)
	}
	return a, nil
}

func (a *Account) restore(s saved) error {
	a.lock()
	defer a.mu.Unlock()
	a.made, a.late = s.Made, s.Late
	for _, old := range s.Subnets {
		made, err := newSubnet(old.Subnet)
		if err != nil {
			return fmt.Errorf("subnet %s: %w", old.ID, err)
		}
		for _, f := range made.families() {
			if old.pool(f) == nil {
				return fmt.Errorf("subnet %s: it has no %s addresses", old.ID, f)
			}
			made.pool(f).carryOn(*old.pool(f))
		}
		a.subnets[made.ID] = made
	}
	for _, old := range s.Nodes {
		if err := a.restoreNode(old); err != nil {
			return fmt.Errorf("node %s: %w", old.Name, err)
		}
	}
	for _, s := range a.subnets {
		a.changedSubnet(s)
	}
	return a.check()
}

// carryOn gives the pool what was saved of an earlier one.
func (p *pool) carryOn(old pool) {
	p.Next, p.Freed, p.Foreign = old.Next, old.Freed, old.Foreign
	p.Blocks, p.Turn, p.Fragmented = old.Blocks, old.Turn, old.Fragmented
}

func (a *Account) restoreNode(old savedNode) error {
	a.machines[old.Name] = &machine{Machine: old.Machine}
	for _, n := range old.ENIs {
		s := a.subnets[n.Subnet]
		if s == nil || n.Node != old.Name {
			return fmt.Errorf("ENI %s is of node %s and subnet %s", n.ID, n.Node, n.Subnet)
		}
		for _, addr := range n.all() {
			p := s.pool(eni.FamilyOf(addr))
			if p == nil {
				return fmt.Errorf("address %s is not of subnet %s", addr, s.ID)
			}
			p.used++
		}
		a.add(n)
	}
	return nil
}
