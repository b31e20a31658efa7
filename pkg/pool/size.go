package pool

import (
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/scale"
)

// Most returns how many slots the node can ever hold: those of the ENIs that may
// carry pods, without TopologyPlaces, within MaxAllocate, MaxAllocateENI, MaxIPsPerENI and maxPods. A maxPods of 0 is not known. Where
// addresses come in blocks there may be some more, less than a block.
func (c Config) Most(l eni.Limits, families []eni.Family, maxPods int) int {
	l = c.Within(l)
	slots := max(0, c.mostCarriers(l)*perENI(l, families)-c.keptSlots(l, families))
	for _, limit := range []int{c.MaxAllocate, maxPods} {
		if limit > 0 {
			slots = min(slots, limit)
		}
	}
	return slots
}

// keptSlots returns how many slots TopologyPlaces come to: a single address takes as much of an ENI as a whole block.
func (c Config) keptSlots(l eni.Limits, families []eni.Family) int {
	if c.TopologyPlaces == 0 {
		return 0
	}
	return c.TopologyPlaces * unitSize(l, scarceFamily(families))
}

// KeptENIs returns how many whole ENIs hold TopologyPlaces.
func (c Config) KeptENIs(l eni.Limits, families []eni.Family) int {
	l = c.Within(l)
	per := perENI(l, families)
	if per == 0 {
		return 0
	}
	return ceilDiv(c.keptSlots(l, families), per)
}

// forPods returns how many slots the pods that the node may run can do with, 0 if not known.
func (s Snapshot) forPods() int {
	if s.MaxPods == 0 {
		return 0
	}
	return s.MaxPods + s.Cooling
}

// FirstIndex returns the lowest device index whose addresses are for pods. FirstENI 1 leaves the
// primary ENI out; the limits may say that it gets none anyway.
func (c Config) FirstIndex(l eni.Limits) int { return max(c.FirstENI, l.FirstIndex()) }

// SlotsPerENI returns how many slots an ENI for pods carries, within MaxIPsPerENI.
func (c Config) SlotsPerENI(l eni.Limits, families []eni.Family) int {
	return perENI(c.Within(l), families)
}

// perENI returns how many slots an ENI carries, by its scarcest family.
func perENI(l eni.Limits, families []eni.Family) int {
	if len(families) == 0 {
		return 0
	}
	n := wholePerENI(l, families[0])
	for _, f := range families {
		n = min(n, wholePerENI(l, f))
	}
	return n
}

// Sizing returns the configuration by which package scale sizes the pool in the mode. All modes
// are one equation, that of scale.Request with B the batch, mf the share to keep free and U the
// demand, B*ceil(mf + U/B):
//
//   - Burstable keeps Multiple ENIs of P slots free and has only whole ENIs, so B is
//     P and mf is Multiple: P*(Multiple + ceil(U/P)), the rule of whole ENIs.
//   - BestEffort keeps PreAllocate slots free, to the slot: B is 1 and mf is
//     PreAllocate, with MinAllocate as the smallest pool.
//
// What dampens the pool is the same in all modes. The other strategies go by
// batches and counting primaries aligns to them, so they are for Batch alone.
func (c Config) Sizing(l eni.Limits, families []eni.Family) scale.Config {
	s := c.Scale
	switch c.Mode {
	case Batch:
		return s.Normal()
	case Burstable:
		s.Batch, s.MinFree, s.MinPool = max(1, perENI(c.Within(l), families)), 100*c.Multiple, 0
	case BestEffort:
		// At least one: without a free address each pod would wait for the cloud.
		s.Batch, s.MinFree, s.MinPool = 1, 100*max(1, c.PreAllocate), c.MinAllocate
	}
	s.Strategy, s.CountPrimaries = scale.Equation, false
	s.MaxFree = s.MinFree + 100
	return s.Normal()
}
