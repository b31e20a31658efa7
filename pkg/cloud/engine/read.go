package engine

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/eni"
)

// readENI makes a nic of what the cloud tells about an ENI. bad has the addresses and ranges that
// are left out; an error is why the whole ENI is. size6 is how many addresses of an IPv6 prefix pods
// may have.
func (n *Node) readENI(self driver.Self, raw driver.Interface, in driver.Subnet, size6 int) (on nic, bad []cloud.Quarantined, err error) {
	on = nic{raw: raw, Interface: cloud.Interface{ID: raw.ID, Index: -1, Subnet: raw.Subnet, Created: raw.Created}}
	hw, macErr := net.ParseMAC(raw.MAC)
	switch {
	case raw.ID == "" || strings.ContainsAny(raw.ID, " \t\n"):
		return on, nil, fmt.Errorf("ENI ID %q can't be one", raw.ID)
	case raw.Wrong != "":
		return on, nil, fmt.Errorf("%s", raw.Wrong)
	case macErr != nil || len(hw) != 6:
		return on, nil, fmt.Errorf("MAC %q can't be one", raw.MAC)
	case raw.Instance != "" && raw.Instance != self.Instance:
		return on, nil, fmt.Errorf("it is attached to another instance, %q", raw.Instance)
	case in.ID == "":
		return on, nil, fmt.Errorf("subnet %q is not known", raw.Subnet)
	case in.Wrong != "":
		return on, nil, fmt.Errorf("subnet %s: %s", raw.Subnet, in.Wrong)
	case raw.VPC != "" && in.VPC != "" && raw.VPC != in.VPC:
		return on, nil, fmt.Errorf("it is of VPC %q and subnet %q of VPC %q", raw.VPC, raw.Subnet, in.VPC)
	}
	on.MAC = hw.String()
	if on.Ours = !raw.Primary && raw.Mark.Ours(self.Instance); on.Ours {
		on.Token, on.Cluster = raw.Mark.Token, raw.Mark.Cluster
		if !raw.Mark.Asked.IsZero() {
			on.Created = raw.Mark.Asked // clouds tell only seconds, or only when it was attached
		}
	}
	if raw.State == driver.Attached && !n.t.NoIndex {
		index, err := n.indexOf(raw)
		if err != nil {
			return on, nil, err
		}
		on.Index = index
	}
	bad, err = n.readAddresses(&on, in, size6)
	return on, bad, err
}

// indexOf returns the ENI's index at the instance, one number for all network cards: on the first
// card it is the device index, on a further one it comes after all indexes of the cards before.
// For a further card one more index than ENIs is counted: an earlier release assumed that device
// indexes begin at 1 there, and the index of an existing ENI must stay the same.
func (n *Node) indexOf(raw driver.Interface) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	index := raw.Index
	if raw.Card > 0 {
		if raw.Card >= len(n.shape.Cards) || index > n.shape.Cards[raw.Card] {
			return 0, fmt.Errorf("device index %d of network card %d can't be one", raw.Index, raw.Card)
		}
		index += n.shape.Cards[0]
		for card := 1; card < raw.Card; card++ {
			index += n.shape.Cards[card] + 1
		}
	}
	if raw.Card < 0 || raw.Index < 0 || index > eni.MaxIndex {
		return 0, fmt.Errorf("device index %d can't be one", raw.Index)
	}
	return index, nil
}

// readAddresses fills in the ENI's addresses. An address that can't be a pod's in its subnet is left
// out and returned in bad; the others stay in use.
func (n *Node) readAddresses(on *nic, in driver.Subnet, size6 int) (bad []cloud.Quarantined, err error) {
	raw := on.raw
	if on.V4, err = netOf(in, raw.V4); err != nil {
		return nil, err
	}
	v6 := raw.V6
	six := ofFamily(raw.Singles, eni.IPv6)
	if !v6.IsValid() && len(six) > 0 {
		if v6 = n.electedV6(on, six); v6.IsValid() {
			on.raw.Singles = minus(raw.Singles, []netip.Addr{v6})
		}
	}
	if on.V6, err = netOf(in, v6); err != nil {
		return nil, err
	}
	if !on.V4.IsValid() && !on.V6.IsValid() {
		return nil, fmt.Errorf("it has no primary address")
	}
	bad = on.readRanges(in)
	seen := make(map[netip.Addr]bool, len(raw.Singles)+2)
	seen[raw.V4], seen[v6] = raw.V4.IsValid(), v6.IsValid()
	keep := func(addrs ...netip.Addr) error {
		for _, a := range addrs {
			if seen[a] {
				return fmt.Errorf("it has address %s twice", a)
			}
			seen[a] = true
			on.Addresses = append(on.Addresses, a)
		}
		return nil
	}
	for _, a := range on.raw.Singles {
		switch {
		case !on.Net(eni.FamilyOf(a)).IsValid():
			continue // pods can't use them before the ENI has a primary one
		case !mayHave(in, a) && (!n.t.CrossSubnet || inRange(in, a)):
			bad = append(bad, cloud.Quarantined{ID: on.ID, Address: a, Why: fmt.Sprintf("its address %s is not one of subnet %s, and is left out alone", a, in.ID)})
			continue
		}
		if err := keep(a); err != nil {
			return bad, err
		}
	}
	for _, b := range raw.Blocks {
		f := eni.FamilyOf(b.Addr())
		if !on.Net(f).IsValid() {
			continue
		}
		if err := n.mayDelegate(in, *on, b); err != nil {
			return bad, err
		}
		on.blocks = append(on.blocks, b)
		if err := keep(expandBlock(b, size6)...); err != nil {
			return bad, err
		}
	}
	on.Addresses, on.Partial = union(on.Addresses), partialBlocks(on.blocks)
	return bad, nil
}

