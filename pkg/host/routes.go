package host

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nlmsg"
	"golang.org/x/sys/unix"
)

// kernelRoute is a route as the kernel tells it.
type kernelRoute struct {
	dst             netip.Prefix
	gateway         netip.Addr
	link            int // 0 where it leads nowhere, or several ways
	kind            int // RTN_UNICAST and so on
	table, protocol int
	metric          int
	cloned          bool // made of a route for one packet
}

// routes returns the routes of one family in all tables, none if the kernel has no
// such family.
func (c *conn) routes(v6 bool) ([]kernelRoute, error) {
	fixed := make([]byte, unix.SizeofRtMsg)
	fixed[0] = byte(netlinkFamily(v6))
	list, err := c.list(newMessage(unix.RTM_GETROUTE, 0, fixed...))
	if noFamily(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list routes: %w", err)
	}
	var routes []kernelRoute
	for _, m := range list {
		// A kernel without IPv6 answers with the routes of IPv4.
		if len(m) < unix.SizeofRtMsg || m[0] != fixed[0] {
			continue
		}
		if r := parseRoute(m); !r.cloned {
			routes = append(routes, r)
		}
	}
	return routes, nil
}

// isInPlaceOf tells whether a route of ours to the same destination can't be there too.
func (r kernelRoute) isInPlaceOf(w netconf.Route) bool {
	metric := r.metric
	if r.dst.Addr().Is6() && metric == ipv6Metric {
		metric = 0
	}
	return metric == w.Metric
}

// ipv6Metric is what the kernel takes for a route of IPv6 that names no metric.
const ipv6Metric = 1024

// parseRoute reads a message that has at least its fixed part, struct rtmsg.
func parseRoute(m []byte) kernelRoute {
	dst, bits := netconf.Anywhere(m[0] == unix.AF_INET6).Addr(), int(m[1])
	r := kernelRoute{table: int(m[4]), protocol: int(m[5]), kind: int(m[7])}
	r.cloned = binary.NativeEndian.Uint32(m[8:])&unix.RTM_F_CLONED != 0
	for kind, value := range nlmsg.Attributes(m[unix.SizeofRtMsg:]) {
		switch kind {
		case unix.RTA_DST:
			if a, ok := netip.AddrFromSlice(value); ok {
				dst = a
			}
		case unix.RTA_GATEWAY:
			r.gateway = addrFromIP(value)
		case unix.RTA_OIF:
			r.link = numberAttr(value)
		case unix.RTA_TABLE:
			r.table = int(uint32(numberAttr(value)))
		case unix.RTA_PRIORITY:
			r.metric = int(uint32(numberAttr(value)))
		}
	}
	r.dst = netip.PrefixFrom(dst, bits)
	return r
}
