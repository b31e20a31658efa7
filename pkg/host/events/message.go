package events

import (
	"bytes"
	"encoding/binary"
	"iter"
	"net/netip"

	"golang.org/x/sys/unix"
)

// The attributes that x/sys/unix does not have: linux/fib_rules.h, linux/netconf.h,
// linux/rtnetlink.h, linux/netfilter/nf_tables.h.
const (
	fraDst, fraSrc, fraPriority, fraTable, fraProtocol = 1, 2, 6, 15, 21

	netconfaIfindex, netconfaForwarding, netconfaRPFilter = 1, 2, 3

	tcaKind     = 1
	sizeofTcMsg = 20

	nftaTable   = 1 // in every message but those about generations
	nftaElemSet = 2
)

// typeMask takes the flags off the type of an attribute.
const typeMask = 0x3fff

// allChanged is the ifi_change of a link that is new.
const allChanged = 0xffffffff

// ParseRoute yields the events of a datagram of NETLINK_ROUTE. What is not understood is
// passed over: it is of a later kernel, and a periodic comparison sees what it did.
func ParseRoute(datagram []byte) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		for m := range messages(datagram) {
			if e, ok := m.event(); ok && !yield(e) {
				return
			}
		}
	}
}

// ParseNft yields the events of a datagram of NETLINK_NETFILTER.
func ParseNft(datagram []byte) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		for m := range messages(datagram) {
			if e, ok := m.nftables(); ok && !yield(e) {
				return
			}
		}
	}
}

// message is one message of a datagram.
type message struct {
	kind, flags uint16
	body        []byte
}

func messages(b []byte) iter.Seq[message] {
	return func(yield func(message) bool) {
		for len(b) >= unix.SizeofNlMsghdr {
			length := int(binary.NativeEndian.Uint32(b))
			if length < unix.SizeofNlMsghdr || length > len(b) {
				return
			}
			m := message{binary.NativeEndian.Uint16(b[4:]), binary.NativeEndian.Uint16(b[6:]), b[unix.SizeofNlMsghdr:length]}
			if !yield(m) {
				return
			}
			b = b[min((length+3)&^3, len(b)):]
		}
	}
}

// attributes yields type and value behind a header of so many bytes.
func attributes(body []byte, header int) iter.Seq2[uint16, []byte] {
	return func(yield func(uint16, []byte) bool) {
		for b := body[min(header, len(body)):]; len(b) >= unix.SizeofRtAttr; {
			length := int(binary.NativeEndian.Uint16(b))
			if length < unix.SizeofRtAttr || length > len(b) {
				return
			}
			if !yield(binary.NativeEndian.Uint16(b[2:])&typeMask, b[unix.SizeofRtAttr:length]) {
				return
			}
			b = b[min((length+3)&^3, len(b)):]
		}
	}
}

// event reads a message of NETLINK_ROUTE.
func (m message) event() (Event, bool) {
	switch m.kind {
	case unix.RTM_NEWLINK, unix.RTM_DELLINK:
		return m.link()
	case unix.RTM_NEWADDR, unix.RTM_DELADDR:
		return m.address()
	case unix.RTM_NEWROUTE, unix.RTM_DELROUTE:
		return m.route()
	case unix.RTM_NEWRULE, unix.RTM_DELRULE:
		return m.rule()
	case unix.RTM_NEWNEIGH, unix.RTM_DELNEIGH:
		return m.neighbour()
	case unix.RTM_NEWNETCONF, unix.RTM_DELNETCONF:
		return m.netconf()
	case unix.RTM_NEWQDISC, unix.RTM_DELQDISC:
		return m.trafficControl(Qdisc, m.kind == unix.RTM_DELQDISC)
	case unix.RTM_NEWTFILTER, unix.RTM_DELTFILTER:
		return m.trafficControl(Filter, m.kind == unix.RTM_DELTFILTER)
	}
	return Event{}, false
}

func (m message) trafficControl(kind Kind, gone bool) (Event, bool) {
	if len(m.body) < sizeofTcMsg {
		return Event{}, false
	}
	e := Event{Kind: kind, Gone: gone, Link: int(int32(binary.NativeEndian.Uint32(m.body[4:])))}
	for kind, value := range attributes(m.body, sizeofTcMsg) {
		if kind == tcaKind {
			e.Type = textAttr(value)
			break
		}
	}
	return e, e.Type != ""
}

func (m message) link() (Event, bool) {
	if len(m.body) < unix.SizeofIfInfomsg || m.body[0] != unix.AF_UNSPEC {
		return Event{}, false // a bridge tells of its ports so
	}
	flags, change := binary.NativeEndian.Uint32(m.body[8:]), binary.NativeEndian.Uint32(m.body[12:])
	e := Event{Kind: Link, Gone: m.kind == unix.RTM_DELLINK, Link: int(int32(binary.NativeEndian.Uint32(m.body[4:]))), Up: flags&unix.IFF_UP != 0,
		Made: change == allChanged, Toggled: change != allChanged && change&unix.IFF_UP != 0}
	for kind, value := range attributes(m.body, unix.SizeofIfInfomsg) {
		if kind == unix.IFLA_IFNAME {
			e.Name = textAttr(value)
			break
		}
	}
	return e, true
}

func (m message) address() (Event, bool) {
	if len(m.body) < unix.SizeofIfAddrmsg {
		return Event{}, false
	}
	e := Event{Kind: Address, Gone: m.kind == unix.RTM_DELADDR, IPv6: m.body[0] == unix.AF_INET6, Link: int(binary.NativeEndian.Uint32(m.body[4:]))}
	for kind, value := range attributes(m.body, unix.SizeofIfAddrmsg) {
		// IFA_ADDRESS is the other end's where the link is point to point.
		if kind == unix.IFA_LOCAL || kind == unix.IFA_ADDRESS && !e.Prefix.IsValid() {
			e.Prefix = host(value)
		}
	}
	return e, e.Prefix.IsValid()
}

