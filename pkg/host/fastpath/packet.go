package fastpath

import (
	"encoding/binary"

	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

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
		// At least as long as its headers, and all of it is there. A length of 0 stands for one that
		// has no room in the header, of a jumbo packet: that goes the plain way.
		load(ipLen, asm.Half), asm.HostTo(asm.BE, asm.R1, asm.Half), asm.JLT.Imm(asm.R1, 28, plain), store(length),
		asm.LoadMem(asm.R3, asm.R6, skbLen, asm.Word), asm.Add.Imm(asm.R1, ip), asm.JGT.Reg(asm.R1, asm.R3, plain),
		load(ipSrc, asm.Word), store(flow+flowAddrs), load(ipDst, asm.Word), store(flow+flowAddrs+4),
		load(ports, asm.Word), store(flow+flowPorts),
		asm.LoadMem(asm.R1, asm.R6, skbIfindex, asm.Word), store(flow+flowLink),
		asm.Mov.Imm(asm.R3, 8),
		// Routes may depend on the kind of service, without its last two bits.
		asm.LoadMem(asm.R4, asm.R7, ipTOS, asm.Byte), asm.And.Imm(asm.R4, 0xfc), asm.LSh.Imm(asm.R4, 8),
		load(ipProtocol, asm.Byte), asm.Or.Reg(asm.R4, asm.R1), asm.StoreMem(asm.RFP, flow+flowKind, asm.R4, asm.Word),
		asm.JEq.Imm(asm.R1, unix.IPPROTO_UDP, "length"), asm.JNE.Imm(asm.R1, unix.IPPROTO_TCP, plain),
		asm.Mov.Reg(asm.R1, asm.R7), asm.Add.Imm(asm.R1, ports+20), asm.JGT.Reg(asm.R1, asm.R2, plain),
		asm.LoadMem(asm.R3, asm.R7, tcpOffset, asm.Byte), asm.RSh.Imm(asm.R3, 2), asm.And.Imm(asm.R3, 0x3c),
		load(tcpFlags, asm.Byte), asm.And.Imm(asm.R1, finSynRstAck), asm.JEq.Imm(asm.R1, ack, "length"),
		// A connection begins or ends with it, so what is known of its flow holds no more.
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

func be16(v uint16) int32 { return int32(binary.NativeEndian.Uint16([]byte{byte(v >> 8), byte(v)})) }
