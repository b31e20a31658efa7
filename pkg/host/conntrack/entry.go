package conntrack

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/enipool/enipool/pkg/netconf"
	"github.com/mdlayher/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// What ctnetlink calls its messages and attributes; linux/netfilter/
// nfnetlink_conntrack.h.
const (
	msgNew, msgGet, msgDelete = 0, 1, 2

	attrOrig, attrReply   = 1, 2
	attrStatus            = 3
	attrStatusMask        = 26
	attrMark, attrMask    = 8, 21
	attrID, attrZone      = 12, 18
	attrTupleIP           = 1
	firstAddr, lastAddr   = 1, 4 // IPv4 source and destination, then IPv6
	attrTupleProto        = 2
	attrTransport         = 1
	attrToPort            = 3
	seenReply             = 1 << 1 // IPS_SEEN_REPLY of linux/netfilter/nf_conntrack_common.h
	headerLen, subsysType = 4, unix.NFNL_SUBSYS_CTNETLINK << 8
)

// entry is a connection. What names it to the kernel is kept as the kernel wrote it.
type entry struct {
	family         byte
	orig, id, zone []byte
	mark           uint32
	addrs          []netip.Addr // of both directions, each source and destination
	transport      byte
	port           uint16 // that the first packet was sent to
	answered       bool
}

// flow returns the connection as decisions want it; without addresses it is the zero one.
func (e entry) flow() netconf.Flow {
	if len(e.addrs) != 4 {
		return netconf.Flow{}
	}
	return netconf.Flow{From: e.addrs[0], To: e.addrs[1], Transport: netconf.Transport(e.transport), Port: e.port,
		Target: e.addrs[2], Back: e.addrs[3], Answered: e.answered}
}

// walkConnections shows the connections of all families one by one: a busy node has millions.
func walkConnections(filter func(*netlink.AttributeEncoder), show func(entry)) error {
	enc := newEncoder()
	filter(enc)
	m, err := newMessage(unix.AF_UNSPEC, msgGet, 0, enc)
	if err != nil {
		return err
	}
	request := nl.NewNetlinkRequest(subsysType|msgGet, unix.NLM_F_DUMP)
	request.AddRawData(m.Data)
	var damaged error
	err = request.ExecuteIter(unix.NETLINK_NETFILTER, 0, func(data []byte) bool {
		if len(data) < headerLen {
			return true
		}
		e, err := decodeEntry(data)
		if err != nil {
			damaged = fmt.Errorf("decode a connection: %w", err)
			return false
		}
		show(e)
		return true
	})
	return errors.Join(err, damaged)
}

func decodeEntry(data []byte) (entry, error) {
	conn := entry{family: data[0]}
	ad, err := netlink.NewAttributeDecoder(data[headerLen:])
	if err != nil {
		return conn, err
	}
	ad.ByteOrder = binary.BigEndian
	for ad.Next() {
		switch ad.Type() {
		// flow counts on the order in which the kernel writes the directions: the original
		// one first. Only that one's port is read: answers go to a port of the client's.
		case attrOrig:
			conn.orig = ad.Bytes()
			ad.Nested(conn.addTuple)
			ad.Nested(conn.readPort)
		case attrReply:
			ad.Nested(conn.addTuple)
		case attrStatus:
			conn.answered = ad.Uint32()&seenReply != 0
		case attrMark:
			conn.mark = ad.Uint32()
		case attrID:
			conn.id = ad.Bytes()
		case attrZone:
			conn.zone = ad.Bytes()
		}
	}
	return conn, ad.Err()
}

// addTuple reads the addresses of one direction.
func (e *entry) addTuple(ad *netlink.AttributeDecoder) error {
	for ad.Next() {
		if ad.Type() != attrTupleIP {
			continue
		}
		ad.Nested(func(ip *netlink.AttributeDecoder) error {
			for ip.Next() {
				if a, ok := netip.AddrFromSlice(ip.Bytes()); ok && ip.Type() >= firstAddr && ip.Type() <= lastAddr {
					e.addrs = append(e.addrs, a)
				}
			}
			return nil
		})
	}
	return nil
}

// readPort reads the transport and the port that a direction's packets are sent to.
func (e *entry) readPort(ad *netlink.AttributeDecoder) error {
	for ad.Next() {
		if ad.Type() != attrTupleProto {
			continue
		}
		ad.Nested(func(proto *netlink.AttributeDecoder) error {
			for proto.Next() {
				switch proto.Type() {
				case attrTransport:
					e.transport = proto.Uint8()
				case attrToPort:
					e.port = proto.Uint16()
				}
			}
			return nil
		})
	}
	return nil
}

// appendIdentity appends what tells the kernel which connection is meant.
func (e entry) appendIdentity(enc *netlink.AttributeEncoder) {
	enc.Bytes(attrOrig|unix.NLA_F_NESTED, e.orig)
	if e.zone != nil {
		enc.Bytes(attrZone, e.zone)
	}
}

// setMarkRequest sets the bits of the mark's mask. The kernel does that by itself, so
// that nobody's change to the others is lost.
func (e entry) setMarkRequest(m Mark) message {
	enc := newEncoder()
	e.appendIdentity(enc)
	enc.Uint32(attrMark, m.Value)
	enc.Uint32(attrMask, m.Mask)
	return mustMessage(e.family, msgNew, enc)
}

// deleteRequest deletes the connection, and not one that has come into its place.
func (e entry) deleteRequest() message {
	enc := newEncoder()
	e.appendIdentity(enc)
	if e.id != nil {
		enc.Bytes(attrID, e.id)
	}
	return mustMessage(e.family, msgDelete, enc)
}

func newEncoder() *netlink.AttributeEncoder {
	enc := netlink.NewAttributeEncoder()
	enc.ByteOrder = binary.BigEndian
	return enc
}

// mustMessage can't fail: all that is encoded is short.
func mustMessage(family byte, kind uint16, enc *netlink.AttributeEncoder) message {
	m, err := newMessage(family, kind, netlink.Acknowledge, enc)
	if err != nil {
		panic(err)
	}
	return m
}

func newMessage(family byte, kind uint16, flags netlink.HeaderFlags, enc *netlink.AttributeEncoder) (message, error) {
	attrs, err := enc.Encode()
	return message{
		Header: netlink.Header{Type: netlink.HeaderType(subsysType | kind), Flags: netlink.Request | flags},
		Data:   append([]byte{family, unix.NFNETLINK_V0, 0, 0}, attrs...),
	}, err
}
