package fastpath

import (
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

// Flags of the question to the routing tables: BPF_FIB_LOOKUP_SKIP_NEIGH and _MARK.
const fibSkipNeigh, fibWithMark = 1 << 2, 1 << 5

// findSide tells what came in by an ENI from what a pod sends, and asks for the
// pod's address among those of the pool. Its value there is the mark of its ENI.
func (p *program) findSide(m descriptors) {
	p.add(
		asm.LoadMem(asm.R1, asm.R6, skbIfindex, asm.Word), asm.StoreMem(asm.RFP, key, asm.R1, asm.Word),
		asm.LoadMapPtr(asm.R1, m.enis), asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, key), asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "from a pod"),
		asm.StoreImm(asm.RFP, inward, 1, asm.Word),
		asm.LoadMem(asm.R1, asm.R7, ipDst, asm.Word), asm.Ja.Label("ask the pool"),
		asm.StoreImm(asm.RFP, inward, 0, asm.Word).WithSymbol("from a pod"),
		asm.LoadMem(asm.R1, asm.R7, ipSrc, asm.Word),
		asm.StoreMem(asm.RFP, key, asm.R1, asm.Word).WithSymbol("ask the pool"),
		asm.LoadMapPtr(asm.R1, m.pool), asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, key), asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, plain),
		asm.LoadMem(asm.R1, asm.R0, 0, asm.Word), asm.StoreMem(asm.RFP, mark, asm.R1, asm.Word),
	)
}

// chooseMark finds the mark that the firewall would give the packet: replies
// leave by the ENI that the connection came in by, the rest by the address's own,
// where the destination sees the pod's own address. A connection that came in by
// another ENI than its address's is none of ours to understand.
func (p *program) chooseMark(m descriptors) {
	p.add(
		asm.LoadMem(asm.R1, asm.RFP, inward, asm.Word), asm.JEq.Imm(asm.R1, 0, "outward"),
		asm.StoreImm(asm.RFP, mark, 0, asm.Word), asm.Ja.Label("marked"),
		asm.LoadMem(asm.R1, asm.RFP, opts+9, asm.Byte).WithSymbol("outward"), asm.JEq.Imm(asm.R1, 0, "own mark"),
		asm.LoadMem(asm.R1, asm.RFP, ctMark, asm.Word), asm.LoadMem(asm.R2, asm.R9, configMask, asm.Word),
		asm.And.Reg(asm.R1, asm.R2), asm.JEq.Imm(asm.R1, 0, "own mark"),
		asm.LoadMem(asm.R3, asm.RFP, mark, asm.Word), asm.JNE.Imm(asm.R3, 0, "same ENI"),
		asm.Mov.Reg(asm.R3, asm.R2), // ENI 0 has all bits in a connection's mark
		asm.JNE.Reg(asm.R1, asm.R3, plain).WithSymbol("same ENI"),
		asm.StoreMem(asm.RFP, mark, asm.R1, asm.Word), asm.Ja.Label("marked"),
		asm.LoadMem(asm.R1, asm.R9, configSNAT, asm.Word).WithSymbol("own mark"), asm.JEq.Imm(asm.R1, 0, "marked"),
		asm.StoreImm(asm.RFP, key, 32, asm.Word), asm.LoadMem(asm.R1, asm.R7, ipDst, asm.Word), asm.StoreMem(asm.RFP, key+4, asm.R1, asm.Word),
		asm.LoadMapPtr(asm.R1, m.vpc), asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, key), asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, plain),
		asm.Mov.Imm(asm.R1, 0).WithSymbol("marked"),
	)
}

// clearFib zeroes the question to the routing tables.
func (p *program) clearFib() {
	p.add(asm.Mov.Imm(asm.R1, 0))
	for at := int16(0); at < fibSize; at += 8 {
		p.add(asm.StoreMem(asm.RFP, fib+at, asm.R1, asm.DWord))
	}
	p.add(asm.StoreImm(asm.RFP, fib+fibFamily, unix.AF_INET, asm.Byte))
}

func (p *program) lookUpRoute(flags int32) {
	p.add(asm.Mov.Reg(asm.R1, asm.R6), asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, fib), asm.Mov.Imm(asm.R3, fibSize),
		asm.Mov.Imm(asm.R4, flags), asm.FnFibLookup.Call(), asm.JNE.Imm(asm.R0, 0, plain))
}

