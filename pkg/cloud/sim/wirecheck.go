package sim

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
)

// checkWires compares the routes of the Network's router, which say which ENI has an address, with
// the account.
func (a *Account) checkWires() error {
	if a.o.Network == nil {
		return nil
	}
	// The ENIs that are wired, not all: one that is attaching has addresses, and no link yet.
	want := map[netip.Addr]string{}
	for _, n := range a.byID {
		if !n.wired {
			continue
		}
		for _, addr := range a.deliveredAddresses(n, Got{V4: n.V4, V6: n.V6, Prefixes: n.Prefixes}) {
			want[addr] = n.ID
		}
		for _, addr := range []netip.Addr{n.Primary, n.hidden} {
			if addr.IsValid() {
				want[addr] = n.ID
			}
		}
	}
	got, err := a.deliveredByRouter()
	if err != nil {
		return err
	}
	return compareWires(want, got)
}

// deliveredByRouter returns the ENI of each address that the router delivers. The alias of a port is
// the id of its ENI.
func (a *Account) deliveredByRouter() (map[netip.Addr]string, error) {
	handle, err := a.o.Network.Router().openNetlink()
	if err != nil {
		return nil, err
	}
	defer handle.Close()
	links, err := handle.LinkList()
	if err != nil {
		return nil, fmt.Errorf("list links of the router: %w", err)
	}
	ids := map[int]string{}
	for _, l := range links {
		ids[l.Attrs().Index] = l.Attrs().Alias
	}
	delivered := map[netip.Addr]string{}
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		routes, err := handle.RouteList(nil, family)
		if err != nil {
			return nil, fmt.Errorf("list routes of the router: %w", err)
		}
		for _, r := range routes {
			if addr, ok := hostAddr(r.Dst); ok && ids[r.LinkIndex] != "" {
				delivered[addr] = ids[r.LinkIndex]
			}
		}
	}
	return delivered, nil
}

// hostAddr returns the address of a route to a single one.
func hostAddr(dst *net.IPNet) (netip.Addr, bool) {
	if dst == nil {
		return netip.Addr{}, false
	}
	ones, bits := dst.Mask.Size()
	addr, ok := netip.AddrFromSlice(dst.IP)
	return addr.Unmap(), ok && ones == bits
}

// compareWires returns what is wrong with what a network delivers: the ENI of each
// address as it should be, and as it is.
func compareWires(want, got map[netip.Addr]string) error {
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
