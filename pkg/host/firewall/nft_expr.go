package firewall

import (
	"fmt"
	"strings"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// reg is the one register that all our expressions need.
const reg = 1

// ruleExprs translates a rule. What reads a header of one family first makes
// sure that the packet is of it, once per rule.
func ruleExprs(r netconf.NftRule) ([]expr.Any, error) {
	var list []expr.Any
	var known eni.Family
	for _, s := range r.Statements {
		if family := headerOf(s); family != 0 && family != known {
			list = append(list, isFamily(family)...)
			known = family
		}
		e := statementExprs(s)
		if e == nil {
			return nil, fmt.Errorf("translate nftables rule %q: unknown statement %q", r, s)
		}
		list = append(list, e...)
	}
	return list, nil
}

func headerOf(s fmt.Stringer) eni.Family {
	switch l := s.(type) {
	case netconf.NftHostPort:
		return l.Family
	case netconf.NftIsHairpin:
		return l.Family
	case netconf.NftPrefix:
		return eni.FamilyOf(l.Net.Addr())
	case netconf.NftLookup:
		switch l.Field {
		case netconf.NftSource4, netconf.NftDestination4:
			return eni.IPv4
		case netconf.NftSource6, netconf.NftDestination6:
			return eni.IPv6
		}
	}
	return 0
}

func isFamily(f eni.Family) []expr.Any {
	return []expr.Any{&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: reg}, equalExpr([]byte{protocolNumber(f)})}
}

func protocolNumber(f eni.Family) byte {
	if f == eni.IPv6 {
		return unix.NFPROTO_IPV6
	}
	return unix.NFPROTO_IPV4
}

func equalExpr(data []byte) expr.Any { return &expr.Cmp{Op: expr.CmpOpEq, Register: reg, Data: data} }

func statementExprs(s fmt.Stringer) []expr.Any {
	switch s := s.(type) {
	case netconf.NftDevice:
		return deviceExpr(s)
	case netconf.NftFamily:
		return isFamily(eni.Family(s))
	case netconf.NftConn:
		return connExpr(s)
	case netconf.NftUnmarked:
		return []expr.Any{&expr.Ct{Key: expr.CtKeyMARK, Register: reg}, maskExpr(s.Mask, 0), equalExpr(make([]byte, 4))}
	case netconf.NftLookup:
		return lookupExprs(s)
	case netconf.NftSpoofed:
		return []expr.Any{&expr.Fib{Register: reg, ResultOIF: true, FlagSADDR: true, FlagIIF: true, FlagPRESENT: true}, equalExpr(make([]byte, 4))}
	case netconf.NftSetMark:
		return setMark(s)
	case netconf.NftSNAT:
		return []expr.Any{&expr.Immediate{Register: reg, Data: s.To.AsSlice()},
			&expr.NAT{Type: expr.NATTypeSourceNAT, Family: uint32(protocolNumber(eni.FamilyOf(s.To))), RegAddrMin: reg, FullyRandom: true}}
	case netconf.NftVerdict:
		return []expr.Any{nftVerdict(s)}
	}
	return portStatement(s)
}

func deviceExpr(d netconf.NftDevice) []expr.Any {
	meta := &expr.Meta{Key: expr.MetaKeyIIFNAME, Register: reg}
	if d.Out {
		meta.Key = expr.MetaKeyOIFNAME
	}
	if start, wild := strings.CutSuffix(d.Name, "*"); wild {
		return []expr.Any{meta, equalExpr([]byte(start))}
	}
	return []expr.Any{meta, equalExpr(padLinkName(d.Name))}
}

func connExpr(c netconf.NftConn) []expr.Any {
	switch c {
	case netconf.NftNew:
		return connState(expr.CtStateBitNEW)
	case netconf.NftEstablished:
		return connState(expr.CtStateBitESTABLISHED)
	case netconf.NftOriginal:
		return connDirection(0)
	case netconf.NftReply:
		return connDirection(1)
	}
	return nil
}

func connDirection(d byte) []expr.Any {
	return []expr.Any{&expr.Ct{Key: expr.CtKeyDIRECTION, Register: reg}, equalExpr([]byte{d})}
}

func connState(bit uint32) []expr.Any {
	return []expr.Any{&expr.Ct{Key: expr.CtKeySTATE, Register: reg}, maskExpr(bit, 0),
		&expr.Cmp{Op: expr.CmpOpNeq, Register: reg, Data: make([]byte, 4)}}
}

// maskExpr keeps the bits of keep and then flips those of flip.
func maskExpr(keep, flip uint32) expr.Any {
	return &expr.Bitwise{SourceRegister: reg, DestRegister: reg, Len: 4,
		Mask: binaryutil.NativeEndian.PutUint32(keep), Xor: binaryutil.NativeEndian.PutUint32(flip)}
}

func lookupExprs(l netconf.NftLookup) []expr.Any {
	find := &expr.Lookup{SourceRegister: reg, SetName: l.Set, Invert: l.Not, IsDestRegSet: l.Map, DestRegister: unix.NFT_REG_VERDICT}
	header := func(offset, length uint32) []expr.Any {
		return []expr.Any{&expr.Payload{DestRegister: reg, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: length}, find}
	}
	switch l.Field {
	case netconf.NftSource4:
		return header(12, 4)
	case netconf.NftDestination4:
		return header(16, 4)
	case netconf.NftSource6:
		return header(8, 16)
	case netconf.NftDestination6:
		return header(24, 16)
	case netconf.NftArrival:
		return []expr.Any{&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: reg}, find}
	case netconf.NftConnMark:
		return []expr.Any{&expr.Ct{Key: expr.CtKeyMARK, Register: reg}, maskExpr(l.Mask, 0), find}
	case netconf.NftPacketMark:
		return []expr.Any{&expr.Meta{Key: expr.MetaKeyMARK, Register: reg}, maskExpr(l.Mask, 0), find}
	}
	return nil
}

func setMark(m netconf.NftSetMark) []expr.Any {
	load, store := expr.Any(&expr.Meta{Key: expr.MetaKeyMARK, Register: reg}), expr.Any(&expr.Meta{Key: expr.MetaKeyMARK, Register: reg, SourceRegister: true})
	if m.Conn {
		load, store = &expr.Ct{Key: expr.CtKeyMARK, Register: reg}, &expr.Ct{Key: expr.CtKeyMARK, Register: reg, SourceRegister: true}
	}
	return []expr.Any{load, maskExpr(^m.Mask, m.Mark), store}
}
