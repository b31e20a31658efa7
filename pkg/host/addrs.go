package host

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/nlmsg"
	"golang.org/x/sys/unix"
)

// kernelAddr is an address of a link as the kernel tells it.
type kernelAddr struct {
	prefix netip.Prefix
	link   int
	flags  int // IFA_F_*
}

// Addrs returns the addresses that the node has on its links.
func (h *Host) Addrs() ([]netip.Addr, error) {
	list, err := h.conn.addrs()
	if err != nil {
		return nil, err
	}
	addrs := make([]netip.Addr, len(list))
	for i, a := range list {
		addrs[i] = a.prefix.Addr()
	}
	return addrs, nil
}

// addrs returns the addresses of all links and both families.
func (c *conn) addrs() ([]kernelAddr, error) {
	list, err := c.list(newMessage(unix.RTM_GETADDR, 0, make([]byte, unix.SizeofIfAddrmsg)...))
	if err != nil {
		return nil, fmt.Errorf("list addresses: %w", err)
	}
	var addrs []kernelAddr
	for _, m := range list {
		if a, ok := parseAddr(m); ok {
			addrs = append(addrs, a)
		}
	}
	return addrs, nil
}

// parseAddr reads struct ifaddrmsg and the attributes behind it.
func parseAddr(m []byte) (a kernelAddr, ok bool) {
	if len(m) < unix.SizeofIfAddrmsg {
		return a, false
	}
	var local, near []byte
	for kind, value := range nlmsg.Attributes(m[unix.SizeofIfAddrmsg:]) {
		switch kind {
		case unix.IFA_LOCAL:
			local = value
		case unix.IFA_ADDRESS:
			near = value
		case unix.IFA_FLAGS:
			a.flags = numberAttr(value)
		}
	}
	bits := int(m[1])
	if local == nil {
		local = near
	} else if !slices.Equal(local, near) {
		bits = 8 * len(local) // the prefix is the far end's
	}
	at, ok := netip.AddrFromSlice(local)
	a.prefix, a.link = netip.PrefixFrom(at, bits), numberAttr(m[4:8])
	return a, ok
}

// kernelNeigh is a neighbour as the kernel tells it.
type kernelNeigh struct {
	addr  netip.Addr
	mac   net.HardwareAddr
	link  int
	state uint16 // NUD_*
}

// neighs returns the neighbours on all links, of both families.
func (c *conn) neighs() ([]kernelNeigh, error) {
	list, err := c.list(newMessage(unix.RTM_GETNEIGH, 0, make([]byte, unix.SizeofNdMsg)...))
	if err != nil {
		return nil, fmt.Errorf("list neighbours: %w", err)
	}
	var neighs []kernelNeigh
	for _, m := range list {
		if len(m) < unix.SizeofNdMsg {
			continue
		}
		n := kernelNeigh{link: numberAttr(m[4:8]), state: binary.NativeEndian.Uint16(m[8:])}
		for kind, value := range nlmsg.Attributes(m[unix.SizeofNdMsg:]) {
			switch kind {
			case unix.NDA_DST:
				n.addr = addrFromIP(value)
			case unix.NDA_LLADDR:
				n.mac = value
			}
		}
		neighs = append(neighs, n)
	}
	return neighs, nil
}
