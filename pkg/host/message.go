package host

import (
	"encoding/binary"

	"github.com/enipool/enipool/pkg/nlmsg"
	"golang.org/x/sys/unix"
)

// message is a netlink message in the making: header, fixed part, attributes, each
// padded to four bytes.
type message []byte

// newMessage begins a message with its header, without number and length, and the
// fixed part of its kind.
func newMessage(kind, flags uint16, fixed ...byte) message {
	m := make(message, 0, 192)
	m = append(m, 0, 0, 0, 0)
	m = binary.NativeEndian.AppendUint16(m, kind)
	m = binary.NativeEndian.AppendUint16(m, flags|unix.NLM_F_REQUEST)
	m = append(m, 0, 0, 0, 0, 0, 0, 0, 0)
	return append(m, fixed...).padded()
}

func (m message) padded() message {
	for len(m) != nlmsg.Align(len(m)) {
		m = append(m, 0)
	}
	return m
}

// done writes the length into the header.
func (m message) done() message {
	binary.NativeEndian.PutUint32(m, uint32(len(m)))
	return m
}

// attr appends an attribute.
func (m *message) attr(kind uint16, value []byte) {
	*m = binary.NativeEndian.AppendUint16(*m, uint16(unix.SizeofNlAttr+len(value)))
	*m = binary.NativeEndian.AppendUint16(*m, kind)
	*m = append(*m, value...).padded()
}

func (m *message) number(kind uint16, n uint32) {
	m.attr(kind, binary.NativeEndian.AppendUint32(nil, n))
}

func (m *message) text(kind uint16, s string) { m.attr(kind, append([]byte(s), 0)) }

// nest appends an attribute that holds those which fill appends, behind a fixed
// part of its own.
func (m *message) nest(kind uint16, fixed []byte, fill func()) {
	at := len(*m)
	m.attr(kind, fixed)
	fill()
	binary.NativeEndian.PutUint16((*m)[at:], uint16(len(*m)-at))
}

// linkPart is the fixed part of messages about links, struct ifinfomsg.
func linkPart(index int, flags, change uint32) []byte {
	b := make([]byte, 4, unix.SizeofIfInfomsg)
	b = binary.NativeEndian.AppendUint32(b, uint32(index))
	b = binary.NativeEndian.AppendUint32(b, flags)
	return binary.NativeEndian.AppendUint32(b, change)
}
