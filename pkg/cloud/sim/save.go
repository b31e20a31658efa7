package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"slices"
	"time"
)

// saved is an account in a file.
type saved struct {
	Format    int // savedFormat
	VPC       VPC
	Made      map[string]int
	Subnets   []savedSubnet
	Groups    []Group
	Types     []Type
	Instances []Instance
	ENIs      []Interface
	Nodes     []NodeSpec
	Coming    []coming
}

// savedSubnet is a subnet with what its pools know beyond what the ENIs have.
type savedSubnet struct {
	Subnet
	Pool4, Pool6 *savedPool
	Kept         []Reservation `json:",omitempty"`
}

type savedPool struct {
	Next       netip.Addr
	Freed      []netip.Addr
	Others     []netip.Addr
	Unmanaged  int `json:"Foreign"` // as earlier releases have it
	Turn       int
	Fragmented bool
}

// happening names what is to happen, so that another process can let it happen. The zero happening
// stands for what can't be saved.
type happening struct {
	What            string
	ENI, Attachment string `json:",omitempty"`
}

// What happens later.
const (
	ready   = "ready"
	arrives = "arrives"
	leaves  = "leaves"
)

type coming struct {
	At time.Time
	happening
}

const savedFormat = 3

// Save writes the account's state as JSON: its subnets, instances and ENIs, and what is
// still to come. Options, faults, counts, tokens of calls and what was before are not in
// it. It fails while the late effect of a call is to come.
func (a *Account) Save(to io.Writer) error {
	a.lock()
	defer a.mu.Unlock()
	tx := &Tx{a: a}
	state := saved{Format: savedFormat, VPC: a.vpc, Made: a.made, Groups: tx.Groups(), Types: tx.Types(), Instances: tx.Instances(), ENIs: tx.Interfaces()}
	for _, id := range slices.Sorted(maps.Keys(a.subnets)) {
		sub := a.subnets[id]
		state.Subnets = append(state.Subnets, savedSubnet{sub.Subnet, sub.pool4.saved(), sub.pool6.saved(), sub.kept})
	}
	for _, name := range slices.Sorted(maps.Keys(a.nodes.byName)) {
		state.Nodes = append(state.Nodes, a.nodes.byName[name])
	}
	for _, e := range a.events {
		// An effect is a function, which no file can hold; without it a call would be lost.
		if e.what.What == "" {
			return errors.New("save account: the effect of a call is still to come; wait for it")
		}
		state.Coming = append(state.Coming, coming{e.at, e.what})
	}
	e := json.NewEncoder(to)
	e.SetIndent("", "\t")
	if err := e.Encode(state); err != nil {
		return fmt.Errorf("save account: %w", err)
	}
	return nil
}

func (p *pool) saved() *savedPool {
	if p == nil {
		return nil
	}
	return &savedPool{Next: p.next, Freed: p.freed, Others: p.others, Unmanaged: p.unmanaged, Turn: p.turn, Fragmented: p.fragmented}
}
