package order

import (
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// Node is what the kernel tells an adoption.
type Node struct {
	Links  map[string]eni.Interface // new ENIs whose links are ready, by id: the others wait for a later adoption
	Owners map[netip.Addr]eni.Owner // who has an address that the node state does not have
}

// Apply makes the changes by the moves of the node state, under the lock of its file: what pods took since Adopt stays theirs.
// It returns an error where an ENI can't be in the state beside the others, with all else done.
func (c Changes) Apply(state *ipam.State, n Node, now time.Duration) error {
	var first error
	for _, e := range c.ENIs {
		if nic, ready := n.Links[e.ID]; ready {
			if err := state.AddENI(nic); err != nil && first == nil {
				first = err
			}
		}
	}
	state.MarkLost(c.Lost, now)
	state.MarkLost(c.Drop, now) // a pod may have taken one
	state.DropReleased(c.Drop)
	state.UnmarkLost(c.Found)
	state.Unreserve(c.Unreserve, now)
	nobodys := map[netip.Addr]eni.Reservation{}
	for _, a := range c.Nobodys {
		nobodys[a] = eni.Reservation{}
	}
	state.Reserve(nobodys, now)
	state.StartRelease(c.Release, now)
	for _, add := range c.Add {
		c.addTo(state, add, n, now)
	}
	state.Reserve(Reservations(c.Reserve), now)
	state.NarrowENIs()
	for _, id := range c.Gone {
		if err := state.DropLost(id); err != nil && first == nil {
			first = err
		}
	}
	return first
}

func (c Changes) addTo(state *ipam.State, add Added, n Node, now time.Duration) {
	for _, nic := range state.ENIs {
		if nic.ID != add.ENI {
			continue
		}
		nic = widenFor(state, nic, add)
		out := withinSubnet(nic, add.Releasing)
		state.AddAddresses(nic.Index, withinSubnet(nic, add.Free), n.Owners, now)
		state.AddAddresses(nic.Index, out, n.Owners, now)
		state.StartRelease(out, now)
		for _, r := range add.Reserved {
			state.AddAddresses(nic.Index, withinSubnet(nic, []netip.Addr{r.Addr}), n.Owners, now)
		}
		state.Reserve(Reservations(add.Reserved), now)
	}
}

// widenFor lets an ENI have the addresses of other subnets that it is told of, and returns it as it is then. Some clouds put such addresses of topologies on
// any ENI: they leave by the ENI that has them, through the router of its own subnet. Those are kept for somebody, or go back; what is free for all is of
// the ENI's own subnet.
func widenFor(state *ipam.State, nic eni.Interface, add Added) eni.Interface {
	addrs := slices.Clone(add.Releasing)
	for _, r := range add.Reserved {
		addrs = append(addrs, r.Addr)
	}
	wider := eni.Interface{ID: nic.ID}
	for _, a := range addrs {
		if nic.Net(eni.FamilyOf(a)).IsValid() && !nic.MayHave(a) {
			wider.Pods = append(wider.Pods, netip.PrefixFrom(a, a.BitLen()))
		}
	}
	if len(wider.Pods) == 0 {
		return nic // nearly always
	}
	state.WidenENI(wider)
	return state.ENIs[slices.IndexFunc(state.ENIs, func(n eni.Interface) bool { return n.ID == nic.ID })]
}

// withinSubnet returns those of the addresses that the ENI can have: with another the state could not be written.
func withinSubnet(nic eni.Interface, addrs []netip.Addr) []netip.Addr {
	var may []netip.Addr
	for _, a := range addrs {
		if nic.MayHave(a) {
			may = append(may, a)
		}
	}
	return may
}

// Reservations returns what a node state keeps by that, by address.
func Reservations(list []Reserved) map[netip.Addr]eni.Reservation {
	by := map[netip.Addr]eni.Reservation{}
	for _, r := range list {
		by[r.Addr] = r.reservation()
	}
	return by
}

// ReservedAmong returns those of the list whose addresses are among addrs.
func ReservedAmong(list []Reserved, addrs []netip.Addr) []Reserved {
	return slices.DeleteFunc(slices.Clone(list), func(r Reserved) bool { return !slices.Contains(addrs, r.Addr) })
}
