package host

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/enipool/enipool/pkg/netconf"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Host is the network of the node: the namespace in which New was called. Or a pod's,
// see Netns.open.
type Host struct {
	h     *netlink.Handle // to read rules, and for what only the agent does
	conn  *conn           // to read all else, and to change many things at once
	where string          // stands behind the object in errors, as " in the pod"

	keeps bool      // the list of links is read once, see KeepLinks
	kept  *linkList // that list, nil before it was read
}

// New opens a handle on the network namespace of the calling thread.
func New() (*Host, error) {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open netlink: %w", err)
	}
	c, err := dial()
	if err != nil {
		h.Close()
		return nil, err
	}
	return &Host{h: h, conn: c}, nil
}

// NewHere is New for a process that never leaves its network namespace, and hardly
// ever reads: sockets for that are opened when they are needed.
func NewHere() (*Host, error) {
	c, err := dial()
	if err != nil {
		return nil, err
	}
	return &Host{h: &netlink.Handle{}, conn: c}, nil
}

// Close releases the handle.
func (h *Host) Close() {
	h.h.Close()
	h.conn.Close()
}

// dumpTries is how often a dump is asked for that the kernel calls inconsistent
// (NLM_F_DUMP_INTR): something changed between two parts of it. With thousands of addresses and
// pods that come and go half of them are.
const dumpTries = 20

// dump repeats a netlink dump until it is whole.
func dump[T any](list func() ([]T, error)) ([]T, error) {
	for try := 1; ; try++ {
		items, err := list()
		if err == nil || !errors.Is(err, unix.EINTR) || try == dumpTries {
			return items, err
		}
	}
}

// notFound tells whether err says that what was to be read or removed is not there. The kernel
// has a number of its own for each kind: ENOENT of rules, ESRCH of routes, ENODEV of links.
func notFound(err error) bool {
	return errors.As(err, &netlink.LinkNotFoundError{}) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) ||
		errors.Is(err, unix.ENODEV) || errors.Is(err, unix.EADDRNOTAVAIL)
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

func prefix(n *net.IPNet) (netip.Prefix, bool) {
	if n == nil {
		return netip.Prefix{}, false
	}
	a, ok := netip.AddrFromSlice(n.IP)
	ones, bits := n.Mask.Size()
	if bits == 32 {
		a = a.Unmap()
	}
	return netip.PrefixFrom(a, ones), ok
}

func addrFromIP(ip net.IP) netip.Addr {
	a, _ := netip.AddrFromSlice(ip)
	return a.Unmap()
}

func netlinkFamily(v6 bool) int {
	if v6 {
		return netlink.FAMILY_V6
	}
	return netlink.FAMILY_V4
}

func netlinkRoute(r netconf.Route, link int) *netlink.Route {
	nr := &netlink.Route{LinkIndex: link, Dst: ipNet(r.Dst), Table: r.Table, Protocol: netlink.RouteProtocol(r.Protocol())}
	if r.Gateway.IsValid() {
		nr.Gw = r.Gateway.AsSlice()
	} else if r.Dst.Addr().Is4() {
		nr.Scope = netlink.SCOPE_LINK
	}
	return nr
}

func neigh(n netconf.Neigh, link int) *netlink.Neigh {
	return &netlink.Neigh{LinkIndex: link, Family: netlinkFamily(n.Addr.Is6()), State: netlink.NUD_PERMANENT,
		IP: n.Addr.AsSlice(), HardwareAddr: n.MAC[:]}
}

func address(a netconf.Addr) *netlink.Addr {
	na := &netlink.Addr{IPNet: ipNet(a.Prefix)}
	if a.Prefix.Addr().Is6() {
		// Waiting for duplicate address detection costs seconds, and nobody else
		// can have an address that the cloud gave us.
		na.Flags |= unix.IFA_F_NODAD
	}
	if a.NoPrefixRoute {
		na.Flags |= unix.IFA_F_NOPREFIXROUTE
	}
	return na
}

func netlinkRule(r netconf.Rule) *netlink.Rule {
	nr := netlink.NewRule()
	nr.Priority, nr.Family, nr.Table, nr.Protocol = r.Priority, netlinkFamily(r.IPv6), r.Table, uint8(r.Protocol())
	if r.From.IsValid() {
		nr.Src = ipNet(r.From)
	}
	if r.To.IsValid() {
		nr.Dst = ipNet(r.To)
	}
	if r.Mask != 0 {
		nr.Mark, nr.Mask = r.Mark, &r.Mask
	}
	if r.HostOnly {
		nr.SuppressPrefixlen = r.SuppressPrefixLen()
	}
	return nr
}

func sysctlPath(key string) string { return filepath.Join("/proc/sys", key) }

func readSysctl(key string) (string, error) {
	value, err := os.ReadFile(sysctlPath(key))
	return strings.TrimSpace(string(value)), err
}

func writeSysctl(s netconf.Sysctl) error {
	// No O_CREATE: /proc would answer it with a permission error that misleads.
	fd, err := unix.Open(sysctlPath(s.Key), unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.EROFS) {
		// In a container that is not privileged /proc/sys is mounted read-only. The node's may be
		// mounted at /host: net/ in it shows the network of the thread that opens a file.
		if beside, errBeside := unix.Open("/host"+sysctlPath(s.Key), unix.O_WRONLY|unix.O_CLOEXEC, 0); errBeside == nil {
			fd, err = beside, nil
		}
	}
	if err != nil {
		return fmt.Errorf("set sysctl %s: %w", s, err)
	}
	defer unix.Close(fd)
	if _, err := unix.Write(fd, []byte(s.Value)); err != nil {
		return fmt.Errorf("set sysctl %s: %w", s, err)
	}
	return nil
}

// writeLinkSysctl is writeSysctl for a link that this process has just made. On a
// node that was booted without IPv6 there is nothing to switch off.
func writeLinkSysctl(s netconf.Sysctl) error {
	err := writeSysctl(s)
	if errors.Is(err, unix.ENOENT) && strings.HasPrefix(s.Key, "net/ipv6/") && !exists(sysctlPath("net/ipv6")) {
		return nil
	}
	return err
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
