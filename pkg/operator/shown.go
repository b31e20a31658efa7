package operator

import (
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/order"
)

// shown is what a describe has shown of a node.
type shown struct {
	began order.Moment
	view  cloud.View
}

// prefixesOf returns addresses as the object has them: one that all of a delegated prefix is there of as that prefix, any other as
// a host prefix. Should single addresses fill a prefix they go together, which is allowed.
func prefixesOf(l eni.Limits, addrs []netip.Addr) (list []netip.Prefix) {
	there := map[netip.Addr]bool{}
	for _, a := range addrs {
		there[a] = true
	}
	for _, a := range addrs {
		p, is := blockOf(l, a, there)
		if !is {
			p = netip.PrefixFrom(a, a.BitLen())
		}
		if !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	return list
}

// blockOf returns the delegated prefix that an address is of, if all of it is there.
func blockOf(l eni.Limits, a netip.Addr, there map[netip.Addr]bool) (netip.Prefix, bool) {
	b := l.Block(eni.FamilyOf(a))
	if b.Size < 1 {
		return netip.Prefix{}, false // also those that are left after prefixes were turned off go as a whole
	}
	p, err := a.Prefix(b.Bits)
	if err != nil {
		return netip.Prefix{}, false
	}
	all := order.Addresses(l, p)
	return p, slices.Contains(all, a) && !slices.ContainsFunc(all, func(a netip.Addr) bool { return !there[a] })
}

// description returns what the describe shows of the node's ENIs that are attached. An ENI or an address that is left out because
// what the cloud tells of it can't be right counts as it was: nobody's address is lost by an answer that nobody believes.
func (s shown) description(status order.Status) order.Description {
	d := order.Description{Began: s.began, Shown: map[string][]netip.Prefix{}}
	for _, nic := range s.view.Interfaces {
		if nic.Index >= 0 {
			d.Shown[nic.ID] = prefixesOf(status.Limits, carriedAddrs(nic))
		} else {
			d.Loose = append(d.Loose, nic.ID)
		}
	}
	for _, q := range s.view.Quarantined {
		d.Partial = d.Partial || q.ID == "" // it may be any ENI
		for _, e := range status.ENIs {
			if e.ID != q.ID {
				continue
			}
			have, known := d.Shown[e.ID]
			for _, p := range e.Addresses {
				if (!known || q.Address.IsValid() && p.Contains(q.Address)) && !slices.Contains(have, p) {
					have = append(have, p)
				}
			}
			d.Shown[e.ID] = have
		}
	}
	return d
}

// carries tells whether an ENI is the node's: those that others have attached only take room.
func carries(nic cloud.Interface) bool { return nic.Index == 0 || nic.Ours }

// attachedNew returns the ENIs that the status lacks.
func (s shown) attachedNew(status order.Status) (list []order.ENI) {
	for _, nic := range s.view.Interfaces {
		if nic.Index >= 0 && carries(nic) && !hasENI(status, nic.ID) {
			list = append(list, madeENI(status.Limits, nic))
		}
	}
	return list
}

// showsMore tells whether the describe shows something of the node that the status lacks. Some of that is left out at first, as it may be what is
// gone: a later describe tells, though it shows nothing else.
func (s shown) showsMore(status order.Status) bool {
	if s.view.Err != nil {
		return false
	}
	if len(s.attachedNew(status)) > 0 {
		return true
	}
	has := map[netip.Addr]bool{}
	for _, e := range status.ENIs {
		for _, a := range order.Addresses(status.Limits, e.Addresses...) {
			has[a] = true
		}
	}
	return slices.ContainsFunc(s.view.Interfaces, func(nic cloud.Interface) bool {
		return nic.Index >= 0 && carries(nic) && slices.ContainsFunc(carriedAddrs(nic), func(a netip.Addr) bool { return !has[a] })
	})
}

func hasENI(status order.Status, id string) bool {
	return slices.ContainsFunc(status.ENIs, func(e order.ENI) bool { return e.ID == id })
}

func madeENI(l eni.Limits, nic cloud.Interface) order.ENI {
	return order.ENI{ID: nic.ID, Index: nic.Index, MAC: nic.MAC, Subnet: nic.Subnet, State: order.Attached, Token: nic.Token,
		V4: nic.V4, V6: nic.V6, Addresses: prefixesOf(l, carriedAddrs(nic))}
}

// carriedAddrs returns all addresses that an ENI carries for pods, those of other subnets too.
func carriedAddrs(nic cloud.Interface) []netip.Addr {
	return slices.Concat(nic.Addresses, nic.CrossSubnet)
}

// countOthers returns how many attached ENIs are neither the node's nor in the status. One there may have lost its tags: it takes its room once.
func (s shown) countOthers(status order.Status) (n int) {
	for _, nic := range s.view.Interfaces {
		if nic.Index >= 0 && !carries(nic) && !hasENI(status, nic.ID) {
			n++
		}
	}
	return n
}

// findENI returns an ENI of the describe.
func (s shown) findENI(id string) (cloud.Interface, bool) {
	i := slices.IndexFunc(s.view.Interfaces, func(nic cloud.Interface) bool { return nic.ID == id })
	if i < 0 {
		return cloud.Interface{}, false
	}
	return s.view.Interfaces[i], true
}

// looseENIs returns the ENIs that were made for the node and are attached nowhere.
func (s shown) looseENIs() []cloud.Interface {
	return slices.DeleteFunc(slices.Clone(s.view.Interfaces), func(nic cloud.Interface) bool { return nic.Index >= 0 || !nic.Ours })
}

// unfinished returns the ENIs that were begun with tokens of a handover and are attached nowhere yet.
func (s shown) unfinished(h crd.Handover) (list []cloud.Interface) {
	for _, nic := range s.looseENIs() {
		if slices.Contains(h.Tokens, nic.Token) {
			list = append(list, nic)
		}
	}
	return list
}

// releases returns what of a handover's releases is there and not accepted yet.
func (s shown) releases(status order.Status, h crd.Handover) (list []netip.Prefix) {
	for _, e := range status.ENIs {
		for _, p := range e.Addresses {
			if slices.Contains(h.Release, crd.FormatPrefix(p)) && !slices.Contains(status.Releasing, p) {
				list = append(list, p)
			}
		}
	}
	return list
}
