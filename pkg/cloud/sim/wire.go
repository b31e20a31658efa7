package sim

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"

	"github.com/enipool/enipool/pkg/eni"
)

// What follows is how the account's ENIs become links. Without a Network all of
// it does nothing.

// name is part of the MACs of the account's ENIs.
func (a *Account) name() string {
	if a.o.Network == nil {
		return "account"
	}
	return a.o.Network.name
}

// boot makes the node with its own ENI as its system would leave it.
func (a *Account) boot(m *machine, n *nic) error {
	if a.o.Network == nil {
		return nil
	}
	if _, err := a.o.Network.AddNode(m.Name); err != nil {
		return err
	}
	if err := a.plug(n); err != nil {
		return err
	}
	return a.o.Network.DHCP(n.ID)
}

// plug attaches the ENI to its node, with its secondary addresses: all or nothing.
func (a *Account) plug(n *nic) error {
	if a.o.Network == nil {
		return nil
	}
	_, err := a.o.Network.Attach(n.Node, eni.Interface{ID: n.ID, Index: n.Index, MTU: a.o.MTU,
		Device: fmt.Sprintf("eth%d", n.Index), V4: n.V4, V6: n.V6})
	if err != nil {
		return err
	}
	if err := a.o.Network.Assign(n.ID, n.Addresses...); err != nil {
		return errors.Join(err, a.o.Network.Detach(n.ID))
	}
	return nil
}

func (a *Account) unplug(n *nic) error {
	if a.o.Network == nil || n.Index < 0 {
		return nil
	}
	return a.o.Network.Detach(n.ID)
}

// route makes the VPC deliver the addresses to the ENI: all or none.
func (a *Account) route(n *nic, addrs []netip.Addr) error {
	if a.o.Network == nil || n.Index < 0 {
		return nil
	}
	return a.o.Network.Assign(n.ID, addrs...)
}

func (a *Account) unroute(n *nic, addrs []netip.Addr) error {
	if a.o.Network == nil || n.Index < 0 {
		return nil
	}
	return a.o.Network.Unassign(n.ID, addrs...)
}

// wires returns the ENI of each address that the VPC delivers.
func (n *Network) wires() map[netip.Addr]string {
	n.mu.Lock()
	defer n.mu.Unlock()
	wires := map[netip.Addr]string{}
	for addr, p := range n.owner {
		wires[addr] = p.eni.ID
	}
	return wires
}

// checkWires compares the Network with the account.
func (a *Account) checkWires() error {
	if a.o.Network == nil {
		return nil
	}
	want := map[netip.Addr]string{}
	for addr, n := range a.owner {
		if n.Index >= 0 {
			want[addr] = n.ID
		}
	}
	got := a.o.Network.wires()
	return CompareWires(want, got)
}

// CompareWires returns what is wrong with what a network delivers: the ENI of each
// address as it should be, and as it is.
func CompareWires(want, got map[netip.Addr]string) error {
	if maps.Equal(want, got) {
		return nil
	}
	var errs []error
	for addr, id := range want {
		if got[addr] != id {
			errs = append(errs, fmt.Errorf("address %s is of ENI %s, the network delivers it to %q", addr, id, got[addr]))
		}
	}
	for addr, id := range got {
		if want[addr] == "" {
			errs = append(errs, fmt.Errorf("the network delivers %s to ENI %s, which does not have it", addr, id))
		}
	}
	return errors.Join(errs...)
}
