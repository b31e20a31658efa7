package sim

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/eni"
)

// Create describes a new ENI. It gets a primary IPv4 address if its subnet has IPv4.
type Create struct {
	Subnet            string
	Name, Description string
	Groups            []string // none: the one that is named "default", if there is one
	Tags              map[string]string
	Primary           netip.Addr // the zero Addr is any
	NoV4              bool       // it has no primary IPv4 address, though the subnet has some
	First6            bool       // the first IPv6 address it begins with is its primary one
	Requester         string
	AddressRequest    // for its other addresses
}

// Create makes an ENI that is not attached. It is pending for the time that Options say, then
// available.
func (tx *Tx) Create(c Create) (Interface, error) {
	a := tx.a
	c.AddressRequest = c.AddressRequest.halved(tx.fault)
	n, err := a.newNIC(c)
	if err != nil {
		return Interface{}, err
	}
	n.Status = Pending
	a.addNIC(n)
	made := n.Interface
	a.scheduleIn(a.o.CreateTime+tx.fault.Slow, happening{What: ready, ENI: n.ID}, func() { a.finishCreating(n) })
	if a.o.CreateTime+tx.fault.Slow <= 0 {
		made = n.Interface
	}
	return made, nil
}

// finishCreating makes a pending ENI available.
func (a *Account) finishCreating(n *nic) {
	if !n.gone && n.Status == Pending {
		n.Status = Available
		a.noteChanged(n)
	}
}

// newNIC makes an ENI with its addresses, which its caller puts into the account. Its id is used up
// only if all of it succeeds, so that refused calls do not change the ids of later ones.
func (a *Account) newNIC(asked Create) (*nic, error) {
	sub := a.subnets[asked.Subnet]
	if sub == nil {
		return nil, fail(NoSuchSubnet, asked.Subnet, "")
	}
	groups, err := a.groupsOf(asked.Groups)
	if err != nil {
		return nil, err
	}
	if a.o.MaxENIs > 0 && len(a.byID) >= a.o.MaxENIs {
		return nil, fail(InterfaceLimit, "", "the account may have %d ENIs", a.o.MaxENIs)
	}
	id := a.nextID("eni")
	nic := &nic{Interface: Interface{ID: id, Name: asked.Name, Description: asked.Description, Subnet: sub.ID, Zone: sub.Zone,
		MAC: eniMAC(a.macSeed(), id).String(), Groups: groups, Tags: maps.Clone(asked.Tags), Created: a.now.Round(0).UTC(), Requester: asked.Requester}}
	if sub.pool4 != nil && !asked.NoV4 {
		if nic.Primary, err = a.takePrimary(nic, sub, asked.Primary); err != nil {
			return nil, err
		}
	}
	// Its addresses are noted before anything can fail: releaseAddresses gives back what it has.
	got, err := a.allocate(nic, asked.AddressRequest)
	if err == nil {
		nic.V4, nic.V6, nic.Prefixes = got.V4, got.V6, got.Prefixes
		nic.First6 = asked.First6 && len(nic.V6) > 0
		nic.hidden, err = a.takeHidden(nic, sub)
	}
	if err != nil {
		a.releaseAddresses(nic)
		return nil, err
	}
	a.made["eni"]++
	return nic, nil
}

// takePrimary takes the ENI's primary address.
func (a *Account) takePrimary(n *nic, sub *subnet, want netip.Addr) (netip.Addr, error) {
	p := sub.pool4
	if want.IsValid() {
		if err := p.mayUse(want); err != nil {
			return netip.Addr{}, err
		}
		p.use(want, n.ID)
		return want, nil
	}
	got, ok := p.take(a.o.Reuse, n.ID)
	if !ok {
		return netip.Addr{}, fail(SubnetFull, sub.ID, "no address for a new interface")
	}
	return got, nil
}

// groupsOf checks the security groups of an ENI, and returns the default one if there are none.
func (a *Account) groupsOf(ids []string) ([]string, error) {
	for i, id := range ids {
		switch {
		case a.groups[id] == nil:
			return nil, fail(NoSuchGroup, id, "")
		case a.groups[id].Enterprise != a.groups[ids[0]].Enterprise: // as with Baidu
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

// releaseAddresses returns all of the ENI's addresses to their subnets.
func (a *Account) releaseAddresses(n *nic) {
	s := a.subnets[n.Subnet]
	a.giveAddresses(n, n.Addresses())
	for _, p := range n.Prefixes {
		s.pool(eni.FamilyOf(p.Addr())).giveBlock(p)
	}
	if p := s.pool6; p != nil && n.hidden.IsValid() && p.used[n.hidden] == hiddenOwner {
		p.give(n.hidden)
	}
}

// Delete deletes an ENI that is not attached, with its addresses.
func (tx *Tx) Delete(id string) error {
	n, err := tx.a.findNIC(id)
	switch {
	case err != nil:
		return err
	case n.Attachment != nil:
		return fail(InterfaceInUse, id, "")
	}
	tx.a.removeNIC(n)
	return nil
}

// findNIC finds an ENI that is not deleted.
func (a *Account) findNIC(id string) (*nic, error) {
	if n := a.byID[id]; n != nil {
		return n, nil
	}
	return nil, fail(NoSuchInterface, id, "")
}
