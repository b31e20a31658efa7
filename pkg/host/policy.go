package host

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nlmsg"
	"golang.org/x/sys/unix"
)

// Ways asks the kernel which ways the packets would take that come in by their links.
// The answer for a link that is not there any more is the zero Way.
func (h *Host) Ways(packets []netconf.Packet) ([]netconf.Way, error) {
	list, names, err := h.links()
	if err != nil {
		return nil, err
	}
	indexes := make(map[string]int, len(list))
	for _, l := range list {
		indexes[l.name] = l.index
	}
	ways := make([]netconf.Way, len(packets))
	for i, p := range packets {
		in, ok := indexes[p.In]
		if !ok {
			continue
		}
		b := &batch{}
		r := b.askWay(p, in)
		if err := h.conn.send(b); err != nil && r.err == nil {
			return nil, err
		}
		ways[i] = r.way(names)
	}
	return ways, nil
}

// askWay asks which way a packet would take that comes in by the link or, without a link
// and a source, one of the node's own.
func (b *batch) askWay(p netconf.Packet, in int) *request {
	fixed := make([]byte, unix.SizeofRtMsg)
	fixed[0], fixed[1], fixed[2] = family8(p.To), byte(p.To.BitLen()), byte(p.From.BitLen())
	binary.NativeEndian.PutUint32(fixed[8:], unix.RTM_F_LOOKUP_TABLE)
	m := newMessage(unix.RTM_GETROUTE, 0, fixed...)
	m.attr(unix.RTA_DST, p.To.AsSlice())
	if p.From.IsValid() {
		m.attr(unix.RTA_SRC, p.From.AsSlice())
	}
	if in != 0 {
		m.number(unix.RTA_IIF, uint32(in))
	}
	if p.Mark != 0 {
		m.number(unix.RTA_MARK, p.Mark)
	}
	if p.Transport != 0 {
		m.attr(unix.RTA_IP_PROTO, []byte{byte(p.Transport)})
	}
	for kind, port := range map[uint16]uint16{unix.RTA_SPORT: p.FromPort, unix.RTA_DPORT: p.ToPort} {
		if port != 0 {
			m.attr(kind, binary.BigEndian.AppendUint16(nil, port))
		}
	}
	r := b.add(m, "ask for a pod's way to %s", p.To)
	r.get = true
	return r
}

func (r *request) way(names map[int]string) netconf.Way {
	switch {
	case r.failed(unix.ENODEV):
		return netconf.Way{}
	case r.err != nil || len(r.answer) < unix.SizeofRtMsg:
		return netconf.Way{Lost: true}
	}
	route := parseRoute(r.answer)
	lost := route.kind == unix.RTN_BLACKHOLE || route.kind == unix.RTN_UNREACHABLE || route.kind == unix.RTN_PROHIBIT
	return netconf.Way{Dev: names[route.link], Gateway: route.gateway, Table: route.table, Lost: lost}
}

// Rules reads the rules of one family, whoever's they are, in the order in which the
// kernel asks them.
func (h *Host) Rules(v6 bool) ([]netconf.PolicyRule, error) {
	fixed := make([]byte, unix.SizeofRtMsg)
	fixed[0] = byte(netlinkFamily(v6))
	list, err := h.conn.list(newMessage(unix.RTM_GETRULE, 0, fixed...))
	if noFamily(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list rules: %w", err)
	}
	var rules []netconf.PolicyRule
	for _, m := range list {
		if len(m) >= unix.SizeofRtMsg && m[0] == fixed[0] {
			rules = append(rules, parseRule(m))
		}
	}
	netconf.SortRules(rules)
	return rules, nil
}

// Policy reads the rules and routes of one family, whoever's they are.
func (h *Host) Policy(v6 bool) (p netconf.Policy, err error) {
	if p.Rules, err = h.Rules(v6); err != nil || len(p.Rules) == 0 {
		return p, err
	}
	_, names, err := h.links()
	if err != nil {
		return p, err
	}
	routes, err := h.conn.routes(v6)
	for _, r := range routes {
		p.Routes = append(p.Routes, r.tableRoute(names))
	}
	return p, err
}

// fibRuleInvert is FIB_RULE_INVERT of linux/fib_rules.h.
const fibRuleInvert = 2

// parseRule reads a message that has at least its fixed part, struct fib_rule_hdr.
func parseRule(m []byte) netconf.PolicyRule {
	r := netconf.PolicyRule{Table: int(m[4]), Action: netconf.RuleAction(m[7]), Suppress: -1, Narrow: m[3] != 0,
		Not: binary.NativeEndian.Uint32(m[8:])&fibRuleInvert != 0}
	for kind, value := range nlmsg.Attributes(m[unix.SizeofRtMsg:]) {
		switch kind {
		case unix.FRA_SRC:
			r.From = prefixAttr(value, m[2])
		case unix.FRA_DST:
			r.To = prefixAttr(value, m[1])
		case unix.FRA_IIFNAME:
			r.In = textAttr(value)
		case unix.FRA_PRIORITY:
			r.Priority = numberAttr(value)
		case unix.FRA_FWMARK:
			r.Mark = uint32(numberAttr(value))
		case unix.FRA_FWMASK:
			r.Mask = uint32(numberAttr(value))
		case unix.FRA_TABLE:
			r.Table = int(uint32(numberAttr(value)))
		case unix.FRA_GOTO:
			r.Goto = numberAttr(value)
		case unix.FRA_SUPPRESS_PREFIXLEN:
			r.Suppress = numberAttr(value)
		case unix.FRA_PROTOCOL:
			r.Protocol = int(byteAttr(value))
		case unix.FRA_L3MDEV:
			r.Narrow = r.Narrow || byteAttr(value) != 0
		case unix.FRA_IP_PROTO:
			r.Transport = netconf.Transport(byteAttr(value))
			r.Narrow = r.Narrow || !canAsk(m[0], r.Transport)
		case unix.FRA_SPORT_RANGE:
			r.FromPorts = portRange(value)
		case unix.FRA_DPORT_RANGE:
			r.ToPorts = portRange(value)
		case unix.FRA_OIFNAME, unix.FRA_TUN_ID, unix.FRA_UID_RANGE:
			r.Narrow = true
		}
	}
	return r
}

// prefixAttr reads an address as a prefix. One of IPv4's in the form of IPv6 stays what it is: as
// IPv4's it would be shorter than its prefix, and a rule for it one for everything.
func prefixAttr(b []byte, bits byte) netip.Prefix {
	a, _ := netip.AddrFromSlice(b)
	return netip.PrefixFrom(a, int(bits))
}

// canAsk tells whether the kernel answers for packets of the transport.
func canAsk(family byte, t netconf.Transport) bool {
	switch t {
	case netconf.TCP, netconf.UDP:
		return true
	case unix.IPPROTO_ICMP:
		return family == unix.AF_INET
	case unix.IPPROTO_ICMPV6:
		return family == unix.AF_INET6
	}
	return false
}

// portRange reads a struct fib_rule_port_range.
func portRange(b []byte) netconf.PortRange {
	if len(b) != 4 {
		return netconf.PortRange{}
	}
	return netconf.PortRange{First: binary.NativeEndian.Uint16(b), Last: binary.NativeEndian.Uint16(b[2:])}
}
