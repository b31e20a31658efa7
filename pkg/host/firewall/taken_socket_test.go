package firewall

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/enipool/enipool/pkg/nettest"
	"github.com/enipool/enipool/pkg/nlmsg"
	"github.com/google/nftables"
	"golang.org/x/sys/unix"
)

// answerTo is a message of the kernel's to the request with the number.
func answerTo(sequence uint32, kind, flags uint16, body ...byte) []byte {
	b := binary.NativeEndian.AppendUint32(nil, uint32(nlmsg.HeaderSize+len(body)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = binary.NativeEndian.AppendUint16(b, flags)
	b = binary.NativeEndian.AppendUint32(b, sequence)
	b = append(binary.NativeEndian.AppendUint32(b, 0), body...)
	return append(b, make([]byte, nlmsg.Align(len(b))-len(b))...)
}

func endOf(sequence uint32, kind, flags uint16, errno unix.Errno) []byte {
	return answerTo(sequence, kind, flags, binary.NativeEndian.AppendUint32(nil, uint32(-int32(errno)))...)
}

func TestAListOfNftablesIsWholeOrAnError(t *testing.T) {
	const rule = unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_NEWRULE
	one, end := answerTo(2, rule, 0, 1, 2, 3, 4, 5), endOf(2, unix.NLMSG_DONE, 0, 0)
	for _, tt := range []struct {
		name   string
		parts  [][]byte
		bodies int
		err    error
	}{
		{"two parts", [][]byte{one, slices.Concat(one, end)}, 2, nil},
		{"nothing", [][]byte{end}, 0, nil},
		{"behind the rest of another list", [][]byte{answerTo(1, rule, unix.NLM_F_DUMP_INTR, 1, 2, 3, 4), endOf(1, unix.NLMSG_DONE, 0, unix.EIO), one, end}, 1, nil},
		{"it changed", [][]byte{one, answerTo(2, rule, unix.NLM_F_DUMP_INTR, 1, 2, 3, 4), end}, 2, unix.EINTR},
		{"it changed before the end", [][]byte{one, endOf(2, unix.NLMSG_DONE, unix.NLM_F_DUMP_INTR, 0)}, 1, unix.EINTR},
		{"the kernel gave up", [][]byte{one, endOf(2, unix.NLMSG_DONE, 0, unix.ENOENT)}, 1, unix.ENOENT},
		{"the kernel refused", [][]byte{endOf(2, unix.NLMSG_ERROR, 0, unix.EPERM)}, 0, unix.EPERM},
		{"cut short", [][]byte{slices.Concat(one, one[:18])}, 1, nlmsg.ErrCut},
		{"a message of no length", [][]byte{slices.Concat(one, make([]byte, nlmsg.HeaderSize))}, 1, nlmsg.ErrCut},
	} {
		t.Run(tt.name, func(t *testing.T) {
			list := nftList{sequence: 2}
			for i, part := range tt.parts {
				done, err := list.addPart(part)
				last := i == len(tt.parts)-1
				if done != last || last && !errors.Is(err, tt.err) || !last && err != nil {
					t.Errorf("part %d: done %t, %v; want %v at the end", i, done, err, tt.err)
				}
			}
			if len(list.bodies) != tt.bodies {
				t.Errorf("%d messages, want %d", len(list.bodies), tt.bodies)
			}
		})
	}
}

// kube-proxy replaces the map of a Service's endpoints while others read its rules.
func TestAMapThatIsGoneLeadsNowhere(t *testing.T) {
	nettest.Need(t)
	raw, err := dialNft()
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	n := natPacket{of: &nftNatRules{raw: raw, table: &nftables.Table{Name: "gone", Family: nftables.TableFamilyIPv4}}}
	if err := n.chooseOf("endpoints"); err != nil {
		t.Fatal(err)
	}
	if n.view.action != decidesElsewhere || len(n.out.choice) > 0 {
		t.Errorf("action %d, choice %v", n.view.action, n.out.choice)
	}
}
