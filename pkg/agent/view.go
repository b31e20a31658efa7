package agent

import (
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// view is what the agent knows of the cloud: the last describe, and what its own
// calls did since. The zero view knows nothing.
type view struct {
	known   bool
	start   time.Duration // when the describe it rests on was asked for
	limits  eni.Limits
	enis    []cloud.Interface // in the order of their creation
	subnets []cloud.Subnet
	at      map[netip.Addr]string // see places; nil: not made yet
	agrees  bool                  // the book has all of it and nothing else
}

// described is the cloud's answer to a describe.
type described struct {
	start   time.Duration
	limits  eni.Limits
	enis    []cloud.Interface
	subnets []cloud.Subnet
}

// renew returns the view after a describe. A describe may lag: what own calls did
// less than settle before it was asked for stands against it.
func (v view) renew(d described, m *memory, settle time.Duration) view {
	fresh := func(t time.Duration, noted bool) bool { return noted && t+settle > d.start }
	next := view{known: true, start: d.start, limits: d.limits, subnets: d.subnets}
	for _, nic := range d.enis {
		if t, ok := m.GoneENI[nic.ID]; fresh(t, ok) {
			continue
		}
		nic.Addresses = slices.DeleteFunc(slices.Clone(nic.Addresses), func(a netip.Addr) bool {
			t, ok := m.Gone[a]
			return fresh(t, ok)
		})
		if old, ok := v.eni(nic.ID); ok {
			for _, addr := range old.Addresses {
				if t, ok := m.added[addr]; fresh(t, ok) && !slices.Contains(nic.Addresses, addr) {
					nic.Addresses = append(nic.Addresses, addr)
				}
			}
			if t, ok := m.addedENI[nic.ID]; fresh(t, ok) && nic.Index < 0 {
				nic.Index = old.Index
			}
		}
		next.enis = append(next.enis, nic)
	}
	for _, old := range v.enis {
		if _, shown := next.eni(old.ID); !shown {
			if t, ok := m.addedENI[old.ID]; fresh(t, ok) {
				next.enis = append(next.enis, old)
			}
		}
	}
	return next
}

// eni returns the ENI with the id.
func (v view) eni(id string) (cloud.Interface, bool) {
	for _, nic := range v.enis {
		if nic.ID == id {
			return nic, true
		}
	}
	return cloud.Interface{}, false
}

// subnet returns the subnet with the id.
func (v view) subnet(id string) (cloud.Subnet, bool) {
	for _, n := range v.subnets {
		if n.ID == id {
			return n, true
		}
	}
	return cloud.Subnet{}, false
}

// put notes an ENI that a call made.
func (v *view) put(nic cloud.Interface) {
	v.moved(nic.ID, nic.Addresses)
	v.at, v.agrees = nil, false
	at := slices.IndexFunc(v.enis, func(have cloud.Interface) bool { return have.ID == nic.ID })
	if at >= 0 {
		v.enis[at] = nic
		return
	}
	v.enis = append(v.enis, nic)
}

// drop notes that an ENI is gone.
func (v *view) drop(id string) {
	v.at, v.agrees = nil, false
	v.enis = slices.DeleteFunc(v.enis, func(nic cloud.Interface) bool { return nic.ID == id })
}

// assigned notes addresses that came to an ENI, and what its subnet has left.
func (v *view) assigned(id string, addrs []netip.Addr) {
	v.moved(id, addrs)
	v.change(id, v.price(addrs), func(have []netip.Addr) []netip.Addr {
		return append(have, without(addrs, have)...)
	})
}

// moved notes that no other ENI has addresses that came to this one: a call has taken them
// from there, and its answer is still to come.
func (v *view) moved(to string, addrs []netip.Addr) {
	for _, nic := range v.enis {
		had := both(nic.Addresses, addrs)
		if nic.ID != to && len(had) > 0 {
			v.unassigned(nic.ID, had)
		}
	}
}

// elsewhere returns those of the addresses that another ENI than this one has.
func (v view) elsewhere(id string, addrs []netip.Addr) (other []netip.Addr) {
	for _, nic := range v.enis {
		if nic.ID != id {
			other = append(other, both(addrs, nic.Addresses)...)
		}
	}
	return other
}

// both returns what is in both lists.
func both(x, y []netip.Addr) []netip.Addr { return without(x, without(x, y)) }

// unassigned notes addresses that left an ENI.
func (v *view) unassigned(id string, addrs []netip.Addr) {
	v.change(id, -v.price(addrs), func(have []netip.Addr) []netip.Addr { return without(have, addrs) })
}

func (v *view) change(id string, taken int, fn func([]netip.Addr) []netip.Addr) {
	v.at, v.agrees = nil, false
	for i := range v.enis {
		nic := &v.enis[i]
		if nic.ID != id {
			continue
		}
		nic.Addresses = fn(slices.Clone(nic.Addresses))
		for k := range v.subnets {
			if v.subnets[k].ID == nic.Subnet {
				v.subnets[k].Free = max(0, v.subnets[k].Free-taken)
			}
		}
	}
}

// without returns list less drop.
func without[T comparable](list, drop []T) []T {
	out := make(map[T]bool, len(drop))
	for _, d := range drop {
		out[d] = true
	}
	return slices.DeleteFunc(slices.Clone(list), func(t T) bool { return out[t] })
}
