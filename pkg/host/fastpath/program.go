package fastpath

import "github.com/cilium/ebpf/asm"

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
	skbPriority, skbIfindex                        = 32, 40
	skbData, skbDataEnd, skbGSOSize                = 76, 80, 176

	fibFamily, fibProtocol, fibSport, fibDport, fibLen, fibIfindex, fibTOS = 0, 1, 2, 4, 6, 8, 12
	fibSrc, fibDst, fibMark                                                = 16, 32, 52
	fibSize                                                                = 64

	ip, ports                                                 = 14, 14 + 20
	ipTOS, ipLen, ipFragment, ipTTL, ipProtocol, ipSum, ipSrc = ip + 1, ip + 2, ip + 6, ip + 8, ip + 9, ip + 10, ip + 12
	ipDst                                                     = ip + 16
	tcpOffset, tcpFlags                                       = ports + 12, ports + 13
)

const plain = "plain" // label: the packet goes the plain way

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
	p.rememberTranslated(m)
	p.add(asm.Mov.Imm(asm.R0, tcxNext).WithSymbol(plain), asm.Return())
	return p.list
}

const tcxNext = -1

type program struct{ list asm.Instructions }

func (p *program) add(list ...asm.Instruction) { p.list = append(p.list, list...) }

// checkOn lets pass while the agent vouches for it: what it said holds for a
// while, and nobody keeps the promises when it is gone.
func (p *program) checkOn() {
	p.add(
		asm.FnKtimeGetCoarseNs.Call(),
		asm.LoadMem(asm.R1, asm.R9, configUntil, asm.DWord), asm.JGE.Reg(asm.R0, asm.R1, plain),
	)
}
