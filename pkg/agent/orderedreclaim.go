package agent

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/pool"
	"github.com/enipool/enipool/pkg/scale"
)

const (
	// idleEvery is how often the object is written for the number of idle slots alone: what it says may be so old.
	idleEvery = 5 * time.Minute

	// idleStep is the least change of that number that is worth a write of its own, and so is a quarter of it.
	idleStep = 2
)

// spare adds to the observation that no subnet has more and that pods of other nodes wait, as long as the operator says so.
// The node keeps what its pods need, or needed a moment ago, and exhaustedSpare; of the rest it keeps what it is not asked for. It
// is all in the object: an agent that starts in the middle of it asks for nothing back, and releases nothing twice.
func (o *ordered) spare(obs *scale.Observation, _ scale.Config, _ pool.Snapshot, _ time.Duration) {
	if !o.isTakenIn() || o.newest.Reclaim == 0 || o.cached == nil {
		return
	}
	o.countAboveWatermark(obs.Owned)
	idle := obs.Owned
	if in := askedIn(o.newest); len(in) > 0 {
		idle = o.idleIn(o.cached, in, o.Now())
	}
	obs.Exhausted, obs.Keep = true, keptOf(o.newest, obs.Owned, o.unpublished(o.cached), idle)
}

// askedIn returns the subnets in which slots are asked for that the node has not answered yet. From its ENIs elsewhere nothing goes meanwhile.
func askedIn(newest order.Object) []string {
	if newest.SeenReclaim >= newest.Reclaim {
		return nil
	}
	return newest.ReclaimIn
}

// idleIn returns how many slots that no pod uses the node has in those subnets, of a node with prefixes in whole ones.
func (o *ordered) idleIn(cached *ipam.State, in []string, now time.Duration) (sum int) {
	lies := func(nic eni.Interface) bool {
		have, known := o.view.eni(nic.ID)
		return known && nic.Index >= o.firstIndex() && slices.Contains(in, have.Subnet)
	}
	if o.view.inBlocks() {
		return o.wholeIdle(cached, lies, now)
	}
	for _, nic := range cached.ENIs {
		if lies(nic) {
			_, idle, _ := slotsOf(cached, nic.Index, now)
			sum += idle
		}
	}
	return sum
}

// keptOf returns how many slots a node keeps that has so many, whether its pods need them or not. unpublished is how
// many it has begun to release since it wrote the object, idle how many it has where they are asked for: those elsewhere help nobody.
func keptOf(newest order.Object, owned, unpublished, idle int) int {
	if newest.SeenReclaim >= newest.Reclaim { // it did what it was asked, and asked for so many since
		return newest.Spec.Slots
	}
	return max(0, owned-min(idle, max(0, newest.Reclaim-newest.SeenReclaim-unpublished)))
}

// unpublished returns how many slots go back of which the object says nothing yet.
func (o *ordered) unpublished(cached *ipam.State) int {
	var counts [eni.IPv6 + 1]int
	for i := range cached.Addresses {
		line := &cached.Addresses[i]
		if line.State == eni.Releasing && line.ENI >= o.firstIndex() && !o.going[line.Addr] {
			counts[line.Family()]++
		}
	}
	return scarcestOf(cached, counts[:])
}

// answerReclaim adds to what the object says how many slots the node could do without, and what it was asked for when it said so.
func (o *ordered) answerReclaim(k asking, asks *order.Asks, now time.Duration) {
	asks.IdleSlots, asks.IdleIn, asks.SeenReclaim = o.newest.IdleSlots, o.newest.IdleIn, o.newest.SeenReclaim
	idle, sure := o.idleSlots(k.cached, now)
	asked := o.newest.Reclaim > o.newest.SeenReclaim
	if !k.holds { // else what it releases is not published yet
		asks.SeenReclaim = o.newest.Reclaim
	}
	switch {
	case sure:
		asks.IdleSlots, asks.IdleIn = min(idle, mostSlots), o.idleBySubnet(k.cached, idle, now)
	case asked:
		asks.IdleSlots, asks.IdleIn = 0, nil // it releases none, so that others are asked
	}
}

// idleSlots returns how many slots the node could do without, but for the one that an operator leaves it, and false as long as it
// must release none. Whole ENIs are not asked for.
func (o *ordered) idleSlots(cached *ipam.State, now time.Duration) (n int, sure bool) {
	if o.conf.Pool.Mode == pool.Burstable {
		return 0, true
	}
	sizing := o.conf.Pool.Sizing(o.view.limits, cached.Settings.Families)
	if o.demand.partial || time.Duration(o.mem.Scale.ValidSeconds)*time.Second < sizing.Stable {
		return 0, false
	}
	need := max(o.demand.total, o.mem.Scale.Peak(heed(sizing, true)))
	n = max(0, countDemand(cached, now, o.firstIndex()).owned-need-max(0, sizing.ExhaustedSpare-1))
	if !o.view.inBlocks() {
		return n, true
	}
	// The one that it keeps is of none that goes.
	size := max(1, o.view.limits.V4Block.Size)
	whole := min(o.wholeIdle(cached, func(nic eni.Interface) bool { return nic.Index >= o.firstIndex() }, now), max(0, n-1)/size*size)
	return whole + min(1, whole), true
}

// wholeIdle returns how many slots the node has in prefixes of IPv4 of which no pod uses anything, on those ENIs. Of IPv6 alone none are told: a prefix is
// all that an ENI needs.
func (o *ordered) wholeIdle(cached *ipam.State, lies func(eni.Interface) bool, now time.Duration) (slots int) {
	block := o.view.limits.V4Block
	if block.Size <= 1 || !slices.Contains(cached.Settings.Families, eni.IPv4) {
		return 0
	}
	on := map[int]bool{}
	for _, nic := range cached.ENIs {
		on[nic.Index] = lies(nic)
	}
	count := map[netip.Prefix]int{}
	for i := range cached.Addresses {
		line := &cached.Addresses[i]
		if line.Family() != eni.IPv4 || !on[line.ENI] || line.State != eni.Free || line.Lost || cached.IsCooling(line, now) {
			continue
		}
		p, _ := line.Addr.Prefix(block.Bits) // an IPv4 address has that many
		if count[p]++; count[p] == block.Size {
			slots += block.Size
		}
	}
	return slots
}

// idleBySubnet returns where so many idle slots lie, nil where that is one subnet: each number may be all that the node has idle there.
func (o *ordered) idleBySubnet(cached *ipam.State, idle int, now time.Duration) map[string]int {
	where := map[string]int{}
	for _, nic := range cached.ENIs {
		if have, known := o.view.eni(nic.ID); known && nic.Index >= o.firstIndex() {
			where[have.Subnet] = 0
		}
	}
	if idle == 0 || len(where) < 2 {
		return nil
	}
	if o.view.inBlocks() {
		idle-- // the one that it keeps is in none of them
	}
	for id := range where {
		if where[id] = min(idle, o.idleIn(cached, []string{id}, now)); where[id] == 0 {
			delete(where, id)
		}
	}
	return where
}

// tellsIdle tells whether a number of idle slots says something else than the one before.
func tellsIdle(was, is int) bool {
	change := max(was, is) - min(was, is)
	return change >= max(idleStep, max(was, is)/4)
}

// reclaimCause is why a node has no more that is asked for what it has.
func reclaimCause(asked int) pool.Cause {
	return pool.Cause{Kind: pool.SubnetFull, Words: fmt.Sprintf("the operator asks this node to do without %d slots: the subnets that could serve pods of other nodes, which wait, have none left", asked)}
}
