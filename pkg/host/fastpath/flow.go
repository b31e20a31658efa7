package fastpath

import "github.com/cilium/ebpf/asm"

// The key of the map flows is the source, the destination, both ports, the link
// that the packet came in by, and the protocol with the kind of service (DSCP) in the
// byte above; the value what the program found out about such packets.
const (
	flowAddrs, flowPorts, flowLink, flowKind, flowKeySize = 0, 8, 12, 16, 20

	knownUntil   = 0 // jiffies, low half
	knownEpoch   = 4
	knownLink    = 8
	knownNextHop = 12
	knownMTU     = 16
	knownCounter = 20
	knownSize    = 24
)

// findFlow goes to the jump with a packet of a flow of which all that follows was
// found out a moment ago, and under nothing else than holds now.
func (p *program) findFlow(m descriptors) {
	p.add(
		asm.LoadMapPtr(asm.R1, m.flows), asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, flow), asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "unknown"), asm.Mov.Reg(asm.R8, asm.R0),
		asm.LoadMem(asm.R1, asm.R8, knownEpoch, asm.Word), asm.LoadMem(asm.R2, asm.R9, configEpoch, asm.Word),
		asm.JNE.Reg(asm.R1, asm.R2, "unknown"),
		asm.FnJiffies64.Call(), asm.LoadMem(asm.R1, asm.R8, knownUntil, asm.Word), asm.Sub.Reg32(asm.R1, asm.R0), asm.Sub.Imm32(asm.R1, 1),
		asm.LoadMem(asm.R2, asm.R9, configKnownFor, asm.Word), asm.JGE.Reg(asm.R1, asm.R2, "unknown"),
		asm.LoadMem(asm.R1, asm.RFP, length, asm.Word), asm.LoadMem(asm.R2, asm.R8, knownMTU, asm.Word), asm.JLE.Reg(asm.R1, asm.R2, "jump"),
		asm.Ja.Label(plain), // too long: the kernel says so to whoever sent it
		asm.LoadMem(asm.R1, asm.R9, configEpoch, asm.Word).WithSymbol("unknown"), asm.JEq.Imm(asm.R1, 0, plain),
	)
}

// remember keeps what was found out for the packets that follow. R8 is the
// counter; afterwards it is what is known of the flow.
func (p *program) remember(m descriptors) {
	p.add(asm.StoreMem(asm.RFP, known+knownCounter, asm.R8, asm.Word).WithSymbol("remember"))
	for _, pair := range [][2]int16{{knownLink, fibIfindex}, {knownNextHop, fibDst}} {
		p.add(asm.LoadMem(asm.R1, asm.RFP, fib+pair[1], asm.Word), asm.StoreMem(asm.RFP, known+pair[0], asm.R1, asm.Word))
	}
	p.add(asm.LoadMem(asm.R1, asm.RFP, fib+fibLen, asm.Half), asm.StoreMem(asm.RFP, known+knownMTU, asm.R1, asm.Word))
	p.keep(m)
	p.add(asm.Mov.Reg(asm.R8, asm.RFP), asm.Add.Imm(asm.R8, known))
}

// rememberTranslated notes the flow of a translated connection, with an MTU of 0. So findFlow takes
// each of its packets for too long and sends it the plain way, and conntrack is not asked for
// each of them.
func (p *program) rememberTranslated(m descriptors) {
	p.add(asm.Mov.Imm(asm.R1, 0).WithSymbol("translated"))
	for _, at := range []int16{knownCounter, knownLink, knownNextHop, knownMTU} {
		p.add(asm.StoreMem(asm.RFP, known+at, asm.R1, asm.Word))
	}
	p.keep(m)
}

// keep puts into the map flows what is known of the flow.
func (p *program) keep(m descriptors) {
	p.add(
		asm.LoadMem(asm.R1, asm.R9, configEpoch, asm.Word), asm.StoreMem(asm.RFP, known+knownEpoch, asm.R1, asm.Word),
		asm.FnJiffies64.Call(), asm.LoadMem(asm.R1, asm.R9, configKnownFor, asm.Word), asm.Add.Reg32(asm.R1, asm.R0),
		asm.StoreMem(asm.RFP, known+knownUntil, asm.R1, asm.Word),
		asm.LoadMapPtr(asm.R1, m.flows), asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, flow),
		asm.Mov.Reg(asm.R3, asm.RFP), asm.Add.Imm(asm.R3, known), asm.Mov.Imm(asm.R4, 0), asm.FnMapUpdateElem.Call(),
	)
}
