package fastpath

import (
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"
)

// What the kernel calls things.
const (
	currentNetns   = -1
	tcpEstablished = 3

	ipsSeenReply, ipsAssured, ipsConfirmed = 1 << 1, 1 << 2, 1 << 3
	// Expected, translated, with changed sequence numbers, dying, a template,
	// untracked, with a helper, or already offloaded.
	ipsOthers = 1<<0 | 1<<4 | 1<<5 | 1<<6 | 1<<9 | 1<<11 | 1<<12 | 1<<13 | 1<<14 | 1<<15
)

// lookUpConnection copies what conntrack knows of the packet's connection onto
// the stack. Of a connection that is translated in any way the reply's addresses and ports are
// not the mirror image of the original's: what differs is collected in "wrong".
func (p *program) lookUpConnection(ct conntrack) {
	copyField := func(from, to int16, size asm.Size) {
		p.add(asm.LoadMem(asm.R1, asm.R7, from, size), asm.StoreMem(asm.RFP, to, asm.R1, size))
	}
	copyField(ipSrc, tuple, asm.Word)
	copyField(ipDst, tuple+4, asm.Word)
	copyField(ports, tuple+8, asm.Word) // both
	p.add(
		asm.Mov.Imm(asm.R1, currentNetns), asm.StoreMem(asm.RFP, opts, asm.R1, asm.Word),
		asm.StoreImm(asm.RFP, opts+4, 0, asm.Word), asm.StoreImm(asm.RFP, opts+8, 0, asm.Word),
		asm.LoadMem(asm.R1, asm.R7, ipProtocol, asm.Byte), asm.StoreMem(asm.RFP, opts+8, asm.R1, asm.Byte),
		asm.Mov.Reg(asm.R1, asm.R6), asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, tuple), asm.Mov.Imm(asm.R3, 12),
		asm.Mov.Reg(asm.R4, asm.RFP), asm.Add.Imm(asm.R4, opts), asm.Mov.Imm(asm.R5, 12),
		ct.call(ct.lookup), asm.JEq.Imm(asm.R0, 0, plain), asm.Mov.Reg(asm.R8, asm.R0),
		asm.FnJiffies64.Call(),
	)
	field := func(to asm.Register, from int16, size asm.Size) { p.add(asm.LoadMem(to, asm.R8, from, size)) }
	field(asm.R1, ct.timeout, asm.Word)
	p.add(asm.Sub.Reg32(asm.R1, asm.R0), asm.StoreMem(asm.RFP, left, asm.R1, asm.Word))
	field(asm.R1, ct.status, asm.DWord)
	p.add(asm.StoreMem(asm.RFP, status, asm.R1, asm.DWord))
	field(asm.R1, ct.mark, asm.Word)
	p.add(asm.StoreMem(asm.RFP, ctMark, asm.R1, asm.Word))
	field(asm.R1, ct.tcpState, asm.Byte)
	p.add(asm.StoreMem(asm.RFP, state, asm.R1, asm.Word), asm.Mov.Imm(asm.R3, 0))
	there, back := ct.tuples[0], ct.tuples[1]
	for _, pair := range [][2]int16{{there.src, back.dst}, {there.dst, back.src}, {there.sport, back.dport}, {there.dport, back.sport}} {
		size := asm.Word
		if pair[0] == there.sport || pair[0] == there.dport {
			size = asm.Half
		}
		field(asm.R1, pair[0], size)
		field(asm.R2, pair[1], size)
		p.add(asm.Xor.Reg(asm.R1, asm.R2), asm.Or.Reg(asm.R3, asm.R1))
	}
	p.add(asm.StoreMem(asm.RFP, wrong, asm.R3, asm.Word), asm.Mov.Reg(asm.R1, asm.R8), ct.call(ct.release))
}

// call calls a kfunc.
func (ct conntrack) call(id btf.TypeID) asm.Instruction {
	ins := asm.Instruction{OpCode: asm.OpCode(asm.JumpClass).SetJumpOp(asm.Call), Src: asm.PseudoKfuncCall, Constant: int64(id)}
	if ct.module != "" {
		ins.Offset = 1 // in the array of descriptors that the program is loaded with
	}
	return ins
}

// checkConnection lets pass what belongs to an established connection that nobody
// translates and of which conntrack has seen a packet a moment ago: every other
// packet goes the plain way, so that a connection lives as long as it would.
func (p *program) checkConnection() {
	load := func(to asm.Register, from int16, size asm.Size) asm.Instruction {
		return asm.LoadMem(to, asm.RFP, from, size)
	}
	p.add(
		load(asm.R1, wrong, asm.Word), asm.JNE.Imm(asm.R1, 0, "translated"),
		load(asm.R1, status, asm.DWord),
		asm.Mov.Reg(asm.R2, asm.R1), asm.And.Imm(asm.R2, ipsOthers|ipsConfirmed), asm.JNE.Imm(asm.R2, ipsConfirmed, plain),
		load(asm.R8, left, asm.Word),
		asm.LoadMem(asm.R2, asm.R7, ipProtocol, asm.Byte), asm.JEq.Imm(asm.R2, unix.IPPROTO_UDP, "udp"),
		asm.And.Imm(asm.R1, ipsAssured), asm.JEq.Imm(asm.R1, 0, plain),
		load(asm.R1, state, asm.Word), asm.JNE.Imm(asm.R1, tcpEstablished, plain),
	)
	p.checkAge(configTCP, "fresh")
	p.add(
		// Before the first answer a connection is new to all rules, whichever way it goes,
		// and the answer is what conntrack waits for.
		asm.And.Imm(asm.R1, ipsSeenReply).WithSymbol("udp"), asm.JEq.Imm(asm.R1, 0, plain),
	)
	p.checkAge(configUDP, "fresh")
	p.add(asm.Mov.Imm(asm.R1, 0).WithSymbol("fresh"))
}

// checkAge goes to the label if what is left of the connection's time (R8) says
// that conntrack saw it just now. Conntrack gives one of two times to a connection, depending on
// its state, and the entry does not say which: either may fit.
func (p *program) checkAge(at int16, label string) {
	for i := range int16(2) {
		p.add(
			asm.Mov.Reg(asm.R1, asm.R8), asm.LoadMem(asm.R2, asm.R9, at+8*i, asm.Word), asm.Sub.Reg32(asm.R1, asm.R2),
			asm.LoadMem(asm.R2, asm.R9, at+8*i+4, asm.Word), asm.JLE.Reg(asm.R1, asm.R2, label),
		)
	}
	p.add(asm.Ja.Label(plain))
}
