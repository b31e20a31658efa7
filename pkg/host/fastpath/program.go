package fastpath

import (
	"encoding/binary"

	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"
)

// The program, in the words of the kernel's assembler. It runs where a packet
// comes in by a pod's host link or by an ENI, and asks the kernel, never a copy of
// ours, whether the packet may take the short way: conntrack, whether its
// connection is established and translated by nobody; the routing tables, where
// it goes, by all rules that there are and with the mark that the firewall would
// give it. Whatever it does not understand goes the plain way.

// Places on the program's stack, below the frame pointer.
const (
	tuple  = -16  // struct bpf_sock_tuple, IPv4: 12 bytes
	opts   = -32  // struct bpf_ct_opts: 12 bytes
	status = -40  // of the connection, 8 bytes
	left   = -44  // jiffies until conntrack forgets the connection
	ctMark = -48  // its mark
	state  = -52  // of TCP
	wrong  = -56  // not 0: the connection is translated
	mark   = -60  // that the firewall would give the packet
	inward = -64  // 1: the packet came in by an ENI
	fib    = -128 // struct bpf_fib_lookup: 64 bytes
	neigh  = -152 // struct bpf_redir_neigh: 20 bytes
	key    = -160 // of a map: up to 8 bytes
	flow   = -184 // key of the map flows: 20 bytes
	known  = -208 // value of the map flows: 24 bytes
	length = -212 // of the longest packet that this one becomes on the wire
)

// Offsets in struct __sk_buff and struct bpf_fib_lookup of <linux/bpf.h>, and in
// a packet.
const (
	skbLen, skbType, skbMark, skbProtocol, skbVLAN = 0, 4, 8, 16, 20
	skbIfindex, skbData, skbDataEnd, skbGSOSize    = 40, 76, 80, 176

	fibFamily, fibProtocol, fibSport, fibDport, fibLen, fibIfindex, fibTOS = 0, 1, 2, 4, 6, 8, 12
	fibSrc, fibDst, fibMark                                                = 16, 32, 52
	fibSize                                                                = 64

	ip, ports                                                 = 14, 14 + 20
	ipTOS, ipLen, ipFragment, ipTTL, ipProtocol, ipSum, ipSrc = ip + 1, ip + 2, ip + 6, ip + 8, ip + 9, ip + 10, ip + 12
	ipDst                                                     = ip + 16
	tcpOffset, tcpFlags                                       = ports + 12, ports + 13
)

// What the kernel calls things.
const (
	fibSkipNeigh, fibWithMark = 1 << 2, 1 << 5 // BPF_FIB_LOOKUP_SKIP_NEIGH and _MARK
	currentNetns              = -1
	tcpEstablished            = 3

	ipsSeenReply, ipsAssured, ipsConfirmed = 1 << 1, 1 << 2, 1 << 3
	// Expected, translated, with changed sequence numbers, dying, a template,
	// untracked, with a helper, or already offloaded.
	ipsOthers = 1<<0 | 1<<4 | 1<<5 | 1<<6 | 1<<9 | 1<<11 | 1<<12 | 1<<13 | 1<<14 | 1<<15
)

const plain = "plain" // label: the packet goes the plain way

// The key of the map flows is the source, the destination, both ports, the link
// that the packet came in by and the protocol; the value what the program found
// out about such packets.
const (
	flowAddrs, flowPorts, flowLink, flowProtocol, flowKeySize = 0, 8, 12, 16, 20

	knownUntil   = 0 // jiffies, low half
	knownEpoch   = 4
	knownLink    = 8
	knownNextHop = 12
	knownMTU     = 16
	knownCounter = 20
	knownSize    = 24
)

// instructions returns the program for the kernel and the maps.
func instructions(ct conntrack, m descriptors) asm.Instructions {
	var p program
	p.checkPacket(m)
	p.findFlow(m)
	p.checkOn()
	p.findSide(m)
	p.lookUpConnection(ct)
	p.checkConnection()
	p.chooseMark(m)
	p.checkSource()
	p.route(m)
	p.remember(m)
	p.jump(m)
	p.add(asm.Mov.Imm(asm.R0, tcxNext).WithSymbol(plain), asm.Return())
	return p.list
}

const tcxNext = -1

type program struct{ list asm.Instructions }

func (p *program) add(list ...asm.Instruction) { p.list = append(p.list, list...) }

func be16(v uint16) int32 { return int32(binary.NativeEndian.Uint16([]byte{byte(v >> 8), byte(v)})) }

