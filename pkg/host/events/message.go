package events

import (
	"bytes"
	"encoding/binary"
	"iter"
	"net/netip"

	"github.com/enipool/enipool/pkg/nlmsg"
	"golang.org/x/sys/unix"
)

// The attributes that x/sys/unix does not have: linux/fib_rules.h, linux/netconf.h,
// linux/rtnetlink.h, linux/netfilter/nf_tables.h.
const (
	fraDst, fraSrc, fraPriority, fraTable, fraProtocol = 1, 2, 6, 15, 21

	netconfaIfindex, netconfaForwarding, netconfaRPFilter = 1, 2, 3

	tcaKind     = 1
	sizeofTcMsg = 20

	sizeofNfgenmsg = 4

	nftaTable   = 1 // in every message but those about generations
	nftaElemSet = 2
)

// allChanged is the ifi_change of a link that is new.
const allChanged = 0xffffffff

// ParseRoute yields the events of a datagram of NETLINK_ROUTE. What is not understood is
// passed over: it is of a later kernel, and a periodic comparison sees what it did.
func ParseRoute(datagram []byte) iter.Seq[Event] {
	return decodeEach(datagram, message.decodeRtnetlink)
}

// ParseNft yields the events of a datagram of NETLINK_NETFILTER.
func ParseNft(datagram []byte) iter.Seq[Event] { return decodeEach(datagram, message.decodeNftables) }

// message is one message of a datagram.
type message struct{ nlmsg.Message }

// decodeEach yields what decode makes of the messages of a datagram. Behind one that is cut short
// anything may have been told.
func decodeEach(datagram []byte, decode func(message) (Event, bool)) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		for m, err := range nlmsg.Messages(datagram) {
			e, ok := Event{Kind: Overflow}, true
			if err == nil {
				e, ok = decode(message{m})
			}
			if ok && !yield(e) {
				return
			}
		}
	}
}

// attributesBehind yields type and value of the attributes behind a header of that number of bytes.
func (m message) attributesBehind(header int) iter.Seq2[uint16, []byte] {
	return nlmsg.Attributes(m.Body[min(header, len(m.Body)):])
}

// decodeRtnetlink reads a message of NETLINK_ROUTE.
func (m message) decodeRtnetlink() (Event, bool) {
	switch m.Kind {
	case unix.RTM_NEWLINK, unix.RTM_DELLINK:
		return m.decodeLink()
	case unix.RTM_NEWADDR, unix.RTM_DELADDR:
		return m.decodeAddress()
	case unix.RTM_NEWROUTE, unix.RTM_DELROUTE:
		return m.decodeRoute()
	case unix.RTM_NEWRULE, unix.RTM_DELRULE:
		return m.decodeRule()
	case unix.RTM_NEWNEIGH, unix.RTM_DELNEIGH:
		return m.decodeNeighbour()
	case unix.RTM_NEWNETCONF, unix.RTM_DELNETCONF:
		return m.decodeNetconf()
	case unix.RTM_NEWQDISC, unix.RTM_DELQDISC:
		return m.decodeTrafficControl(Qdisc, m.Kind == unix.RTM_DELQDISC)
	case unix.RTM_NEWTFILTER, unix.RTM_DELTFILTER:
		return m.decodeTrafficControl(Filter, m.Kind == unix.RTM_DELTFILTER)
	}
	return Event{}, false
}

func (m message) decodeTrafficControl(kind Kind, gone bool) (Event, bool) {
	if len(m.Body) < sizeofTcMsg {
		return Event{}, false
	}
	e := Event{Kind: kind, Gone: gone, Link: int(int32(binary.NativeEndian.Uint32(m.Body[4:])))}
	for kind, value := range m.attributesBehind(sizeofTcMsg) {
		if kind == tcaKind {
			e.Type = decodeText(value)
			break
		}
	}
	return e, e.Type != ""
}

