package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nlmsg"
	"golang.org/x/sys/unix"
)

// PortClaims finds out who else the ports of the node belong to: the programs that listen,
// and whether the node has the addresses. It asks for no more than the ports need.
func (h *Host) PortClaims(ports []netconf.PodPorts) (c netconf.PortClaims, err error) {
	asked := map[netconf.Transport]bool{netconf.SCTP: true} // to ask for it may load it into the kernel
	for _, p := range ports {
		for _, port := range p.Ports {
			if asked[port.Transport] {
				continue
			}
			asked[port.Transport] = true
			list, err := listeners(port.Transport)
			if err != nil {
				return c, fmt.Errorf("list %s sockets: %w", port.Transport, err)
			}
			c.Listeners = append(c.Listeners, list...)
		}
	}
	if err := h.markServices(c.Listeners, ports); err != nil {
		return c, err
	}
	for _, a := range netconf.Hosts(ports) {
		local, err := h.isLocal(a)
		if err != nil {
			return c, err
		}
		if !local {
			c.Absent = append(c.Absent, a)
		}
	}
	return c, nil
}

// markServices finds out which listeners wait at a service's address, if that matters.
func (h *Host) markServices(list []netconf.Listener, ports []netconf.PodPorts) error {
	matters := func(l netconf.Listener) bool {
		return !l.Addr.IsUnspecified() && !l.Addr.IsLoopback() && slices.ContainsFunc(ports, func(p netconf.PodPorts) bool {
			return slices.ContainsFunc(p.Ports, func(port netconf.HostPort) bool { return port.Port == l.Port })
		})
	}
	if !slices.ContainsFunc(list, matters) {
		return nil
	}
	services, err := h.Services()
	for i := range list {
		list[i].Service = slices.Contains(services, list[i].Addr)
	}
	return err
}

// isLocal asks the kernel whether packets to the address are for the node itself: it may be
// on a link, or be in a range that the node takes as a whole, as 127.0.0.0/8.
func (h *Host) isLocal(a netip.Addr) (bool, error) {
	fixed := make([]byte, unix.SizeofRtMsg)
	fixed[0], fixed[1] = family8(a), byte(a.BitLen())
	m := newMessage(unix.RTM_GETROUTE, 0, fixed...)
	m.attr(unix.RTA_DST, a.AsSlice())
	b := &batch{}
	r := b.add(m, "ask for the way to %s", a)
	r.get = true
	if err := h.conn.send(b); err != nil && r.err == nil {
		return false, err
	}
	return r.err == nil && len(r.answer) >= unix.SizeofRtMsg && parseRoute(r.answer).kind == unix.RTN_LOCAL, nil
}

// Parts of linux/sock_diag.h, linux/inet_diag.h and net/tcp_states.h.
const (
	sockDiagByFamily  = 20
	inetDiagRequest   = 56 // the size of struct inet_diag_req_v2
	inetDiagMessage   = 72 // and of struct inet_diag_msg
	inetDiagOnlyIPv6  = 11
	tcpListens        = 1 << 10
	udpHasNoPeer      = 1 << 7
	inetDiagPort      = 4 // where the own port stands in a message
	inetDiagAddresses = 8
)

// listeners returns the sockets of this network namespace that wait for what comes to their
// port. Where the kernel can't tell there are none.
func listeners(t netconf.Transport) ([]netconf.Listener, error) {
	c, err := dialTo(unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	states := uint32(tcpListens)
	if t == netconf.UDP {
		states = udpHasNoPeer
	}
	var list []netconf.Listener
	for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
		fixed := make([]byte, inetDiagRequest)
		fixed[0], fixed[1] = family, byte(t)
		binary.NativeEndian.PutUint32(fixed[4:], states)
		messages, err := c.list(newMessage(sockDiagByFamily, 0, fixed...))
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EINVAL) || noFamily(err) {
			continue // a kernel without inet_diag or without the family
		}
		if err != nil {
			return nil, err
		}
		for _, m := range messages {
			if l, ok := parseListener(t, m); ok {
				list = append(list, l)
			}
		}
	}
	return list, nil
}

func parseListener(t netconf.Transport, m []byte) (l netconf.Listener, ok bool) {
	if len(m) < inetDiagMessage {
		return l, false
	}
	l = netconf.Listener{Transport: t, Port: binary.BigEndian.Uint16(m[inetDiagPort:])}
	if m[0] == unix.AF_INET {
		l.Addr = netip.AddrFrom4([4]byte(m[inetDiagAddresses:]))
		return l, !l.Addr.IsMulticast()
	}
	l.Addr = netip.AddrFrom16([16]byte(m[inetDiagAddresses:])).Unmap()
	l.Both = l.Addr == netip.IPv6Unspecified()
	for kind, value := range nlmsg.Attributes(m[inetDiagMessage:]) {
		if kind == inetDiagOnlyIPv6 && len(value) == 1 && value[0] == 1 {
			l.Both = false
		}
	}
	return l, !l.Addr.IsMulticast()
}
