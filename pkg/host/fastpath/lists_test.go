package fastpath

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/enipool/enipool/pkg/nettest"
	"github.com/enipool/enipool/pkg/nlmsg"
	"golang.org/x/sys/unix"
)

// messageOf is a message of the kernel's.
func messageOf(kind, flags uint16, body ...byte) []byte {
	b := make([]byte, nlmsg.HeaderSize, nlmsg.HeaderSize+len(body))
	binary.NativeEndian.PutUint32(b, uint32(nlmsg.HeaderSize+len(body)))
	binary.NativeEndian.PutUint16(b[4:], kind)
	binary.NativeEndian.PutUint16(b[6:], flags)
	return append(b, body...)
}

func errnoBody(errno unix.Errno) []byte {
	return binary.NativeEndian.AppendUint32(nil, uint32(-int32(errno)))
}

// queueOf is the message about a queue of the link 7.
func queueOf(flags uint16) []byte {
	body := make([]byte, sizeofTcMsg)
	binary.NativeEndian.PutUint32(body[4:], 7)
	return messageOf(unix.RTM_NEWQDISC, flags, append(body, textAttribute(unix.TCA_KIND, "clsact")...)...)
}

func TestAListOfQueuesIsWholeOrAnError(t *testing.T) {
	for _, tt := range []struct {
		name   string
		parts  [][]byte
		queues int
		err    error
	}{
		{"two parts", [][]byte{queueOf(0), append(queueOf(0), messageOf(unix.NLMSG_DONE, 0, errnoBody(0)...)...)}, 2, nil},
		{"it changed", [][]byte{queueOf(0), queueOf(unix.NLM_F_DUMP_INTR), messageOf(unix.NLMSG_DONE, 0, errnoBody(0)...)}, 2, unix.EINTR},
		{"it changed before the end", [][]byte{queueOf(0), messageOf(unix.NLMSG_DONE, unix.NLM_F_DUMP_INTR, errnoBody(0)...)}, 1, unix.EINTR},
		{"the kernel gave up", [][]byte{queueOf(0), messageOf(unix.NLMSG_DONE, 0, errnoBody(unix.ENOMEM)...)}, 1, unix.ENOMEM},
		{"the kernel refused", [][]byte{messageOf(unix.NLMSG_ERROR, 0, errnoBody(unix.EPERM)...)}, 0, unix.EPERM},
		{"cut short", [][]byte{queueOf(0)[:30]}, 0, nlmsg.ErrCut},
		{"a message of no length", [][]byte{append(queueOf(0), make([]byte, nlmsg.HeaderSize)...)}, 1, nlmsg.ErrCut},
		{"a queue without its header", [][]byte{messageOf(unix.RTM_NEWQDISC, 0, 1, 2, 3)}, 0, nlmsg.ErrCut},
	} {
		t.Run(tt.name, func(t *testing.T) {
			queues, last, err := 0, false, error(nil)
			list := queueList{tell: func(index int, kind string) {
				if queues++; index != 7 || kind != "clsact" {
					t.Errorf("a queue %q of link %d", kind, index)
				}
			}}
			for i, part := range tt.parts {
				if last, err = list.readPart(part); last != (i == len(tt.parts)-1) && err == nil {
					t.Errorf("part %d is the last: %t", i, last)
				}
			}
			if queues != tt.queues || !errors.Is(err, tt.err) {
				t.Errorf("%d queues, %v; want %d, %v", queues, err, tt.queues, tt.err)
			}
		})
	}
}

func TestAnAnswerAboutNftablesIsWholeOrAnError(t *testing.T) {
	rule := messageOf(unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_NEWRULE, unix.NLM_F_MULTI, unix.NFPROTO_INET, 0, 0, 0)
	for _, tt := range []struct {
		name     string
		part     []byte
		messages int
		last     bool
		err      error
	}{
		{"a part", rule, 1, false, nil},
		{"the last part", append(rule, messageOf(unix.NLMSG_DONE, 0, errnoBody(0)...)...), 1, true, nil},
		{"an answer of one message", messageOf(unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_NEWGEN, 0, 0, 0, 0, 0), 1, true, nil},
		{"the kernel gave up", append(rule, messageOf(unix.NLMSG_DONE, 0, errnoBody(unix.ENOENT)...)...), 1, true, unix.ENOENT},
		{"cut short", append(rule, rule[:18]...), 1, true, nlmsg.ErrCut},
		{"a message of no length", append(rule, make([]byte, nlmsg.HeaderSize)...), 1, true, nlmsg.ErrCut},
		{"a message without its header", messageOf(unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_NEWRULE, 0, 1, 2), 0, true, nlmsg.ErrCut},
	} {
		t.Run(tt.name, func(t *testing.T) {
			messages := 0
			last, err := deliverPart(tt.part, func([]byte) error { messages++; return nil })
			if messages != tt.messages || last != tt.last || !errors.Is(err, tt.err) {
				t.Errorf("%d messages, last %t, %v; want %d, %t, %v", messages, last, err, tt.messages, tt.last, tt.err)
			}
		})
	}
}

// The kernel's numbers are read only where they are.
func TestTheNumberOfPoliciesIsReadOnlyWhereItIs(t *testing.T) {
	info := func(value ...byte) [][]byte {
		m := binary.NativeEndian.AppendUint16(make([]byte, 4), uint16(unix.SizeofNlAttr+len(value)))
		return [][]byte{append(binary.NativeEndian.AppendUint16(m, xfrmSPDInfo), value...)}
	}
	for _, tt := range []struct {
		name     string
		messages [][]byte
		none     bool
	}{
		{"none", info(make([]byte, 24)...), true},
		{"none but those of sockets", info(append(make([]byte, 12), 1, 0, 0, 0)...), true},
		{"one for forwarded packets", info(0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0), false},
		{"a number that is cut short", info(0, 0, 0, 0), false},
		{"nothing behind the header", [][]byte{make([]byte, 4)}, false},
		{"nothing", [][]byte{nil}, false},
	} {
		if got := saysNoPolicies(tt.messages); got != tt.none {
			t.Errorf("%s: %t, want %t", tt.name, got, tt.none)
		}
	}
}

// It is so where a socket could not be opened again behind the end of a list.
func TestASocketThatIsNotOpenCanBeClosed(t *testing.T) { (*nftables)(nil).close() }

// countPrograms counts the programs that this process has open.
func countPrograms(t *testing.T) (n int) {
	t.Helper()
	files, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if to, _ := os.Readlink(file); strings.Contains(to, "bpf-prog") {
			n++
		}
	}
	return n
}

func TestProgramsAreClosedWhereOneCanNotBeOpened(t *testing.T) {
	nettest.Need(t)
	dir := folder(t)
	for _, release := range []string{"a", "b"} {
		if err := os.MkdirAll(filepath.Join(dir, release), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	program := nettest.Program(t, ebpf.SchedCLS, ebpf.AttachTCXIngress, -1)
	if err := program.Pin(filepath.Join(dir, "a", programFile)); err != nil {
		t.Fatal(err)
	}
	other, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := other.Pin(filepath.Join(dir, "b", programFile)); err != nil {
		t.Fatal(err)
	}
	before := countPrograms(t)
	all, err := openPrograms(dir)
	if err == nil {
		t.Fatal("a map was opened as a program")
	}
	if now := countPrograms(t); now != before || len(all) > 0 {
		t.Errorf("%d programs are open, %d were before; %d were returned", now, before, len(all))
	}
}
