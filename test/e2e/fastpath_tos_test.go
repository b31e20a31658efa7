package e2e

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/enipool/enipool/pkg/ipam"
	"golang.org/x/sys/unix"
)

// countPriorities counts what leaves the node by the link, by the priority that its
// queues would see: IPv4 packets of the length on the wire.
func (f *fast) countPriorities(dev string, length int32) (read func() [8]uint32) {
	f.t.Helper()
	counts, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 8})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { counts.Close() })
	const skbLength, skbPriority, onStack = 0, 32, -4
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, AttachType: ebpf.AttachTCXEgress, License: "GPL", Instructions: asm.Instructions{
		asm.LoadMem(asm.R2, asm.R1, skbLength, asm.Word), asm.JNE.Imm(asm.R2, length, "out"),
		asm.LoadMem(asm.R2, asm.R1, skbPriority, asm.Word), asm.StoreMem(asm.RFP, onStack, asm.R2, asm.Word),
		asm.LoadMapPtr(asm.R1, counts.FD()), asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, onStack), asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "out"),
		asm.LoadMem(asm.R1, asm.R0, 0, asm.Word), asm.Add.Imm(asm.R1, 1), asm.StoreMem(asm.R0, 0, asm.R1, asm.Word),
		asm.Mov.Imm(asm.R0, -1).WithSymbol("out"), asm.Return(),
	}})
	if err != nil {
		f.t.Fatal(err)
	}
	defer program.Close()
	f.must(f.node.Do(func() error {
		at, err := net.InterfaceByName(dev)
		if err != nil {
			return err
		}
		l, err := link.AttachTCX(link.TCXOptions{Interface: at.Index, Program: program, Attach: ebpf.AttachTCXEgress})
		if err == nil {
			f.t.Cleanup(func() { l.Close() })
		}
		return err
	}))
	return func() (all [8]uint32) {
		for i := range all {
			f.must(counts.Lookup(uint32(i), &all[i]))
		}
		return all
	}
}

// untranslated are settings with which what pods send to the internet jumps.
func untranslated() ipam.Settings {
	s := mapNft()
	s.SNAT = false
	return s
}

// The queues of an ENI give way to packets by the priority that the kernel makes of
// their type of service.
func TestPacketsThatJumpKeepThePriorityOfTheirTypeOfService(t *testing.T) {
	f := newFast(t, untranslated())
	f.needOn()
	ttlEcho(t, f.internet, "7")
	const size, headers = 300, 14 + 20 + 8
	read := f.countPriorities("eth1", size+headers)
	for i, tt := range []struct {
		tos      int
		priority int // TC_PRIO_ of <linux/pkt_sched.h>
	}{
		{0x00, 0}, {0x08, 2}, {0x10, 6}, {0x18, 4}, {0xb8, 4}, {0x48, 2}, {0x02, 0}, {0x12, 6},
	} {
		t.Run(fmt.Sprintf("type of service %#02x", tt.tos), func(t *testing.T) {
			c := udpSocket(t, f.pods["b"], fmt.Sprintf("10.0.0.21:%d", 5000+i), internet4+":7")
			option(t, c, func(fd int) error { return unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_TOS, tt.tos) })
			before := read()
			const packets = 30
			got := f.jumped(func() {
				for range packets {
					echoed(t, c, size)
				}
			})
			if got.Out == 0 {
				t.Error("no packet jumped")
			}
			after := read()
			for priority := range after {
				want := uint32(0)
				if priority == tt.priority {
					want = packets
				}
				if n := after[priority] - before[priority]; n != want {
					t.Errorf("%d packets left with priority %d, want %d", n, priority, want)
				}
			}
		})
	}
}

// A rule of routing that asks for the type of service holds for each packet, not for
// the flow that it is of.
func TestRoutesByTypeOfServiceHoldWithinAFlow(t *testing.T) {
	f := newFast(t, untranslated())
	f.needOn()
	f.node.Run(t, "ip", "rule", "add", "pref", "100", "tos", "0x10", "blackhole")
	ttlEcho(t, f.internet, "7")
	c := udpSocket(t, f.pods["b"], "10.0.0.21:5000", internet4+":7")
	if got := f.jumped(func() {
		for range 30 {
			echoed(t, c, 100)
		}
	}); got.Out == 0 {
		t.Fatalf("the flow does not jump: %+v", got)
	}
	echoed(t, c, 100)
	option(t, c, func(fd int) error { return unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_TOS, 0x10) })
	for range 10 {
		if _, err := c.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	_ = c.SetDeadline(time.Now().Add(300 * time.Millisecond))
	if n, err := c.Read(make([]byte, 100)); err == nil || !strings.Contains(err.Error(), "timeout") {
		t.Errorf("%d bytes came back, %v; want that a rule keeps them", n, err)
	}
}
