package pool

import (
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/eni"
	"pgregory.net/rapid"
)

// anyBlocks lets the addresses of some families come in blocks. lines numbers those
// of an ENI from a multiple of 256 on, so that they lie in whole blocks and a rest.
func anyBlocks(t *rapid.T, l eni.Limits) eni.Limits {
	if !rapid.Bool().Draw(t, "blocks") {
		return l
	}
	if often(t, "v4 blocks") {
		l.V4Block = eni.Block{Bits: 30, Size: 4}
		l.V4 = rapid.IntRange(0, 6).Draw(t, "v4 places")*4 + rapid.IntRange(1, 2).Draw(t, "v4 rest")
	}
	l.V6Block = rapid.SampledFrom([]eni.Block{{}, {Bits: 126, Size: 4}, {Bits: 125, Size: 8}, {Bits: 120, Size: 20}}).Draw(t, "v6 blocks")
	if size := l.V6Block.Size; size > 0 {
		l.V6 = rapid.SampledFrom([]int{1, 1, 2, 3}).Draw(t, "v6 places")*size + 1
	}
	return l
}

func inBlocks(l eni.Limits, families []eni.Family) bool {
	return slices.ContainsFunc(families, func(f eni.Family) bool { return l.Block(f).Size > 1 })
}

// blocksOf returns the addresses of the family on the ENI by the bits they share, each
// alone where they don't come in blocks.
func blocksOf(l eni.Limits, e ENI, f eni.Family) map[netip.Prefix][]Address {
	bits := l.Block(f).Bits
	if bits == 0 {
		bits = f.Bits()
	}
	blocks := map[netip.Prefix][]Address{}
	for _, a := range e.Addresses {
		if a.Family() == f {
			at := netip.PrefixFrom(a.Addr, bits).Masked()
			blocks[at] = append(blocks[at], a)
		}
	}
	return blocks
}

// roomOn returns how many addresses of the family the ENI may still get, all of them
// in blocks: a single one takes the room of a block, but beside the one prefix of IPv6 that an ENI needs there
// is room for single ones of others. What is planned is planned.
func roomOn(l eni.Limits, e ENI, f eni.Family, planned int) int {
	size := max(l.Block(f).Size, 1)
	free := l.PerENI(f) / size
	for _, block := range blocksOf(l, e, f) {
		switch {
		case len(block) >= size || slices.ContainsFunc(block, func(a Address) bool { return a.Lost }):
			free--
		case f == eni.IPv6 && !slices.ContainsFunc(block, func(a Address) bool { return a.State != eni.Held && !a.IsKept() }):
		default:
			free -= len(block)
		}
	}
	for _, n := range []int{comingOf(e, f), planned} {
		free -= n/size + n%size
	}
	return free * size
}

// alike lets most blocks be in one state, as they mostly are.
func alike(list []Address, b eni.Block) []Address {
	for i := 1; i < len(list); i++ {
		before := list[i-1]
		if a := &list[i]; netip.PrefixFrom(a.Addr, b.Bits).Masked().Contains(before.Addr) && a.State != eni.Used && before.State != eni.Used {
			a.State, a.Committed = before.State, before.Committed
		}
	}
	return list
}

// checkWhole: what goes back goes with all that shares its bits, and so does what is
// taken back.
func (k trial) checkWhole(t *rapid.T, e ENI, step Step) {
	for _, f := range k.s.Families {
		for bits, block := range blocksOf(k.s.Limits, e, f) {
			in := slices.ContainsFunc(block, func(a Address) bool { return slices.Contains(step.Addrs, a.Addr) })
			for _, a := range block {
				named := slices.Contains(step.Addrs, a.Addr)
				if in && !named && (step.Do == Release && a.State != eni.Releasing || step.Do == Restore && a.State == eni.Releasing) {
					t.Fatalf("%s of a part of %s: %+v", step.Do, bits, step)
				}
			}
		}
	}
}

// slack is how many slots a plan may go beyond what is asked for: the rest of a block.
func (k trial) slack() int {
	n := 0
	for _, f := range k.s.Families {
		n = max(n, k.s.Limits.Block(f).Size-1)
	}
	if n == 0 {
		return 0
	}
	for _, step := range k.steps { // what can't go stays
		if step.Do == Restore {
			n += len(step.Addrs)
		}
	}
	return n
}

// sure returns how many slots there are when what the plan asks for does not come.
func (k trial) sure() int {
	steps := slices.DeleteFunc(slices.Clone(k.steps), func(s Step) bool { return s.Do == Assign || s.Do == Create })
	there, _ := sum(k.c, applied(k.s, steps))
	return there
}

// checkBlocks: no idle block of the scarce family is kept that is not wanted, surplus slots being too many without what
// the plan brings. What is released of ENIs that it brings addresses to is the next plan's matter.
func (k trial) checkBlocks(t *rapid.T, surplus int) {
	for _, e := range k.next.ENIs {
		grows := slices.ContainsFunc(k.steps, func(s Step) bool { return s.ENI == e.ID && s.Do < Create })
		if _, had := find(k.s, e.ID); !had || e.Busy || e.Stays || grows || !carries(k.c, k.s.Limits, e) {
			continue
		}
		for bits, block := range blocksOf(k.s.Limits, e, scarceFamily(k.s.Families)) {
			idle := !slices.ContainsFunc(block, func(a Address) bool { return a.State != eni.Free })
			if idle && len(block) <= surplus && len(block) <= slotsOn(k.next, e) && k.idleSlots(e) >= len(block) {
				t.Fatalf("%d slots too many, and %s on %s is idle", surplus, bits, e.ID)
			}
		}
	}
}

// idleSlots returns how many more pods the ENI is enough for.
func (k trial) idleSlots(e ENI) int {
	n := 1 << 20
	for _, f := range k.s.Families {
		n = min(n, number(e, f, func(a Address) bool { return usable(a) && a.State == eni.Free }))
	}
	return n
}

// checkRest: where addresses come in blocks the first plan may bring some slots too
// many, which let smaller blocks go in the next. But what has come never goes, nor the
// other way round.
func (k trial) checkRest(t *rapid.T, steps []Step) {
	gave := slices.ContainsFunc(k.steps, func(s Step) bool { return s.Do == Delete })
	for range 3 {
		for _, step := range steps {
			grows := step.Do == Create || step.Do == Assign && !(k.c.Mode == Burstable && gave)
			if grows {
				t.Fatalf("first %+v\nthen %+v", k.steps, steps)
			}
		}
		gave = gave || slices.ContainsFunc(steps, func(s Step) bool { return s.Do == Delete })
		k.next = applied(k.next, steps)
		if steps = Plan(k.c, k.next, k.target); len(steps) == 0 {
			return
		}
	}
	t.Fatalf("first %+v\nand at last %+v", k.steps, steps)
}
