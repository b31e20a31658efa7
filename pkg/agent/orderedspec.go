package agent

import (
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/pool"
	"github.com/enipool/enipool/pkg/scale"
)

// The most that the object takes.
const (
	mostSlots    = 4096
	mostListed   = 1024
	mostBatch    = 256
	mostMultiple = 8
)

// asking is what a spec is made from: values, so that what is written is a function of what is known.
type asking struct {
	view     order.View
	cached   *ipam.State
	now      time.Duration
	families []eni.Family
	pool     pool.Config // as poolFor has it
	slots    int         // the target
	waiting  int         // that pods wait for and for which nothing is free
	unlinked []string    // ids of ENIs that lack their links
	leaving  []string    // ids of ENIs that are to be deleted
	back     []netip.Addr
	first    int
	holds    bool // the kernel does not know yet of what has left service: nothing more is published
}

// poolFor returns the settings as the object has them, so that what is read again is the same.
func poolFor(c pool.Config, maxPods, cooling int) pool.Config {
	c = order.PoolFor(c, maxPods, cooling)
	c.Scale = scale.Config{Batch: min(max(c.Scale.Batch, 1), mostBatch)}
	c.Multiple = min(max(c.Multiple, 1), mostMultiple)
	for _, n := range []*int{&c.MaxAllocate, &c.MinAllocate, &c.PreAllocate, &c.MaxAboveWatermark} {
		*n = min(*n, mostSlots)
	}
	return c
}

// spec returns what the agent writes, and what it withdraws with that.
func (k asking) spec() (next order.Spec, withdrawn []netip.Prefix) {
	next = k.view.Spec
	if !k.holds {
		next = order.Publish(k.cached, k.view)
		next, withdrawn = order.Withdraw(k.view, next, k.back)
		next = order.Hear(k.view, order.PublishInterfaces(k.view, next, k.leaving...))
	}
	next.Families, next.Pool, next.NoLink = k.families, k.pool, k.unlinked
	next.Slots, next.Waiting = min(k.slots, mostSlots), min(k.waiting, mostSlots)
	if most := k.pool.MaxAllocate; most > 0 {
		next.Slots = min(next.Slots, most)
	}
	next.SeenRevision = 0
	next.Held, next.Idle = k.held(), k.idle()
	// What is cut off goes out with a later write: what was there before comes first.
	next.Release = next.Release[:min(len(next.Release), mostListed)]
	return next, withdrawn
}

// held returns the addresses that are in the way of pods.
func (k asking) held() (list []netip.Prefix) {
	for _, line := range k.cached.HeldAddresses() {
		if len(list) < mostListed {
			list = append(list, netip.PrefixFrom(line.Addr, line.Addr.BitLen()))
		}
	}
	return list
}

// idle returns the ENIs of which no pod or other program uses anything, where a node returns such ones.
func (k asking) idle() (ids []string) {
	if k.pool.Mode != pool.Burstable || !k.pool.ReturnENIs {
		return nil
	}
	for _, nic := range k.cached.ENIs {
		serves := slices.ContainsFunc(k.cached.Addresses, func(line eni.Address) bool {
			_, free := k.cached.FreeSince(&line, k.now)
			return line.ENI == nic.Index && !free && line.State != eni.Releasing
		})
		if nic.Index >= k.first && !serves {
			ids = append(ids, nic.ID)
		}
	}
	return ids
}

// sameSpec tells whether two specs say the same.
func sameSpec(x, y order.Spec) bool {
	return x.Mode == y.Mode && slices.Equal(x.Families, y.Families) && x.Slots == y.Slots && x.Waiting == y.Waiting && x.Pool == y.Pool &&
		slices.Equal(x.Release, y.Release) && slices.Equal(x.ReleaseInterfaces, y.ReleaseInterfaces) &&
		slices.Equal(x.Held, y.Held) && slices.Equal(x.NoLink, y.NoLink) && slices.Equal(x.Idle, y.Idle) && x.Boot == y.Boot && x.SeenRevision == y.SeenRevision &&
		x.SeenEpoch == y.SeenEpoch
}

// sameAsks tells the same of the rest, but for the number of idle slots: that alone is worth a write seldom.
func sameAsks(x, y order.Asks) bool {
	h, g := x.Handover, y.Handover
	if !x.WaitingSince.Equal(y.WaitingSince) || x.SeenReclaim != y.SeenReclaim {
		return false
	}
	if h == nil || g == nil {
		return h == g
	}
	return slices.Equal(h.Tokens, g.Tokens) && slices.Equal(h.Release, g.Release) &&
		slices.Equal(h.ReleaseInterfaces, g.ReleaseInterfaces)
}
