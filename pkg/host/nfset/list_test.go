package nfset

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/enipool/enipool/pkg/nlmsg"
	"golang.org/x/sys/unix"
)

// partOf is a part of a list with one element.
func partOf(flags uint16, key byte) reply {
	var m message
	start := m.beginMessage(unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_NEWSETELEM, flags, 1, unix.NFPROTO_INET, 0)
	m.appendNested(unix.NFTA_SET_ELEM_LIST_ELEMENTS, func() {
		m.appendNested(unix.NFTA_LIST_ELEM, func() {
			m.appendNested(unix.NFTA_SET_ELEM_KEY, func() { m.appendAttr(unix.NFTA_DATA_VALUE, []byte{10, 0, 0, key}) })
		})
	})
	m.endMessage(start)
	replies, err := parseReplies(m.bytes)
	if err != nil {
		panic(err)
	}
	return replies[0]
}

// endOf is the message that ends a list, with a number of the kernel's.
func endOf(kind, flags uint16, errno unix.Errno) reply {
	return reply{nlmsg.Message{Kind: kind, Flags: flags, Body: binary.NativeEndian.AppendUint32(nil, uint32(-int32(errno)))}}
}

func TestAListIsWholeOrAskedForAgain(t *testing.T) {
	for _, tt := range []struct {
		name     string
		replies  []reply
		elements int
		whole    bool
		err      error
	}{
		{"two parts", []reply{partOf(0, 1), partOf(0, 2), endOf(unix.NLMSG_DONE, 0, 0)}, 2, true, nil},
		{"an empty set", []reply{endOf(unix.NLMSG_DONE, 0, 0)}, 0, true, nil},
		{"no such set", []reply{endOf(unix.NLMSG_ERROR, 0, unix.ENOENT)}, 0, true, nil},
		{"the table changed between two parts", []reply{partOf(0, 1), partOf(unix.NLM_F_DUMP_INTR, 2), endOf(unix.NLMSG_DONE, 0, 0)}, 0, false, nil},
		{"it changed before the end", []reply{partOf(0, 1), endOf(unix.NLMSG_DONE, unix.NLM_F_DUMP_INTR, 0)}, 0, false, nil},
		{"the set was replaced", []reply{partOf(0, 1), endOf(unix.NLMSG_DONE, 0, unix.ENOENT)}, 0, false, nil},
		{"the kernel gave up", []reply{partOf(0, 1), endOf(unix.NLMSG_DONE, 0, unix.ENOMEM)}, 0, false, unix.ENOMEM},
		{"the kernel refused", []reply{endOf(unix.NLMSG_ERROR, 0, unix.EPERM)}, 0, false, unix.EPERM},
	} {
		t.Run(tt.name, func(t *testing.T) {
			list, whole, err := decodeList(tt.replies)
			if len(list) != tt.elements || whole != tt.whole || !errors.Is(err, tt.err) {
				t.Errorf("%d elements, whole %t, %v; want %d, %t, %v", len(list), whole, err, tt.elements, tt.whole, tt.err)
			}
		})
	}
}

func TestAReplyWithoutItsHeaderIsRefused(t *testing.T) {
	var m message
	m.endMessage(m.beginMessage(unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_NEWSETELEM, 0, 1, unix.NFPROTO_INET, 0))
	if replies, err := parseReplies(m.bytes); err != nil || len(replies) != 1 || len(replies[0].attributes()) > 0 {
		t.Errorf("%v, %v", replies, err)
	}
	binary.NativeEndian.PutUint32(m.bytes, uint32(len(m.bytes)-2))
	for _, datagram := range [][]byte{m.bytes, m.bytes[:len(m.bytes)-3], make([]byte, nlmsg.HeaderSize)} {
		if replies, err := parseReplies(datagram); !errors.Is(err, nlmsg.ErrCut) {
			t.Errorf("%x: %v, %v", datagram, replies, err)
		}
	}
}
