package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/enipool/enipool/pkg/netconf"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// HeldError is returned where an address of the pool turns out to be somebody else's.
type HeldError struct {
	Addr  netip.Addr
	Cause string // in the words of ip(8)
}

// Error names the address and what holds it.
func (e *HeldError) Error() string { return fmt.Sprintf("%s is held by others: %s", e.Addr, e.Cause) }

// errUnsure is the answer where one question does not do.
var errUnsure = errors.New("the kernel does not tell which route it found")

// CheckFree asks the kernel for the route to an address that is about to be a pod's.
// It returns a *HeldError where that is a route to this address alone, or the node's
// own: then somebody has it. It is one message, for an ADD; Occupancy sees more.
func (h *Host) CheckFree(a netip.Addr) error {
	cause, err := h.routeTo(a)
	if errors.Is(err, errUnsure) {
		cause, err = h.searchRoute(a)
	}
	if err == nil && cause != "" {
		return &HeldError{a, cause}
	}
	return err
}

// routeTo returns the host route that a packet to the address would take, "" if it
// would take a wider one, or none.
func (h *Host) routeTo(a netip.Addr) (string, error) {
	b := &batch{}
	r := b.getRoute(a, unix.RTM_F_FIB_MATCH)
	err := h.conn.send(b)
	switch {
	case errors.Is(err, unix.ENETUNREACH), errors.Is(err, unix.ESRCH), noFamily(err):
		return "", nil
	case errors.Is(err, unix.EHOSTUNREACH), errors.Is(err, unix.EACCES), errors.Is(err, unix.EINVAL):
		return "", errUnsure // a route that leads nowhere: to the address, or to all of its subnet
	case err != nil:
		return "", fmt.Errorf("ask for the route to %s: %w", a, err)
	}
	if len(r.answer) < unix.SizeofRtMsg {
		return "", errUnsure
	}
	bits, flags := int(r.answer[1]), binary.NativeEndian.Uint32(r.answer[8:]) // rtm_dst_len, rtm_flags
	switch {
	case flags&unix.RTM_F_CLONED != 0:
		return "", errUnsure // a kernel before 4.13 answers with the address, not with the route
	case bits < a.BitLen():
		return "", nil
	}
	return h.describeRoute(a)
}

// describeRoute returns the host route to the address in words.
func (h *Host) describeRoute(a netip.Addr) (string, error) {
	routes, err := h.h.RouteGetWithOptions(a.AsSlice(), &netlink.RouteGetOptions{FIBMatch: true})
	if err != nil {
		return "", errUnsure // gone, or another one by now
	}
	for _, r := range routes {
		if dst, ok := prefix(r.Dst); ok && dst.IsSingleIP() {
			return hostRoute(r, a, routeTypes[r.Type], h.linkName(r.LinkIndex)).String(), nil
		}
	}
	return "", nil
}

// searchRoute looks for a host route to the address among all routes. Those of ours
// that lead nowhere are no pod's.
func (h *Host) searchRoute(a netip.Addr) (string, error) {
	o, err := h.Occupancy(0, nil)
	if err != nil {
		return "", err
	}
	for _, r := range o.Routes {
		if r.Dst == a && !(r.Type != "" && r.Ours()) {
			return r.String(), nil
		}
	}
	return "", nil
}

// linkName returns the name of the link with the index, "" if there is none.
func (h *Host) linkName(index int) string {
	if link, err := h.h.LinkByIndex(index); err == nil {
		return link.Attrs().Name
	}
	return ""
}

// claimRoute adds a pod's route to its link unless there is another route to the
// address, see checkClaim.
func (h *Host) claimRoute(r netconf.Route, link int) error {
	b := &batch{}
	claim := b.addRoute(r, link).tolerating(unix.EEXIST)
	if err := h.conn.send(b); err != nil || claim.done() {
		return err
	}
	return h.checkClaim(r, link)
}

// checkClaim tells whose the route to a pod's address is that is there already: it is
// never replaced, or who has it would be cut off. It may be ours, put back by an agent
// that saw the link without it.
func (h *Host) checkClaim(r netconf.Route, link int) error {
	filter := &netlink.Route{Dst: ipNet(r.Dst), Table: r.Table}
	list, err := dump(func() ([]netlink.Route, error) {
		return h.h.RouteListFiltered(family(r.Dst.Addr().Is6()), filter, netlink.RT_FILTER_TABLE|netlink.RT_FILTER_DST)
	})
	if err != nil {
		return fmt.Errorf("list routes to %s: %w", r.Dst.Addr(), err)
	}
	cause := "the kernel has another route to it"
	for _, there := range list {
		if there.LinkIndex == link {
			return nil
		}
		cause = hostRoute(there, r.Dst.Addr(), routeTypes[there.Type], h.linkName(there.LinkIndex)).String()
	}
	return &HeldError{r.Dst.Addr(), cause}
}