// checkPacket lets whole, plain TCP and UDP over IPv4 pass that was sent to this
// host's link: no options, no fragments, time to live, and of TCP nothing that
// changes the state of a connection. It builds the key of the packet's flow. R6 is
// the context, R7 the packet, R9 the configuration.
func (p *program) checkPacket(m descriptors) {
	load := func(offset int16, size asm.Size) asm.Instruction { return asm.LoadMem(asm.R1, asm.R7, offset, size) }
	store := func(offset int16) asm.Instruction { return asm.StoreMem(asm.RFP, offset, asm.R1, asm.Word) }
	p.add(
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadMem(asm.R1, asm.R6, skbType, asm.Word), asm.JNE.Imm(asm.R1, unix.PACKET_HOST, plain),
		asm.LoadMem(asm.R1, asm.R6, skbProtocol, asm.Word), asm.JNE.Imm(asm.R1, be16(unix.ETH_P_IP), plain),
		// A mark of somebody else's may lead it anywhere.
		asm.LoadMem(asm.R1, asm.R6, skbMark, asm.Word), asm.JNE.Imm(asm.R1, 0, plain),
		asm.LoadMem(asm.R1, asm.R6, skbVLAN, asm.Word), asm.JNE.Imm(asm.R1, 0, plain),
		asm.LoadMem(asm.R7, asm.R6, skbData, asm.Word), asm.LoadMem(asm.R2, asm.R6, skbDataEnd, asm.Word),
		asm.Mov.Reg(asm.R1, asm.R7), asm.Add.Imm(asm.R1, ports+8), asm.JGT.Reg(asm.R1, asm.R2, plain),
		load(ip, asm.Byte), asm.JNE.Imm(asm.R1, 0x45, plain),
		load(ipFragment, asm.Half), asm.And.Imm(asm.R1, be16(0x3fff)), asm.JNE.Imm(asm.R1, 0, plain),
		load(ipTTL, asm.Byte), asm.JLE.Imm(asm.R1, 1, plain),
		// Not longer than it says it is; 0 is a length that has no room in the header.
		load(ipLen, asm.Half), asm.HostTo(asm.BE, asm.R1, asm.Half), asm.JLT.Imm(asm.R1, 28, plain), store(length),
		asm.LoadMem(asm.R3, asm.R6, skbLen, asm.Word), asm.Add.Imm(asm.R1, ip), asm.JGT.Reg(asm.R1, asm.R3, plain),
		load(ipSrc, asm.Word), store(flow+flowAddrs), load(ipDst, asm.Word), store(flow+flowAddrs+4),
		load(ports, asm.Word), store(flow+flowPorts),
		asm.LoadMem(asm.R1, asm.R6, skbIfindex, asm.Word), store(flow+flowLink),
		asm.Mov.Imm(asm.R3, 8),
		load(ipProtocol, asm.Byte), store(flow+flowProtocol),
		asm.JEq.Imm(asm.R1, unix.IPPROTO_UDP, "length"), asm.JNE.Imm(asm.R1, unix.IPPROTO_TCP, plain),
		asm.Mov.Reg(asm.R1, asm.R7), asm.Add.Imm(asm.R1, ports+20), asm.JGT.Reg(asm.R1, asm.R2, plain),
		asm.LoadMem(asm.R3, asm.R7, tcpOffset, asm.Byte), asm.RSh.Imm(asm.R3, 2), asm.And.Imm(asm.R3, 0x3c),
		load(tcpFlags, asm.Byte), asm.And.Imm(asm.R1, finSynRstAck), asm.JEq.Imm(asm.R1, ack, "length"),
		// The end of a connection: what comes behind this packet is looked at anew.
		asm.LoadMapPtr(asm.R1, m.flows), asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, flow), asm.FnMapDeleteElem.Call(),
		asm.Ja.Label(plain),
		// Many packets in one are sent as segments; R3 is the length of TCP's header.
		asm.LoadMem(asm.R1, asm.R6, skbGSOSize, asm.Word).WithSymbol("length"), asm.JEq.Imm(asm.R1, 0, "packet ok"),
		asm.Add.Reg(asm.R1, asm.R3), asm.Add.Imm(asm.R1, 20), asm.JGT.Imm(asm.R1, 0xffff, plain), store(length),
		asm.LoadMapValue(asm.R9, m.config, 0).WithSymbol("packet ok"),
	)
}

// Flags of TCP.
const finSynRstAck, ack = 0x17, 0x10

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

