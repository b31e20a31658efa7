package fastpath

import (
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

// priorities are what a router gives a packet by bits 3 and 4 of its type of service
// (ip_tos2prio of the kernel), four bits each from the right: nothing in particular,
// bulk, interactive, interactive bulk. Queues go by them.
const priorities = 0x4620

// jump counts the packet, gives it its priority and takes one from its time to live
// as a router does, and sends it to the next hop that is known (R8), through whatever
// queues and programs hang at the link.
func (p *program) jump(m descriptors) {
	p.add(
		asm.LoadMem(asm.R1, asm.R8, knownCounter, asm.Word).WithSymbol("jump"), asm.StoreMem(asm.RFP, key, asm.R1, asm.Word),
		asm.LoadMapPtr(asm.R1, m.counters), asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, key),
		asm.FnMapLookupElem.Call(), asm.JEq.Imm(asm.R0, 0, plain),
		asm.LoadMem(asm.R1, asm.R0, 0, asm.DWord), asm.Add.Imm(asm.R1, 1), asm.StoreMem(asm.R0, 0, asm.R1, asm.DWord),
		asm.LoadMem(asm.R1, asm.R7, ipTOS, asm.Byte), asm.And.Imm(asm.R1, 0x18), asm.RSh.Imm(asm.R1, 1),
		asm.Mov.Imm(asm.R2, priorities), asm.RSh.Reg(asm.R2, asm.R1), asm.And.Imm(asm.R2, 0xf),
		asm.StoreMem(asm.R6, skbPriority, asm.R2, asm.Word),
		asm.LoadMem(asm.R1, asm.R7, ipTTL, asm.Byte), asm.Sub.Imm(asm.R1, 1), asm.StoreMem(asm.R7, ipTTL, asm.R1, asm.Byte),
		// The sum changes as in ip_decrease_ttl of the kernel: the carry goes round.
		asm.LoadMem(asm.R1, asm.R7, ipSum, asm.Half), asm.Add.Imm(asm.R1, be16(0x0100)),
		asm.JLT.Imm(asm.R1, 0xffff, "sum"), asm.Add.Imm(asm.R1, 1),
		asm.StoreMem(asm.R7, ipSum, asm.R1, asm.Half).WithSymbol("sum"),
		asm.StoreImm(asm.RFP, neigh, unix.AF_INET, asm.Word),
		asm.LoadMem(asm.R1, asm.R8, knownNextHop, asm.Word), asm.StoreMem(asm.RFP, neigh+4, asm.R1, asm.Word),
		asm.StoreImm(asm.RFP, neigh+8, 0, asm.Word), asm.StoreImm(asm.RFP, neigh+12, 0, asm.Word), asm.StoreImm(asm.RFP, neigh+16, 0, asm.Word),
		asm.LoadMem(asm.R1, asm.R8, knownLink, asm.Word), asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, neigh), asm.Mov.Imm(asm.R3, 20),
		asm.Mov.Imm(asm.R4, 0), asm.FnRedirectNeigh.Call(), asm.Return(),
	)
}