func (m message) decodeLink() (Event, bool) {
	if len(m.Body) < unix.SizeofIfInfomsg || m.Body[0] != unix.AF_UNSPEC {
		return Event{}, false // a bridge tells of its ports so
	}
	flags, change := binary.NativeEndian.Uint32(m.Body[8:]), binary.NativeEndian.Uint32(m.Body[12:])
	e := Event{Kind: Link, Gone: m.Kind == unix.RTM_DELLINK, Link: int(int32(binary.NativeEndian.Uint32(m.Body[4:]))), Up: flags&unix.IFF_UP != 0,
		Made: change == allChanged, Toggled: change != allChanged && change&unix.IFF_UP != 0}
	for kind, value := range m.attributesBehind(unix.SizeofIfInfomsg) {
		if kind == unix.IFLA_IFNAME {
			e.Name = decodeText(value)
			break
		}
	}
	return e, true
}

func (m message) decodeAddress() (Event, bool) {
	if len(m.Body) < unix.SizeofIfAddrmsg {
		return Event{}, false
	}
	e := Event{Kind: Address, Gone: m.Kind == unix.RTM_DELADDR, IPv6: m.Body[0] == unix.AF_INET6, Link: int(binary.NativeEndian.Uint32(m.Body[4:]))}
	for kind, value := range m.attributesBehind(unix.SizeofIfAddrmsg) {
		// IFA_ADDRESS is the other end's where the link is point to point.
		if kind == unix.IFA_LOCAL || kind == unix.IFA_ADDRESS && !e.Prefix.IsValid() {
			e.Prefix = hostPrefix(value)
		}
	}
	return e, e.Prefix.IsValid()
}

func (m message) decodeRoute() (Event, bool) {
	if len(m.Body) < unix.SizeofRtMsg || m.Body[0] != unix.AF_INET && m.Body[0] != unix.AF_INET6 {
		return Event{}, false
	}
	event := Event{Kind: Route, Gone: m.Kind == unix.RTM_DELROUTE, IPv6: m.Body[0] == unix.AF_INET6, Table: int(m.Body[4]), Protocol: int(m.Body[5]),
		Unicast: m.Body[7] == unix.RTN_UNICAST, Replaced: m.Flags&unix.NLM_F_REPLACE != 0}
	for kind, value := range m.attributesBehind(unix.SizeofRtMsg) {
		switch {
		case kind == unix.RTA_DST:
			event.Prefix = prefixOf(value, int(m.Body[1]))
		case kind == unix.RTA_OIF && len(value) == 4:
			event.Link = int(binary.NativeEndian.Uint32(value))
		// The header's byte can't hold the number of a table above 255.
		case kind == unix.RTA_TABLE && len(value) == 4:
			event.Table = int(binary.NativeEndian.Uint32(value))
		}
	}
	return event, true
}

func (m message) decodeRule() (Event, bool) {
	// The header is a route's (struct fib_rule_hdr has the members of struct rtmsg, under
	// names of its own), so body[1] and body[2] are the lengths of both prefixes.
	if len(m.Body) < unix.SizeofRtMsg || m.Body[0] != unix.AF_INET && m.Body[0] != unix.AF_INET6 {
		return Event{}, false
	}
	event := Event{Kind: Rule, Gone: m.Kind == unix.RTM_DELRULE, IPv6: m.Body[0] == unix.AF_INET6, Table: int(m.Body[4])}
	for kind, value := range m.attributesBehind(unix.SizeofRtMsg) {
		switch {
		case kind == fraSrc:
			event.Prefix = prefixOf(value, int(m.Body[2]))
		case kind == fraDst:
			event.To = prefixOf(value, int(m.Body[1]))
		case kind == fraPriority && len(value) == 4:
			event.Priority = int(binary.NativeEndian.Uint32(value))
		case kind == fraTable && len(value) == 4:
			event.Table = int(binary.NativeEndian.Uint32(value))
		case kind == fraProtocol && len(value) == 1:
			event.Protocol = int(value[0])
		}
	}
	return event, true
}

