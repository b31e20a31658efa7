package api

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"

	"github.com/enipool/enipool/pkg/eni"
)

// nic is an ENI with what it was. The slices and maps of its Interface are never
// changed in place.
type nic struct {
	Interface
	gone   bool                // it is deleted
	wired  bool                // it is in the Network
	hidden netip.Addr          // the IPv6 address that its port in the Network has
	seen   history[*Interface] // nil from when it was deleted
}

// machine is an instance with its ENIs.
type machine struct {
	Instance
	nics []*nic // attached ones, and those on their way in or out
}

// AddSubnet adds a subnet to the VPC.
func (a *Account) AddSubnet(s Subnet) error {
	a.lock()
	defer a.mu.Unlock()
	made, err := a.newSubnet(s)
	if err != nil {
		return fmt.Errorf("add subnet %s: %w", s.ID, err)
	}
	for f, p := range made.pools {
		if a.o.Network == nil {
			break
		}
		if err := a.o.Network.AddSubnet(eni.Subnet{ID: s.ID, CIDR: p.net, Gateway: made.gateway(f)}); err != nil {
			return err
		}
	}
	a.subnets[s.ID] = made
	a.changedSubnet(made)
	made.seen.fromStart()
	return nil
}

func (a *Account) newSubnet(s Subnet) (*subnet, error) {
	made := &subnet{Subnet: s, pools: map[eni.Family]*pool{}}
	made.Reserve = cmp.Or(s.Reserve, EC2Reserve)
	made.Zone = cmp.Or(s.Zone, a.o.Region+"a")
	for f, net := range map[eni.Family]netip.Prefix{eni.IPv4: s.V4, eni.IPv6: s.V6} {
		if !net.IsValid() {
			continue
		}
		if eni.FamilyOf(net.Addr()) != f {
			return nil, fmt.Errorf("%s is not of %s", net, f)
		}
		p, err := newPool(net, made.Reserve, append([]netip.Addr{made.gateway(f)}, s.Reserved...))
		if err != nil {
			return nil, err
		}
		made.pools[f] = p
	}
	if s.ID == "" || len(made.pools) == 0 {
		return nil, fmt.Errorf("it needs an ID and an address range")
	}
	for _, other := range a.subnets {
		for f, p := range made.pools {
			if o := other.pools[f]; other.ID == s.ID || o != nil && o.net.Overlaps(p.net) {
				return nil, fmt.Errorf("it overlaps subnet %s", other.ID)
			}
		}
	}
	return made, nil
}

// gateway returns the one that is set, else the first address of the range.
func (s *subnet) gateway(f eni.Family) netip.Addr {
	set, net := s.GatewayV4, s.V4
	if f == eni.IPv6 {
		set, net = s.GatewayV6, s.V6
	}
	if set.IsValid() {
		return set
	}
	return net.Addr().Next()
}

// AddGroup adds a security group.
func (a *Account) AddGroup(g Group) {
	a.lock()
	defer a.mu.Unlock()
	g.Tags = maps.Clone(g.Tags)
	a.groups[g.ID] = &g
}

// AddType makes an instance type known.
func (a *Account) AddType(types ...Type) {
	a.lock()
	defer a.mu.Unlock()
	for _, t := range types {
		a.types[t.Name] = t
	}
}

// AddInstance starts an instance with its own ENI, attached at index 0 and deleted
// with it. With a Network its node has configured that ENI.
func (a *Account) AddInstance(i Instance) (Interface, error) {
	a.lock()
	defer a.mu.Unlock()
	n, err := a.addInstance(i)
	if err != nil {
		return Interface{}, fmt.Errorf("add instance %s: %w", i.ID, err)
	}
	return n.Interface, nil
}

func (a *Account) addInstance(i Instance) (*nic, error) {
	i.Node = cmp.Or(i.Node, i.ID)
	i.Tags, i.Launched = maps.Clone(i.Tags), a.now.UTC()
	_, known := a.types[i.Type]
	switch {
	case i.ID == "" || a.machines[i.ID] != nil:
		return nil, fmt.Errorf("it needs an ID that no other has")
	case !known:
		return nil, fail(NoSuchType, i.Type, "")
	}
	n, err := a.newNIC(Create{Subnet: i.Subnet, Groups: i.Groups, Wish: Wish{CountV6: i.V6}})
	if err != nil {
		return nil, err
	}
	n.Status, n.Attachment = InUse, &Attachment{ID: a.id("eni-attach"), Instance: i.ID, Status: Attached,
		Time: i.Launched, DeleteOnTermination: true}
	m := &machine{Instance: i, nics: []*nic{n}}
	a.machines[i.ID] = m
	if err := a.boot(m, n); err != nil {
		delete(a.machines, i.ID)
		a.release(n)
		return nil, err
	}
	a.add(n)
	n.seen.fromStart() // no describe is so old that an instance has no ENI of its own
	return n, nil
}

// Terminate ends an instance: its ENIs are deleted where they are to be, the others
// are available.
func (a *Account) Terminate(id string) error {
	a.lock()
	defer a.mu.Unlock()
	m := a.machines[id]
	if m == nil || m.Terminated {
		return fail(NoSuchInstance, id, "")
	}
	m.Terminated = true
	for _, n := range append([]*nic(nil), m.nics...) {
		del := n.Attachment.DeleteOnTermination
		if err := a.off(n); err != nil {
			return err
		}
		if del {
			a.remove(n)
		}
	}
	return nil
}

// add puts a new ENI into the account.
func (a *Account) add(n *nic) {
	a.nics = append(a.nics, n)
	a.byID[n.ID] = n
	a.changed(n)
}

// remove deletes an ENI that is not attached.
func (a *Account) remove(n *nic) {
	n.gone = true
	a.release(n)
	delete(a.byID, n.ID)
	a.changed(n)
	a.forget()
}

// forget drops what was deleted longer ago than anybody may ask for.
func (a *Account) forget() {
	oldest := a.now.Add(-a.keep)
	kept := a.nics[:0:0]
	for _, n := range a.nics {
		if !n.gone || n.seen[len(n.seen)-1].at.After(oldest) {
			kept = append(kept, n)
		}
	}
	a.nics = kept
}

// changed notes that the ENI, and with it its subnet, is not what it was.
func (a *Account) changed(n *nic) {
	var shown *Interface
	if !n.gone {
		copied := n.Interface
		shown = &copied
	}
	n.seen.add(a.now, shown, a.keep)
	a.changedSubnet(a.subnets[n.Subnet])
}

func (a *Account) changedSubnet(s *subnet) { s.seen.add(a.now, s.free(), a.keep) }

// LeaveFree lets others of the VPC take addresses of the subnet, or give them back,
// until n of each of its families are free.
func (a *Account) LeaveFree(subnet string, n int) error {
	return a.fill(subnet, func(p *pool) { p.leaveFree(n) })
}

// Fragment lets others of the VPC take an address of every whole block of the
// subnet's IPv4 addresses: there is room, but none for a prefix.
func (a *Account) Fragment(subnet string) error {
	return a.fill(subnet, (*pool).fragment)
}

func (a *Account) fill(subnet string, f func(*pool)) error {
	a.lock()
	defer a.mu.Unlock()
	s := a.subnets[subnet]
	if s == nil {
		return fail(NoSuchSubnet, subnet, "")
	}
	for _, p := range s.pools {
		f(p)
	}
	a.changedSubnet(s)
	return nil
}