// checkSource is the reverse path check, of all links: the source has a route, which
// one that others ban has not (`ip route add blackhole`). What a pod's link sends has the
// address that is routed to that link.
func (p *program) checkSource() {
	p.clearFib()
	p.add(
		asm.LoadMem(asm.R8, asm.R6, skbIfindex, asm.Word), asm.StoreMem(asm.RFP, fib+fibIfindex, asm.R8, asm.Word),
		asm.LoadMem(asm.R1, asm.R7, ipSrc, asm.Word), asm.StoreMem(asm.RFP, fib+fibDst, asm.R1, asm.Word),
		asm.LoadMem(asm.R1, asm.R7, ipDst, asm.Word), asm.StoreMem(asm.RFP, fib+fibSrc, asm.R1, asm.Word),
		asm.LoadMem(asm.R1, asm.R7, ipTOS, asm.Byte), asm.StoreMem(asm.RFP, fib+fibTOS, asm.R1, asm.Byte),
	)
	p.lookUpRoute(fibSkipNeigh)
	p.add(
		asm.LoadMem(asm.R1, asm.RFP, inward, asm.Word), asm.JNE.Imm(asm.R1, 0, "source ok"),
		asm.LoadMem(asm.R1, asm.RFP, fib+fibIfindex, asm.Word), asm.JNE.Reg(asm.R1, asm.R8, plain),
		asm.Mov.Imm(asm.R1, 0).WithSymbol("source ok"),
	)
}

// route asks the kernel where the packet goes: to an ENI, or to a pod of this
// node, whose address is of the pool and whose link is no ENI. A packet that the
// route or the link has no room for comes back as an error. R8 is the link.
func (p *program) route(m descriptors) {
	copyField := func(from, to int16, size asm.Size) {
		p.add(asm.LoadMem(asm.R1, asm.R7, from, size), asm.StoreMem(asm.RFP, fib+to, asm.R1, size))
	}
	p.clearFib()
	copyField(ipProtocol, fibProtocol, asm.Byte)
	copyField(ports, fibSport, asm.Half)
	copyField(ports+2, fibDport, asm.Half)
	copyField(ipTOS, fibTOS, asm.Byte)
	copyField(ipSrc, fibSrc, asm.Word)
	copyField(ipDst, fibDst, asm.Word)
	p.add(
		asm.LoadMem(asm.R1, asm.R6, skbIfindex, asm.Word), asm.StoreMem(asm.RFP, fib+fibIfindex, asm.R1, asm.Word),
		asm.LoadMem(asm.R1, asm.RFP, mark, asm.Word), asm.StoreMem(asm.RFP, fib+fibMark, asm.R1, asm.Word),
		asm.LoadMem(asm.R1, asm.RFP, length, asm.Word), asm.StoreMem(asm.RFP, fib+fibLen, asm.R1, asm.Half),
	)
	p.lookUpRoute(fibSkipNeigh | fibWithMark)
	p.add(
		asm.LoadMem(asm.R1, asm.RFP, fib+fibIfindex, asm.Word), asm.StoreMem(asm.RFP, key, asm.R1, asm.Word),
		asm.LoadMapPtr(asm.R1, m.enis), asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, key), asm.FnMapLookupElem.Call(),
		asm.LoadMem(asm.R1, asm.RFP, inward, asm.Word), asm.Mov.Imm(asm.R8, counterIn),
		asm.JEq.Imm(asm.R0, 0, "to a pod"),
		asm.JNE.Imm(asm.R1, 0, plain), // from one ENI to another
		asm.Mov.Imm(asm.R8, counterOut), asm.Ja.Label("remember"),
		asm.JNE.Imm(asm.R1, 0, "remember").WithSymbol("to a pod"),
		asm.Mov.Imm(asm.R8, counterLocal),
		asm.LoadMem(asm.R1, asm.R7, ipDst, asm.Word), asm.StoreMem(asm.RFP, key, asm.R1, asm.Word),
		asm.LoadMapPtr(asm.R1, m.pool), asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, key), asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, plain),
	)
}
