package host

import (
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/nlmsg"
	"golang.org/x/sys/unix"
)

// linkState is what is of interest of a link. With hundreds of pods the settings cost
// less in the list of the links, which must be taken anyway, than in a file each.
type linkState struct {
	index, peer  int // peer: of the other end of a veth, or what is below, in its own namespace
	netns        int // the number that the peer's namespace has here, noNetns for this one
	name, kind   string
	queue        string // what kind of queue its packets wait in
	alias        string
	mac          net.HardwareAddr
	mtu          int
	group        uint32
	up           bool
	ready        bool   // to send: its carrier has been noticed
	inet4, inet6 []byte // the settings of each family, 32 bits each
}

// operUp is IF_OPER_UP of linux/if.h.
const operUp = 6

// RTEXT_FILTER_SKIP_STATS of linux/rtnetlink.h: the counters are most of a dump.
const skipStats = 1 << 3

// noNetns is the number of no namespace, NETNSA_NSID_NOT_ASSIGNED.
const noNetns = -1

// linkList is all links of a moment, and their names by index.
type linkList struct {
	list  []linkState
	names map[int]string
}

// KeepLinks makes h read the list of links once, for whoever asks it several questions about one
// moment: of all that is read of a node with hundreds of pods the links take longest. A Host that keeps them
// changes nothing and is for one goroutine.
func (h *Host) KeepLinks() { h.keeps = true }

// links returns all links, and their names by index. Nobody changes what is kept.
func (h *Host) links() ([]linkState, map[int]string, error) {
	if h.kept != nil {
		return h.kept.list, h.kept.names, nil
	}
	list, names, err := h.readLinks()
	if err == nil && h.keeps {
		h.kept = &linkList{list, names}
	}
	return list, names, err
}

func (h *Host) readLinks() ([]linkState, map[int]string, error) {
	m := newMessage(unix.RTM_GETLINK, 0, linkPart(0, 0, 0)...)
	m.number(unix.IFLA_EXT_MASK, skipStats)
	messages, err := h.conn.list(m)
	if err != nil {
		return nil, nil, fmt.Errorf("list links: %w", err)
	}
	list, names := make([]linkState, 0, len(messages)), make(map[int]string, len(messages))
	for _, m := range messages {
		l := parseLink(m)
		list, names[l.index] = append(list, l), l.name
	}
	return list, names, nil
}

// NICs returns the node's links by MAC in the usual form, with name and MTU. What others put on
// top of a NIC has its MAC, too: it is the NIC only where no other link has that.
func (h *Host) NICs() (map[string]eni.Interface, error) {
	all, _, err := h.links()
	nics := map[string]eni.Interface{}
	for _, onTop := range []bool{true, false} {
		for _, l := range all {
			if len(l.mac) > 0 && l.hasParent() == onTop {
				nics[l.mac.String()] = eni.Interface{Device: l.name, MTU: l.mtu}
			}
		}
	}
	return nics, err
}

// hasParent tells whether the link is one on top of another.
func (l linkState) hasParent() bool {
	switch l.kind {
	case "macvlan", "ipvlan", "macvtap", "ipvtap", "vlan":
		return true
	}
	return false
}

func parseLink(m []byte) linkState {
	if len(m) < unix.SizeofIfInfomsg {
		return linkState{}
	}
	l := linkState{index: numberAttr(m[4:8]), up: numberAttr(m[8:12])&unix.IFF_UP != 0, netns: noNetns}
	for kind, value := range nlmsg.Attributes(m[unix.SizeofIfInfomsg:]) {
		switch kind {
		case unix.IFLA_IFNAME:
			l.name = textAttr(value)
		case unix.IFLA_QDISC:
			l.queue = textAttr(value)
		case unix.IFLA_IFALIAS:
			l.alias = textAttr(value)
		case unix.IFLA_ADDRESS:
			if slices.ContainsFunc(value, func(b byte) bool { return b != 0 }) { // lo has zeros
				l.mac = value
			}
		case unix.IFLA_LINK:
			l.peer = numberAttr(value)
		case unix.IFLA_LINK_NETNSID:
			l.netns = numberAttr(value)
		case unix.IFLA_MTU:
			l.mtu = numberAttr(value)
		case unix.IFLA_GROUP:
			l.group = uint32(numberAttr(value))
		case unix.IFLA_OPERSTATE:
			l.ready = len(value) == 1 && value[0] == operUp
		case unix.IFLA_LINKINFO:
			for kind, value := range nlmsg.Attributes(value) {
				if kind == unix.IFLA_INFO_KIND {
					l.kind = textAttr(value)
				}
			}
		case unix.IFLA_AF_SPEC:
			for family, value := range nlmsg.Attributes(value) {
				for kind, value := range nlmsg.Attributes(value) {
					switch {
					case family == unix.AF_INET && kind == unix.IFLA_INET_CONF:
						l.inet4 = value
					case family == unix.AF_INET6 && kind == unix.IFLA_INET6_CONF:
						l.inet6 = value
					}
				}
			}
		}
	}
	return l
}

// numberAttr returns the 32 bits of an attribute.
func numberAttr(b []byte) int {
	if len(b) != 4 {
		return 0
	}
	return int(int32(binary.NativeEndian.Uint32(b)))
}

// byteAttr returns the only byte of an attribute.
func byteAttr(b []byte) byte {
	if len(b) != 1 {
		return 0
	}
	return b[0]
}

func textAttr(b []byte) string { return strings.TrimRight(string(b), "\x00") }

// Where settings stand among those of their family: IPV4_DEVCONF_* of linux/ip.h,
// which count from 1, and DEVCONF_* of linux/ipv6.h.
const (
	atForwarding  = 0 // 1 - 1
	atRPFilter    = 8 - 1
	atTag         = 12 - 1
	atAcceptRA    = 3
	atDisableIPv6 = 26
)

// sysctl returns the value of a setting of the link, if the dump told it.
func (l linkState) sysctl(key string) (value string, ok bool) {
	settings, at := l.inet6, 0
	switch key {
	case "net/ipv4/conf/" + l.name + "/rp_filter":
		settings, at = l.inet4, atRPFilter
	case "net/ipv4/conf/" + l.name + "/forwarding":
		settings, at = l.inet4, atForwarding
	case "net/ipv4/conf/" + l.name + "/tag":
		settings, at = l.inet4, atTag
	case "net/ipv6/conf/" + l.name + "/accept_ra":
		at = atAcceptRA
	case "net/ipv6/conf/" + l.name + "/disable_ipv6":
		at = atDisableIPv6
	default:
		return "", false
	}
	if len(settings) < 4*at+4 {
		return "", false
	}
	return strconv.Itoa(int(int32(binary.NativeEndian.Uint32(settings[4*at:])))), true
}