// decodeNeighbour leaves out what is no host's of the node's networks: no pod has such an address, and the kernel drops what it
// knows of the multicast groups of each link again and again.
func (m message) decodeNeighbour() (Event, bool) {
	if len(m.Body) < unix.SizeofNdMsg || m.Body[0] != unix.AF_INET && m.Body[0] != unix.AF_INET6 {
		return Event{}, false
	}
	e := Event{Kind: Neighbour, Gone: m.Kind == unix.RTM_DELNEIGH, IPv6: m.Body[0] == unix.AF_INET6, Link: int(int32(binary.NativeEndian.Uint32(m.Body[4:]))),
		Permanent: binary.NativeEndian.Uint16(m.Body[8:])&unix.NUD_PERMANENT != 0}
	for kind, value := range m.attributesBehind(unix.SizeofNdMsg) {
		if kind == unix.NDA_DST {
			e.Prefix = hostPrefix(value)
			break
		}
	}
	return e, e.Prefix.Addr().IsGlobalUnicast()
}

func (m message) decodeNetconf() (Event, bool) {
	if len(m.Body) < 1 || m.Body[0] != unix.AF_INET && m.Body[0] != unix.AF_INET6 {
		return Event{}, false
	}
	event := Event{Kind: Netconf, Gone: m.Kind == unix.RTM_DELNETCONF, IPv6: m.Body[0] == unix.AF_INET6, RPFilter: Unknown, Forwarding: Unknown}
	for kind, value := range m.attributesBehind(4) { // the family, padded
		if len(value) != 4 {
			continue
		}
		n := int(int32(binary.NativeEndian.Uint32(value)))
		switch kind {
		case netconfaIfindex: // -1, NETCONFA_IFINDEX_ALL, is AllLinks
			event.Link = n
		case netconfaForwarding:
			event.Forwarding = n
		case netconfaRPFilter:
			event.RPFilter = n
		}
	}
	return event, true
}

func (m message) decodeNftables() (Event, bool) {
	op := int(m.Kind & 0xff)
	switch {
	case m.Kind>>8 != unix.NFNL_SUBSYS_NFTABLES || len(m.Body) < sizeofNfgenmsg:
		return Event{}, false
	case op == unix.NFT_MSG_NEWGEN:
		return Event{Kind: Generation, Text: m.Body}, true
	}
	event := Event{Kind: Nftables, Text: m.Body}
	switch op {
	case unix.NFT_MSG_DELTABLE, unix.NFT_MSG_DELCHAIN, unix.NFT_MSG_DELRULE, unix.NFT_MSG_DELSET, unix.NFT_MSG_DELSETELEM, unix.NFT_MSG_DELOBJ:
		event.Gone = true
	}
	for kind, value := range m.attributesBehind(sizeofNfgenmsg) {
		switch {
		case kind == nftaTable:
			event.NftTable = decodeText(value)
		case kind == nftaElemSet && (op == unix.NFT_MSG_NEWSETELEM || op == unix.NFT_MSG_DELSETELEM):
			event.NftSet = decodeText(value)
		}
		if kind >= nftaElemSet {
			break
		}
	}
	return event, event.NftTable != ""
}

// Process returns who made the transaction that a Generation ends: the thread that did, by its number
// in the kernel's first PID namespace, and its name as in /proc/PID/comm. Kernels before 4.14
// don't tell it: 0.
func (e Event) Process() (pid int, name string) {
	if e.Kind != Generation {
		return 0, ""
	}
	for kind, value := range nlmsg.Attributes(e.Text[min(sizeofNfgenmsg, len(e.Text)):]) {
		switch {
		case kind == unix.NFTA_GEN_PROC_PID && len(value) == 4:
			pid = int(binary.BigEndian.Uint32(value))
		case kind == unix.NFTA_GEN_PROC_NAME:
			name = decodeText(value)
		}
	}
	return pid, name
}

// decodeText is a name, without the zero byte that ends it.
func decodeText(b []byte) string {
	name, _, _ := bytes.Cut(b, []byte{0})
	return string(name)
}

func hostPrefix(b []byte) netip.Prefix { return prefixOf(b, 8*len(b)) }

// prefixOf is invalid where the bytes are no address or the length is none of it.
func prefixOf(b []byte, bits int) netip.Prefix {
	a, ok := netip.AddrFromSlice(b)
	if !ok || bits > a.BitLen() {
		return netip.Prefix{}
	}
	return netip.PrefixFrom(a, bits)
}
