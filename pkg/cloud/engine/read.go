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

// read makes an ENI of the node of what the cloud tells, and returns why some of its
// addresses are left out, or all of it.
func (n *Node) read(self driver.Self, r driver.Interface, in driver.Subnet, size6 int) (i nic, bad []cloud.Quarantined, err error) {
	i = nic{raw: r, Interface: cloud.Interface{ID: r.ID, Index: -1, Subnet: r.Subnet, Created: r.Created}}
	hw, macErr := net.ParseMAC(r.MAC)
	switch {
	case r.ID == "" || strings.ContainsAny(r.ID, " \t\n"):
		return i, nil, fmt.Errorf("ENI ID %q can't be one", r.ID)
	case r.Wrong != "":
		return i, nil, fmt.Errorf("%s", r.Wrong)
	case macErr != nil || len(hw) != 6:
		return i, nil, fmt.Errorf("MAC %q can't be one", r.MAC)
	case r.Instance != "" && r.Instance != self.Instance:
		return i, nil, fmt.Errorf("it is attached to another instance, %q", r.Instance)
	case in.ID == "":
		return i, nil, fmt.Errorf("subnet %q is not known", r.Subnet)
	case in.Wrong != "":
		return i, nil, fmt.Errorf("subnet %s: %s", r.Subnet, in.Wrong)
	case r.VPC != "" && in.VPC != "" && r.VPC != in.VPC:
		return i, nil, fmt.Errorf("it is of VPC %q and subnet %q of VPC %q", r.VPC, r.Subnet, in.VPC)
	}
	i.MAC = hw.String()
	if i.Ours = !r.Primary && r.Mark.Ours(self.Instance); i.Ours {
		i.Token = r.Mark.Token
		if !r.Mark.Asked.IsZero() {
			i.Created = r.Mark.Asked // clouds tell seconds, or when it was attached
		}
	}
	if r.State == driver.Attached && !n.t.NoIndex {
		index, err := n.indexOf(r)
		if err != nil {
			return i, nil, err
		}
		i.Index = index
	}
	bad, err = n.readAddresses(&i, in, size6)
	return i, bad, err
}

// indexOf returns the ENI's index at the instance: its device index, on a further network
// card after all of those before. A further card has an index more than ENIs: its indexes
// were once taken to begin at 1, and an index is for as long as the ENI.
func (n *Node) indexOf(r driver.Interface) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	index := r.Index
	if r.Card > 0 {
		if r.Card >= len(n.shape.Cards) || index > n.shape.Cards[r.Card] {
			return 0, fmt.Errorf("device index %d of network card %d can't be one", r.Index, r.Card)
		}
		index += n.shape.Cards[0]
		for card := 1; card < r.Card; card++ {
			index += n.shape.Cards[card] + 1
		}
	}
	if r.Card < 0 || r.Index < 0 || index > eni.MaxIndex {
		return 0, fmt.Errorf("device index %d can't be one", r.Index)
	}
	return index, nil
}

// readAddresses fills in the ENI's addresses. One that can't be a pod's in its subnet is
// left out and said, with the rest of the ENI in service.
func (n *Node) readAddresses(i *nic, in driver.Subnet, size6 int) (bad []cloud.Quarantined, err error) {
	r := i.raw
	if i.V4, err = netOf(in, r.V4); err != nil {
		return nil, err
	}
	v6 := r.V6
	six := ofFamily(r.Singles, eni.IPv6)
	if !v6.IsValid() && len(six) > 0 {
		if v6 = n.electedV6(i, six); v6.IsValid() {
			i.raw.Singles = minus(r.Singles, []netip.Addr{v6})
		}
	}
	if i.V6, err = netOf(in, v6); err != nil {
		return nil, err
	}
	if !i.V4.IsValid() && !i.V6.IsValid() {
		return nil, fmt.Errorf("it has no primary address")
	}
	bad = i.readRanges(in)
	seen := make(map[netip.Addr]bool, len(r.Singles)+2)
	seen[r.V4], seen[v6] = r.V4.IsValid(), v6.IsValid()
	keep := func(addrs ...netip.Addr) error {
		for _, a := range addrs {
			if seen[a] {
				return fmt.Errorf("it has address %s twice", a)
			}
			seen[a] = true
			i.Addresses = append(i.Addresses, a)
		}
		return nil
	}
	for _, a := range i.raw.Singles {
		switch {
		case !i.Net(eni.FamilyOf(a)).IsValid():
			continue // pods can't use them before the ENI has a primary one
		case !mayHave(in, a) && (!n.t.CrossSubnet || lies(in, a)):
			bad = append(bad, cloud.Quarantined{ID: i.ID, Address: a, Why: fmt.Sprintf("its address %s is not one of subnet %s, and is left out alone", a, in.ID)})
			continue
		}
		if err := keep(a); err != nil {
			return bad, err
		}
	}
	for _, b := range r.Blocks {
		f := eni.FamilyOf(b.Addr())
		if !i.Net(f).IsValid() {
			continue
		}
		if err := n.mayDelegate(in, *i, b); err != nil {
			return bad, err
		}
		i.blocks = append(i.blocks, b)
		if err := keep(expand(b, size6)...); err != nil {
			return bad, err
		}
	}
	i.Addresses, i.Partial = union(i.Addresses), partial(i.blocks)
	return bad, nil
}

// readRanges fills in the ranges that pods' addresses on the ENI may come from. One with host
// bits, as people type them, is taken for the range around it, and that is said.
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

// electedV6 is the primary IPv6 address of an ENI whose describe does not tell it, the
// zero Addr if nobody can tell.
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

// lies tells whether an address is in the subnet's range.
func lies(in driver.Subnet, a netip.Addr) bool {
	return in.V4.IsValid() && in.V4.Contains(a) || in.V6.IsValid() && in.V6.Contains(a)
}

// inPods tells whether an address lies in one of the ranges of their own that a subnet has
// for pods. No gateway is in there, and its first address is one like all others.
func inPods(in driver.Subnet, a netip.Addr) bool {
	return slices.ContainsFunc(in.Pods, func(p netip.Prefix) bool { return p.Contains(a) })
}

// mayDelegate tells why a prefix can't be one of the ENI's, or nil.
func (n *Node) mayDelegate(in driver.Subnet, i nic, b netip.Prefix) error {
	cidr, bits := in.V4, n.t.Bits4
	if b.Addr().Is6() {
		cidr, bits = in.V6, n.t.Bits6
	}
	switch {
	case b.Bits() != bits || b != b.Masked():
		return fmt.Errorf("prefix %s is no /%d", b, bits)
	case slices.ContainsFunc(in.Pods, func(p netip.Prefix) bool { return p.Bits() <= bits && p.Contains(b.Addr()) }):
		return nil
	case !cidr.IsValid() || cidr.Bits() > bits || !cidr.Contains(b.Addr()):
		return fmt.Errorf("prefix %s is not in subnet %s", b, in.ID)
	case b.Addr().Is4() && (b.Contains(i.V4.Primary.Addr()) || b.Contains(in.Gateway4)):
		return fmt.Errorf("prefix %s is not for pods in subnet %s", b, in.ID)
	}
	return nil
}
