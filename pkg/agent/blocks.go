package agent

import (
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/pool"
)

// block is what goes back to the cloud together: the addresses of an ENI whose first
// bits are the same, or a single one where they don't come in blocks.
type block struct {
	eni  int // device index
	bits netip.Prefix
}

// inBlocks tells whether any addresses come in blocks, or go back in them.
func (v *view) inBlocks() bool { return v.limits.V4Block.Size > 0 || v.limits.V6Block.Size > 0 }

// hides tells whether the subnet may have blocks although it shows less than one: what is
// reserved for them it may leave out.
func (v *view) hides(n cloud.Subnet) bool {
	return n.Reserves && v.inBlocks() && n.Free < max(v.limits.V4Block.Size, 1)
}

// mayGive returns how many addresses a plan counts on in the subnet. Where it may hide
// blocks that is an ENI full of them: whether there are any only a call tells, and what
// is refused is not asked for again before the subnet's back-off is over.
func (v *view) mayGive(n cloud.Subnet) int {
	if v.hides(n) {
		return n.Free + v.limits.V4
	}
	return n.Free
}

// takesNew tells whether a new ENI is worth a try in the subnet. Its primary address is
// no block's; and where another subnet shows enough for blocks, that is surer.
func (v *view) takesNew(n cloud.Subnet) bool {
	if !v.hides(n) {
		return true
	}
	surer := func(other cloud.Subnet) bool {
		return other.New && !v.hides(other) && other.Free > v.limits.V4Block.Size
	}
	return n.Free > 0 && !slices.ContainsFunc(v.subnets, surer)
}

// block returns the block of an address of the ENI with the index.
func (v *view) block(index int, addr netip.Addr) block {
	bits := addr.BitLen()
	if b := v.limits.Block(eni.FamilyOf(addr)); b.Size > 0 {
		bits = b.Bits
	}
	p, _ := addr.Prefix(bits) // it has that many
	return block{index, p}
}

// whole returns those of the lines' addresses that go is true for and for all others
// of their blocks.
func (v *view) whole(lines []eni.Address, goes func(*eni.Address) bool) map[netip.Addr]bool {
	stays := map[block]bool{}
	for i := range lines {
		if line := &lines[i]; !goes(line) {
			stays[v.block(line.ENI, line.Addr)] = true
		}
	}
	whole := map[netip.Addr]bool{}
	for i := range lines {
		if line := &lines[i]; !stays[v.block(line.ENI, line.Addr)] {
			whole[line.Addr] = true
		}
	}
	return whole
}

// drainable returns those of the addresses that can go back. A pod may have been faster
// than the plan: then the rest of its block stays too, for the cloud takes no part.
func (v *view) drainable(cached *ipam.State, addrs []netip.Addr, now time.Duration) []netip.Addr {
	if !v.inBlocks() {
		return addrs
	}
	whole := v.whole(cached.Addresses, func(line *eni.Address) bool {
		return line.State != eni.Used && line.State != eni.Held && line.State != eni.Reserved && !cached.IsCooling(line, now) && !line.Lost
	})
	return among(addrs, whole)
}

// returnable is drainable for addresses that are on their way back: the cloud is asked
// for blocks all of which are. What it shows and the cache does not have yet is not.
func (v *view) returnable(cached *ipam.State, back []netip.Addr) []netip.Addr {
	if !v.inBlocks() {
		return back
	}
	lines := append([]eni.Address(nil), cached.Addresses...)
	known, index := knownOf(cached), map[string]int{}
	for _, nic := range cached.ENIs {
		index[nic.ID] = nic.Index
	}
	for addr, id := range v.places() {
		if at, ours := index[id]; ours && !known[addr] {
			lines = append(lines, eni.Address{Addr: addr, ENI: at})
		}
	}
	return among(back, v.whole(lines, func(line *eni.Address) bool { return line.State == eni.Releasing }))
}

// among returns those of the addresses that are in the set.
func among(addrs []netip.Addr, set map[netip.Addr]bool) []netip.Addr {
	var kept []netip.Addr
	for _, addr := range addrs {
		if set[addr] {
			kept = append(kept, addr)
		}
	}
	return kept
}

// price returns how much of a subnet's room the addresses take. Of IPv6 it has more
// blocks than anybody asks for.
func (v *view) price(addrs []netip.Addr) int {
	n, v6 := 0, 0
	for _, addr := range addrs {
		if addr.Is6() {
			v6++
		} else {
			n++
		}
	}
	size := max(v.limits.V6Block.Size, 1)
	return n + (v6+size-1)/size
}

// crowded tells whether the ENI has no room for a block more because single addresses
// take it. cached is nil if it can't be read.
func (v *view) crowded(cached *ipam.State, e *pool.ENI, families []eni.Family) bool {
	if !v.inBlocks() || cached == nil {
		return false
	}
	lines := map[netip.Prefix]int{}
	for i := range cached.Addresses {
		if line := &cached.Addresses[i]; line.ENI == e.Index {
			lines[v.block(line.ENI, line.Addr).bits]++
		}
	}
	for _, f := range families {
		size := max(v.limits.Block(f).Size, 1)
		places := v.limits.PerENI(f) / size
		single := false
		for bits, n := range lines {
			switch {
			case eni.FamilyOf(bits.Addr()) != f:
			case n >= size:
				places--
			default:
				places -= n
				single = true
			}
		}
		if single && places <= 0 {
			return true
		}
	}
	return false
}

// recognize adds to the view what the cache has of the blocks that it shows. How many
// addresses of an IPv6 block are shown follows the limits, and those the configuration: who
// lowers them must not take the others from under pods.
func (v *view) recognize(cached *ipam.State, notes cloud.Notes) {
	id := ids(cached)
	for i := range v.enis {
		nic := &v.enis[i]
		if at := slices.IndexFunc(cached.ENIs, func(have eni.Interface) bool { return have.ID == nic.ID }); at >= 0 && electAgain(nic, cached.ENIs[at].V6) {
			v.at, v.agrees = nil, false
		}
		gone := notes.Gone[nic.ID]
		var more []netip.Addr
		for k := range cached.Addresses {
			line := &cached.Addresses[k]
			within := func(b netip.Prefix) bool { return b.Contains(line.Addr) && !slices.Contains(gone, line.Addr) }
			if id[line.ENI] == nic.ID && slices.ContainsFunc(nic.Partial, within) && !slices.Contains(nic.Addresses, line.Addr) {
				more = append(more, line.Addr)
			}
		}
		if len(more) > 0 {
			nic.Addresses = append(slices.Clone(nic.Addresses), more...)
			v.at, v.agrees = nil, false
		}
	}
}

// electAgain makes the primary IPv6 address of the view's ENI the one that the cache has, as long
// as the ENI has it: where the cloud does not tell which one it is, a later process may take
// another, which a pod has by then.
func electAgain(nic *cloud.Interface, cached eni.Net) bool {
	at := slices.Index(nic.Addresses, cached.Primary.Addr())
	if at < 0 || !nic.V6.IsValid() {
		return false
	}
	nic.Addresses = slices.Clone(nic.Addresses)
	nic.Addresses[at] = nic.V6.Primary.Addr()
	slices.SortFunc(nic.Addresses, netip.Addr.Compare)
	nic.V6 = cached
	return true
}
