package host

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"golang.org/x/sys/unix"
)

// HeldError is returned where an address of the pool turns out to be somebody else's.
type HeldError struct {
	Addr  netip.Addr
	Cause string // in the words of ip(8)
}

// Error names the address and what holds it.
func (e *HeldError) Error() string { return fmt.Sprintf("%s is %s", e.Addr, ipam.HeldText(e.Cause)) }

// errUnsure is the answer where one question does not do.
var errUnsure = errors.New("the kernel does not tell which route it found")

// CheckFree asks the kernel for the route to an address that is about to be a pod's.
// It returns a *HeldError where that is a route to this address alone, or the node's
// own: then somebody has it. It is one message of 3 us, for an ADD. Occupancy sees more,
// neighbours and rules: the kernel looks neither up by address alone (a neighbour needs
// its link), and to list the neighbours of 250 pods takes 60 us.
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
	route := parseRoute(r.answer)
	switch {
	case route.cloned:
		return "", errUnsure // a kernel before 4.13 answers with the address, not with the route
	case !route.dst.IsSingleIP():
		return "", nil
	}
	return route.hostRoute(h.linkName(route.link)).String(), nil
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
	list, err := h.conn.routes(r.Dst.Addr().Is6())
	if err != nil {
		return fmt.Errorf("look for the route to %s: %w", r.Dst.Addr(), err)
	}
	cause := "the kernel has another route to it"
	for _, there := range list {
		if there.dst != r.Dst || there.table != r.Table {
			continue
		}
		if there.link == link {
			return nil
		}
		cause = there.hostRoute(h.linkName(there.link)).String()
	}
	return &HeldError{r.Dst.Addr(), cause}
}
