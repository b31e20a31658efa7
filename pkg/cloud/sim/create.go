package sim

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/eni"
)

// Create is a wish for an ENI. It has a primary IPv4 address if the subnet does.
type Create struct {
	Subnet            string
	Name, Description string
	Groups            []string // none: the one that is named "default", if there is one
	Tags              map[string]string
	Primary           netip.Addr // the zero Addr is any
	NoV4              bool       // it has no primary IPv4 address, though the subnet has some
	First6            bool       // the first IPv6 address it begins with is its primary one
	Requester         string
	Wish              // for what it begins with besides
}

// Create makes an ENI that is not attached: pending at first where that takes time,
// then available.
func (tx *Tx) Create(c Create) (Interface, error) {
	a := tx.a
	c.Wish = c.Wish.cut(tx.fault)
	n, err := a.newNIC(c)
	if err != nil {
		return Interface{}, err
	}
	n.Status = Pending
	a.add(n)
	made := n.Interface
	a.later(a.o.CreateTime+tx.fault.Slow, happening{What: ready, ENI: n.ID}, func() { a.available(n) })
	if a.o.CreateTime+tx.fault.Slow <= 0 {
		made = n.Interface
	}
	return made, nil
}

// available ends the making of an ENI.
func (a *Account) available(n *nic) {
	if !n.gone && n.Status == Pending {
		n.Status = Available
		a.changed(n)
	}
}

// newNIC makes an ENI with its addresses. It is not in the account yet.
func (a *Account) newNIC(c Create) (*nic, error) {
	s := a.subnets[c.Subnet]
	if s == nil {
		return nil, fail(NoSuchSubnet, c.Subnet, "")
	}
	groups, err := a.groupsOf(c.Groups)
	if err != nil {
		return nil, err
	}
	if a.o.MaxENIs > 0 && len(a.byID) >= a.o.MaxENIs {
		return nil, fail(InterfaceLimit, "", "the account may have %d ENIs", a.o.MaxENIs)
	}
	id := a.nextID("eni")
	n := &nic{Interface: Interface{ID: id, Name: c.Name, Description: c.Description, Subnet: s.ID, Zone: s.Zone,
		MAC: eniMAC(a.name(), id).String(), Groups: groups, Tags: maps.Clone(c.Tags), Created: a.now.Round(0).UTC(), Requester: c.Requester}}
	if s.pool4 != nil && !c.NoV4 {
		if n.Primary, err = a.primary(n, s, c.Primary); err != nil {
			return nil, err
		}
	}
	got, err := a.reserve(n, c.Wish)
	if err == nil {
		n.V4, n.V6, n.Prefixes = got.V4, got.V6, got.Prefixes
		n.First6 = c.First6 && len(n.V6) > 0
		n.hidden, err = a.hide(n, s)
	}
	if err != nil {
		a.release(n)
		return nil, err
	}
	a.made["eni"]++
	return n, nil
}

// primary takes the ENI's primary address.
func (a *Account) primary(n *nic, s *subnet, want netip.Addr) (netip.Addr, error) {
	p := s.pool4
	if want.IsValid() {
		if err := p.mayUse(want); err != nil {
			return netip.Addr{}, err
		}
		p.use(want, n.ID)
		return want, nil
	}
	got, ok := p.take(a.o.Reuse, n.ID)
	if !ok {
		return netip.Addr{}, fail(SubnetFull, s.ID, "no address for a new interface")
	}
	return got, nil
}

// groupsOf checks the groups of an ENI, and fills in the default one.
func (a *Account) groupsOf(ids []string) ([]string, error) {
	for i, id := range ids {
		switch {
		case a.groups[id] == nil:
			return nil, fail(NoSuchGroup, id, "")
		case a.groups[id].Enterprise != a.groups[ids[0]].Enterprise:
			return nil, fail(Invalid, id, "groups of two kinds")
		case slices.Contains(ids[:i], id):
			return nil, fail(Invalid, id, "it is named twice")
		}
	}
	if len(ids) > 0 {
		return slices.Clone(ids), nil
	}
	for _, g := range a.groups {
		if g.Name == "default" {
			return []string{g.ID}, nil
		}
	}
	return nil, nil
}

// release returns all of the ENI's addresses to the subnets that they are of.
func (a *Account) release(n *nic) {
	s := a.subnets[n.Subnet]
	a.give(n, n.Addresses())
	for _, p := range n.Prefixes {
		s.pool(eni.FamilyOf(p.Addr())).giveBlock(p)
	}
	if p := s.pool6; p != nil && n.hidden.IsValid() && p.used[n.hidden] == hiddenOwner {
		p.give(n.hidden)
	}
}

// Delete deletes an ENI that is not attached, with its addresses.
func (tx *Tx) Delete(id string) error {
	n, err := tx.a.nic(id)
	switch {
	case err != nil:
		return err
	case n.Attachment != nil:
		return fail(InterfaceInUse, id, "")
	}
	tx.a.remove(n)
	return nil
}

// nic finds an ENI that is not deleted.
func (a *Account) nic(id string) (*nic, error) {
	if n := a.byID[id]; n != nil {
		return n, nil
	}
	return nil, fail(NoSuchInterface, id, "")
}
