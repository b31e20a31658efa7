// Package nlmsg takes what the kernel sends by netlink apart: a datagram into messages, and
// a message into attributes. The parts are not copied. It believes no length that the
// bytes do not have: a datagram that did not fit a buffer ends in the middle of a message.
package nlmsg

import (
	"encoding/binary"
	"errors"
	"iter"

	"golang.org/x/sys/unix"
)

// HeaderSize is the length of struct nlmsghdr.
const HeaderSize = unix.SizeofNlMsghdr

// attributeHeader is the length of struct nlattr, and of struct rtattr.
const attributeHeader = unix.SizeofNlAttr

// typeMask is NLA_TYPE_MASK of linux/netlink.h: the other two bits of a type are flags.
const typeMask = 0x3fff

// errnoSize is the length of the number that ends a list, or an answer.
const errnoSize = 4

// ErrCut says that a message or an attribute is shorter than its length says, or that its
// length has no room for its header.
var ErrCut = errors.New("a netlink message is cut short")

// Message is one message of a datagram.
type Message struct {
	Kind, Flags uint16
	Sequence    uint32
	Body        []byte // what stands behind the header
}

// Align returns n as messages and attributes are padded: the next one begins at a multiple
// of four bytes.
func Align(n int) int { return (n + 3) &^ 3 }

// Next takes the first message off a datagram. One that says it is an error has its number.
func Next(datagram []byte) (m Message, rest []byte, err error) {
	if len(datagram) < HeaderSize {
		return m, nil, ErrCut
	}
	length := uint64(binary.NativeEndian.Uint32(datagram))
	if length < HeaderSize || length > uint64(len(datagram)) {
		return m, nil, ErrCut
	}
	m = Message{Kind: binary.NativeEndian.Uint16(datagram[4:]), Flags: binary.NativeEndian.Uint16(datagram[6:]),
		Sequence: binary.NativeEndian.Uint32(datagram[8:]), Body: datagram[HeaderSize:length]}
	if m.Kind == unix.NLMSG_ERROR && len(m.Body) < errnoSize {
		return m, nil, ErrCut
	}
	return m, datagram[min(Align(int(length)), len(datagram)):], nil
}

// Messages yields the messages of a datagram. An error is the last that it yields.
func Messages(datagram []byte) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		for len(datagram) > 0 {
			m, rest, err := Next(datagram)
			if !yield(m, err) || err != nil {
				return
			}
			datagram = rest
		}
	}
}

// IsEnd tells whether nothing of the answer comes behind the message: it ends a list, or is
// an error or an acknowledgement.
func (m Message) IsEnd() bool { return m.Kind == unix.NLMSG_DONE || m.Kind == unix.NLMSG_ERROR }

// Errno returns why the kernel refused or gave up, 0 where the message says nothing of the
// kind. What ends a list may say it too: then the list is not whole.
func (m Message) Errno() unix.Errno {
	if !m.IsEnd() || len(m.Body) < errnoSize {
		return 0
	}
	return unix.Errno(max(0, -int64(int32(binary.NativeEndian.Uint32(m.Body)))))
}

// IsTorn tells whether what is listed changed since the first part of the list was sent: the
// list may lack something, or have it twice. The kernel says so in a message behind the
// change, or in the one that ends the list.
func (m Message) IsTorn() bool { return m.Flags&unix.NLM_F_DUMP_INTR != 0 }

// NextAttribute takes the first attribute off a list of them. Its kind is without flags.
func NextAttribute(list []byte) (kind uint16, value, rest []byte, err error) {
	if len(list) < attributeHeader {
		return 0, nil, nil, ErrCut
	}
	length := int(binary.NativeEndian.Uint16(list))
	if length < attributeHeader || length > len(list) {
		return 0, nil, nil, ErrCut
	}
	return binary.NativeEndian.Uint16(list[2:]) & typeMask, list[attributeHeader:length], list[min(Align(length), len(list)):], nil
}

// Attributes yields kind and value of each attribute, up to the first one that is cut short:
// what stands behind it can't be found. Where a missing one would change the meaning of the
// rest, NextAttribute tells.
func Attributes(list []byte) iter.Seq2[uint16, []byte] {
	return func(yield func(uint16, []byte) bool) {
		for len(list) > 0 {
			kind, value, rest, err := NextAttribute(list)
			if err != nil || !yield(kind, value) {
				return
			}
			list = rest
		}
	}
}

// Attribute returns the value of the first attribute of the kind, nil if there is none.
func Attribute(list []byte, kind uint16) []byte {
	for is, value := range Attributes(list) {
		if is == kind {
			return value
		}
	}
	return nil
}