// readRanges fills in the ranges that pods' addresses on the ENI may come from. A range with host
// bits, as people type them, counts as the range around it, and is returned in bad.
func (i *nic) readRanges(in driver.Subnet) (bad []cloud.Quarantined) {
	say := func(told netip.Prefix, what string) {
		bad = append(bad, cloud.Quarantined{ID: i.ID, Subnet: in.ID, Why: fmt.Sprintf("range %s for pods of subnet %s %s", told, in.ID, what)})
	}
	for _, told := range in.Pods {
		p := told.Masked()
		if !p.IsValid() || p.Addr().Is4In6() {
			say(told, "can't be one, and is left out alone")
			continue
		}
		if p != told {
			say(told, "has host bits: it is taken for "+p.String())
		}
		if i.Net(eni.FamilyOf(p.Addr())).IsValid() && !slices.Contains(i.Pods, p) {
			i.Pods = append(i.Pods, p)
		}
	}
	return bad
}

// electedV6 returns the primary IPv6 address of an ENI whose describe does not tell it, the zero
// Addr if nothing tells.
func (n *Node) electedV6(i *nic, six []netip.Addr) netip.Addr {
	if !n.t.MarksV6 {
		return n.primaryV6(i.ID, six)
	}
	if slices.Contains(six, i.raw.Mark.V6) {
		return i.raw.Mark.V6
	}
	return netip.Addr{}
}

// netOf returns an ENI's place in the subnet, the zero Net for no address.
func netOf(in driver.Subnet, primary netip.Addr) (eni.Net, error) {
	if !primary.IsValid() {
		return eni.Net{}, nil
	}
	cidr, gateway := in.V4, in.Gateway4
	if primary.Is6() {
		cidr, gateway = in.V6, in.Gateway6
	}
	if !cidr.IsValid() || !cidr.Contains(primary) || primary == gateway {
		return eni.Net{}, fmt.Errorf("primary address %s is not one of subnet %s", primary, in.ID)
	}
	return eni.Net{Primary: netip.PrefixFrom(primary, cidr.Bits()), Gateway: gateway}, nil
}

// mayHave tells whether an address can be a pod's in the subnet.
func mayHave(in driver.Subnet, a netip.Addr) bool {
	cidr, gateway := in.V4, in.Gateway4
	if a.Is6() {
		cidr, gateway = in.V6, in.Gateway6
	}
	return inPods(in, a) || cidr.IsValid() && cidr.Contains(a) && a != gateway && a != cidr.Addr()
}

// inRange tells whether an address is in a range of the subnet itself, not one of Pods.
func inRange(in driver.Subnet, a netip.Addr) bool {
	return in.V4.IsValid() && in.V4.Contains(a) || in.V6.IsValid() && in.V6.Contains(a)
}

// inPods tells whether an address is in one of the subnet's separate ranges for pods. Such a range
// has no gateway, and pods can have its first address too.
func inPods(in driver.Subnet, a netip.Addr) bool {
	return slices.ContainsFunc(in.Pods, func(p netip.Prefix) bool { return p.Contains(a) })
}

// mayDelegate tells why a prefix can't be one of the ENI's, or nil.
func (n *Node) mayDelegate(in driver.Subnet, on nic, block netip.Prefix) error {
	cidr, bits := in.V4, n.t.Bits4
	if block.Addr().Is6() {
		cidr, bits = in.V6, n.t.Bits6
	}
	switch {
	case block.Bits() != bits || block != block.Masked():
		return fmt.Errorf("prefix %s is no /%d", block, bits)
	case slices.ContainsFunc(in.Pods, func(p netip.Prefix) bool { return p.Bits() <= bits && p.Contains(block.Addr()) }):
		return nil
	case !cidr.IsValid() || cidr.Bits() > bits || !cidr.Contains(block.Addr()):
		return fmt.Errorf("prefix %s is not in subnet %s", block, in.ID)
	case block.Addr().Is4() && (block.Contains(on.V4.Primary.Addr()) || block.Contains(in.Gateway4)):
		return fmt.Errorf("prefix %s is not for pods in subnet %s", block, in.ID)
	}
	return nil
}