func (m message) route() (Event, bool) {
	if len(m.body) < unix.SizeofRtMsg || m.body[0] != unix.AF_INET && m.body[0] != unix.AF_INET6 {
		return Event{}, false
	}
	e := Event{Kind: Route, Gone: m.kind == unix.RTM_DELROUTE, IPv6: m.body[0] == unix.AF_INET6, Table: int(m.body[4]), Protocol: int(m.body[5]),
		Unicast: m.body[7] == unix.RTN_UNICAST, Replaced: m.flags&unix.NLM_F_REPLACE != 0}
	for kind, value := range attributes(m.body, unix.SizeofRtMsg) {
		switch {
		case kind == unix.RTA_DST:
			e.Prefix = prefix(value, int(m.body[1]))
		case kind == unix.RTA_OIF && len(value) == 4:
			e.Link = int(binary.NativeEndian.Uint32(value))
		case kind == unix.RTA_TABLE && len(value) == 4:
			e.Table = int(binary.NativeEndian.Uint32(value))
		}
	}
	return e, true
}

func (m message) rule() (Event, bool) {
	// The header is a route's; its members are named anew.
	if len(m.body) < unix.SizeofRtMsg || m.body[0] != unix.AF_INET && m.body[0] != unix.AF_INET6 {
		return Event{}, false
	}
	e := Event{Kind: Rule, Gone: m.kind == unix.RTM_DELRULE, IPv6: m.body[0] == unix.AF_INET6, Table: int(m.body[4])}
	for kind, value := range attributes(m.body, unix.SizeofRtMsg) {
		switch {
		case kind == fraSrc:
			e.Prefix = prefix(value, int(m.body[2]))
		case kind == fraDst:
			e.To = prefix(value, int(m.body[1]))
		case kind == fraPriority && len(value) == 4:
			e.Priority = int(binary.NativeEndian.Uint32(value))
		case kind == fraTable && len(value) == 4:
			e.Table = int(binary.NativeEndian.Uint32(value))
		case kind == fraProtocol && len(value) == 1:
			e.Protocol = int(value[0])
		}
	}
	return e, true
}

// neighbour leaves out what is no host's of the node's networks: no pod has such an address, and the kernel drops what it
// knows of the multicast groups of each link again and again.
func (m message) neighbour() (Event, bool) {
	if len(m.body) < unix.SizeofNdMsg || m.body[0] != unix.AF_INET && m.body[0] != unix.AF_INET6 {
		return Event{}, false
	}
	e := Event{Kind: Neighbour, Gone: m.kind == unix.RTM_DELNEIGH, IPv6: m.body[0] == unix.AF_INET6, Link: int(int32(binary.NativeEndian.Uint32(m.body[4:]))),
		Permanent: binary.NativeEndian.Uint16(m.body[8:])&unix.NUD_PERMANENT != 0}
	for kind, value := range attributes(m.body, unix.SizeofNdMsg) {
		if kind == unix.NDA_DST {
			e.Prefix = host(value)
			break
		}
	}
	return e, e.Prefix.Addr().IsGlobalUnicast()
}

func (m message) netconf() (Event, bool) {
	if len(m.body) < 1 || m.body[0] != unix.AF_INET && m.body[0] != unix.AF_INET6 {
		return Event{}, false
	}
	e := Event{Kind: Netconf, Gone: m.kind == unix.RTM_DELNETCONF, IPv6: m.body[0] == unix.AF_INET6, RPFilter: Unknown, Forwarding: Unknown}
	for kind, value := range attributes(m.body, 4) { // the family, padded
		if len(value) != 4 {
			continue
		}
		n := int(int32(binary.NativeEndian.Uint32(value)))
		switch kind {
		case netconfaIfindex:
			e.Link = n
		case netconfaForwarding:
			e.Forwarding = n
		case netconfaRPFilter:
			e.RPFilter = n
		}
	}
	return e, true
}

func (m message) nftables() (Event, bool) {
	op := int(m.kind & 0xff)
	if m.kind>>8 != unix.NFNL_SUBSYS_NFTABLES || op == unix.NFT_MSG_NEWGEN || len(m.body) < 4 {
		return Event{}, false
	}
	e := Event{Kind: Nftables, Text: m.body}
	switch op {
	case unix.NFT_MSG_DELTABLE, unix.NFT_MSG_DELCHAIN, unix.NFT_MSG_DELRULE, unix.NFT_MSG_DELSET, unix.NFT_MSG_DELSETELEM, unix.NFT_MSG_DELOBJ:
		e.Gone = true
	}
	for kind, value := range attributes(m.body, 4) { // struct nfgenmsg
		switch {
		case kind == nftaTable:
			e.NftTable = textAttr(value)
		case kind == nftaElemSet && (op == unix.NFT_MSG_NEWSETELEM || op == unix.NFT_MSG_DELSETELEM):
			e.NftSet = textAttr(value)
		}
		if kind >= nftaElemSet {
			break
		}
	}
	return e, e.NftTable != ""
}

// textAttr is a name, without the zero byte that ends it.
func textAttr(b []byte) string {
	name, _, _ := bytes.Cut(b, []byte{0})
	return string(name)
}

func host(b []byte) netip.Prefix { return prefix(b, 8*len(b)) }

// prefix is invalid where the bytes are no address or the length is none of it.
func prefix(b []byte, bits int) netip.Prefix {
	a, ok := netip.AddrFromSlice(b)
	if !ok || bits > a.BitLen() {
		return netip.Prefix{}
	}
	return netip.PrefixFrom(a, bits)
}
