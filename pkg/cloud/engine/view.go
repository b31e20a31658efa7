package engine

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/eni"
)

// view is the ENIs of the node at one time.
type view struct {
	nics    []nic // the primary one first, the others in the order of their creation
	out     []cloud.Quarantined
	primary string // why the primary ENI is left out, "" if it is not
	taken   map[place]string
	// leftOut are the ENIs at the instance that are not among nics: pods can't use them, what
	// is told of them can't be right, or others are attaching them.
	leftOut []outsider
}

// outsider is an ENI at the instance that is left out.
type outsider struct {
	card  int
	token string // of the intent that it was made for, "" for another's or one that pods may not have
}

// hasPrimary tells why a view is none to work with: it lacks the node's primary ENI.
func (v view) hasPrimary(self driver.Self, api string) error {
	if len(v.nics) > 0 && v.nics[0].raw.Primary {
		return nil
	}
	if v.primary != "" {
		return because(cloud.ErrUnavailable, "bad answer: the node's primary ENI %s", v.primary)
	}
	return because(cloud.ErrNotFound, "%s shows no ENI of instance %s: is that its ID, and this its region?", api, self.Instance)
}

// understand makes ENIs of the node of what the cloud told then. It believes nothing: what
// can't be right is left out.
func (n *Node) understand(ctx context.Context, self driver.Self, raw []driver.Interface, told time.Time) (view, error) {
	raw = n.withMarks(raw)
	subnets, refused, err := n.rangesOf(ctx, raw, func(r driver.Interface) bool { return r.Primary || r.Mark.Ours(self.Instance) })
	if err != nil {
		return view{}, err
	}
	size6, err := n.sizeV6(ctx, raw)
	if err != nil {
		return view{}, err
	}
	if err := n.knowCards(ctx, self, raw); err != nil {
		return view{}, err
	}
	n.goesAway(self, raw...)
	v := view{taken: map[place]string{}}
	for _, r := range raw {
		if r.Index >= 0 && r.Instance == self.Instance {
			v.taken[place{r.Card, r.Index}] = r.ID
		}
		switch {
		case r.Unmanaged != "" && !r.Primary:
			continue
		case !r.Primary && !r.Mark.Ours(self.Instance) && r.State != driver.Attached:
			continue // others' on their way to or from here, or not here at all
		}
		if why := refused[r.Subnet]; why != nil {
			v.leaveOut(r, fmt.Sprintf("subnet %s may not be described: %s", r.Subnet, detail(why)))
			continue
		}
		i, bad, err := n.read(self, r, subnets[r.Subnet], size6)
		i.read = told
		v.out = append(v.out, bad...)
		if err != nil {
			v.leaveOut(r, err.Error())
			continue
		}
		v.nics = append(v.nics, i)
	}
	slices.SortStableFunc(v.nics, byCreation)
	n.number(v.nics)
	v.separate()
	v.count(self, raw)
	return v, nil
}

// count notes what of the ENIs at the instance is left out. The room of those that others
// detach comes free.
func (v *view) count(self driver.Self, raw []driver.Interface) {
	for _, r := range raw {
		here := r.Instance == self.Instance || r.Instance == "" && r.State == driver.Attached // of an answer about the instance
		leaves := r.State == driver.Detaching && r.Unmanaged == ""
		if here && !leaves && !slices.ContainsFunc(v.nics, func(i nic) bool { return i.ID == r.ID }) {
			o := outsider{card: r.Card}
			if r.Mark.Ours(self.Instance) && r.Unmanaged == "" {
				o.token = r.Mark.Token
			}
			v.leftOut = append(v.leftOut, o)
		}
	}
}

// knowCards sees to it that the instance's network cards are known where an ENI for pods is
// on a further one: its index comes after those of the cards before. A table that knows
// instance types by their first card alone must not take such ENIs off the node. Those of
// others are no reason to show none.
func (n *Node) knowCards(ctx context.Context, self driver.Self, raw []driver.Interface) error {
	if !slices.ContainsFunc(raw, func(r driver.Interface) bool { return r.Card > 0 && r.Unmanaged == "" && r.Mark.Ours(self.Instance) }) {
		return nil
	}
	n.mu.Lock()
	known := len(n.shape.Cards) > 0
	n.mu.Unlock()
	if known {
		return nil
	}
	if err := n.askShape(ctx); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.shape.Cards) == 0 && n.shape.Builtin != nil {
		return because(cloud.ErrUnavailable, "it has ENIs on further network cards, and its cards are not known: %v", n.shape.Builtin)
	}
	return nil
}

// leaveOut quarantines an ENI.
func (v *view) leaveOut(r driver.Interface, why string) {
	v.out = append(v.out, cloud.Quarantined{ID: r.ID, Why: why})
	if r.Primary {
		v.primary = cmp.Or(v.primary, r.ID+": "+why)
	}
}

// byCreation puts the primary ENI first, then orders by the cloud's time, which may be in
// seconds, then by the node's.
func byCreation(a, b nic) int {
	return cmp.Or(compareBool(b.raw.Primary, a.raw.Primary), a.Created.Compare(b.Created),
		a.raw.Mark.Asked.Compare(b.raw.Mark.Asked), cmp.Compare(a.Index, b.Index), cmp.Compare(a.raw.Mark.Index, b.raw.Mark.Index), cmp.Compare(a.ID, b.ID))
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

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