// checkOn lets pass while the agent vouches for it: what it said holds for a
// while, and nobody keeps the promises when it is gone.
func (p *program) checkOn() {
	p.add(
		asm.FnKtimeGetCoarseNs.Call(),
		asm.LoadMem(asm.R1, asm.R9, configUntil, asm.DWord), asm.JGE.Reg(asm.R0, asm.R1, plain),
	)
}

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

// lookUpConnection copies what conntrack knows of the packet's connection onto
// the stack. A connection that is translated in any way does not reply with the
// mirror image of what it asked.
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
		load(asm.R1, wrong, asm.Word), asm.JNE.Imm(asm.R1, 0, plain),
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
// that conntrack saw it just now, by either of the two times it gives.
func (p *program) checkAge(at int16, label string) {
	for i := range int16(2) {
		p.add(
			asm.Mov.Reg(asm.R1, asm.R8), asm.LoadMem(asm.R2, asm.R9, at+8*i, asm.Word), asm.Sub.Reg32(asm.R1, asm.R2),
			asm.LoadMem(asm.R2, asm.R9, at+8*i+4, asm.Word), asm.JLE.Reg(asm.R1, asm.R2, label),
		)
	}
	p.add(asm.Ja.Label(plain))
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

// checkSource is the strict reverse path check: what a pod's link sends has the
// address that is routed to that link.
func (p *program) checkSource() {
	p.add(asm.LoadMem(asm.R1, asm.RFP, inward, asm.Word), asm.JNE.Imm(asm.R1, 0, "source ok"))
	p.clearFib()
	p.add(
		asm.LoadMem(asm.R8, asm.R6, skbIfindex, asm.Word), asm.StoreMem(asm.RFP, fib+fibIfindex, asm.R8, asm.Word),
		asm.LoadMem(asm.R1, asm.R7, ipSrc, asm.Word), asm.StoreMem(asm.RFP, fib+fibDst, asm.R1, asm.Word),
		asm.LoadMem(asm.R1, asm.R7, ipDst, asm.Word), asm.StoreMem(asm.RFP, fib+fibSrc, asm.R1, asm.Word),
	)
	p.lookUpRoute(fibSkipNeigh)
	p.add(
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

// remember keeps what was found out for the packets that follow. R8 is the
// counter; afterwards it is what is known of the flow.
func (p *program) remember(m descriptors) {
	set := func(at int16) { p.add(asm.StoreMem(asm.RFP, known+at, asm.R1, asm.Word)) }
	p.add(asm.StoreMem(asm.RFP, known+knownCounter, asm.R8, asm.Word).WithSymbol("remember"))
	for _, pair := range [][2]int16{{knownLink, fibIfindex}, {knownNextHop, fibDst}} {
		p.add(asm.LoadMem(asm.R1, asm.RFP, fib+pair[1], asm.Word))
		set(pair[0])
	}
	p.add(asm.LoadMem(asm.R1, asm.RFP, fib+fibLen, asm.Half))
	set(knownMTU)
	p.add(asm.LoadMem(asm.R1, asm.R9, configEpoch, asm.Word))
	set(knownEpoch)
	p.add(asm.FnJiffies64.Call(), asm.LoadMem(asm.R1, asm.R9, configKnownFor, asm.Word), asm.Add.Reg32(asm.R1, asm.R0))
	set(knownUntil)
	p.add(
		asm.LoadMapPtr(asm.R1, m.flows), asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, flow),
		asm.Mov.Reg(asm.R3, asm.RFP), asm.Add.Imm(asm.R3, known), asm.Mov.Imm(asm.R4, 0), asm.FnMapUpdateElem.Call(),
		asm.Mov.Reg(asm.R8, asm.RFP), asm.Add.Imm(asm.R8, known),
	)
}

// jump counts the packet, takes one from its time to live as a router does, and
// sends it to the next hop that is known (R8), through whatever queues and
// programs hang at the link.
func (p *program) jump(m descriptors) {
	p.add(
		asm.LoadMem(asm.R1, asm.R8, knownCounter, asm.Word).WithSymbol("jump"), asm.StoreMem(asm.RFP, key, asm.R1, asm.Word),
		asm.LoadMapPtr(asm.R1, m.counters), asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, key),
		asm.FnMapLookupElem.Call(), asm.JEq.Imm(asm.R0, 0, plain),
		asm.LoadMem(asm.R1, asm.R0, 0, asm.DWord), asm.Add.Imm(asm.R1, 1), asm.StoreMem(asm.R0, 0, asm.R1, asm.DWord),
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
