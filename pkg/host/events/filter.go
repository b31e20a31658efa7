package events

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/netconf"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Where a message of NETLINK_ROUTE has what the filter looks at: nlmsghdr, then rtmsg
// or ndmsg.
const (
	offKind           = 4
	offLength         = unix.SizeofNlMsghdr + 1
	offTable          = unix.SizeofNlMsghdr + 4
	offProtocol       = unix.SizeofNlMsghdr + 5
	offNeighbourState = unix.SizeofNlMsghdr + 8
)

// keepAll is how many bytes of a message the filter keeps.
const keepAll = 1 << 30

// buildFilter makes the kernel drop what can concern nobody here, before it wakes this process:
// routes of other programs to whole networks, and what the kernel learns about its
// neighbours by itself. A routing daemon may change thousands of those per second. Of
// traffic control it keeps only that queues and filters are gone. What others add does no harm,
// and where it takes the place of something the kernel announces first what goes.
//
// Of routes it keeps ours, those in our tables, default routes, those to single
// addresses, and ff00::/8, which a link gets that IPv6 is switched on for; of neighbours, those that somebody configured and those that are gone.
func buildFilter() []bpf.Instruction {
	keep, drop := bpf.RetConstant{Val: keepAll}, bpf.RetConstant{Val: 0}
	// A check jumps over the instructions behind it to keep, so it has to know how many
	// there are: they are put together from the end.
	keepIf := func(rest []bpf.Instruction, test bpf.JumpTest, value uint32) []bpf.Instruction {
		return slices.Insert(rest, 0, bpf.Instruction(bpf.JumpIf{Cond: test, Val: value, SkipTrue: uint8(len(rest) - 1)}))
	}
	load := func(rest []bpf.Instruction, offset, size int) []bpf.Instruction {
		return slices.Insert(rest, 0, bpf.Instruction(bpf.LoadAbsolute{Off: uint32(offset), Size: size}))
	}

	neighbours := load([]bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: inFilterOrder(unix.NUD_PERMANENT), SkipTrue: 1}, drop, keep}, offNeighbourState, 2)

	routes := []bpf.Instruction{bpf.JumpIf{Cond: bpf.JumpLessThan, Val: netconf.PodsTable, SkipTrue: 1},
		bpf.JumpIf{Cond: bpf.JumpLessOrEqual, Val: netconf.PodsTable + eni.MaxIndex, SkipTrue: 1}, drop, keep}
	routes = load(routes, offTable, 1)
	for _, length := range []uint32{0, 8, 32, 128} {
		routes = keepIf(routes, bpf.JumpEqual, length)
	}
	routes = load(routes, offLength, 1)
	for _, protocol := range []uint32{netconf.Protocol, netconf.PodsProtocol} {
		routes = keepIf(routes, bpf.JumpEqual, protocol)
	}
	routes = load(routes, offProtocol, 1)

	var added []bpf.Instruction
	for _, kind := range []uint16{unix.RTM_NEWQDISC, unix.RTM_NEWTFILTER, unix.RTM_NEWTCLASS, unix.RTM_DELTCLASS, unix.RTM_NEWCHAIN, unix.RTM_DELCHAIN} {
		added = append(added, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: inFilterOrder(kind), SkipTrue: 1}, drop)
	}

	return slices.Concat([]bpf.Instruction{bpf.LoadAbsolute{Off: offKind, Size: 2}}, added, []bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: inFilterOrder(unix.RTM_NEWNEIGH), SkipTrue: 3},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: inFilterOrder(unix.RTM_NEWROUTE), SkipTrue: 2 + uint8(len(neighbours))},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: inFilterOrder(unix.RTM_DELROUTE), SkipTrue: 1 + uint8(len(neighbours))},
		keep,
	}, neighbours, routes)
}

// inFilterOrder is a value in the byte order of the machine as the filter reads it.
func inFilterOrder(v uint16) uint32 {
	return uint32(binary.BigEndian.Uint16(binary.NativeEndian.AppendUint16(nil, v)))
}

func attachFilter(fd int) error {
	code, err := bpf.Assemble(buildFilter())
	if err != nil {
		return fmt.Errorf("assemble the filter of netlink: %w", err)
	}
	raw := make([]unix.SockFilter, len(code))
	for i, c := range code {
		raw[i] = unix.SockFilter{Code: c.Op, Jt: c.Jt, Jf: c.Jf, K: c.K}
	}
	err = unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(raw)), Filter: &raw[0]})
	if err != nil {
		return fmt.Errorf("attach the filter to netlink: %w", err)
	}
	return nil
}
