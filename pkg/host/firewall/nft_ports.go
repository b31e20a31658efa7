package firewall

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// concatenated is a key or value of several parts, which knows its own bytes.
type concatenated interface{ Bytes() []byte }

// concatenationType returns the type of keys or values of several parts, by the words of nft. The
// kernel makes nothing of types: they are for nft, which lists elements by them.
func concatenationType(name string) nftables.SetDatatype {
	var parts []nftables.SetDatatype
	for part := range strings.SplitSeq(name, " . ") {
		parts = append(parts, map[string]nftables.SetDatatype{"ipv4_addr": nftables.TypeIPAddr, "ipv6_addr": nftables.TypeIP6Addr,
			"inet_proto": nftables.TypeInetProto, "inet_service": nftables.TypeInetService}[part])
	}
	return nftables.MustConcatSetType(parts...)
}

// concatenationText returns a key of several parts for people. The kernel pads each part to
// four bytes. Somebody may have made a map of the same name with other keys.
func concatenationText(name string, key []byte) string {
	var words []string
	for part := range strings.SplitSeq(name, " . ") {
		length := 4
		if part == "ipv6_addr" {
			length = 16
		}
		if len(key) < length {
			return fmt.Sprintf("%x", key)
		}
		switch part {
		case "inet_proto":
			words = append(words, netconf.Transport(key[0]).String())
		case "inet_service":
			words = append(words, fmt.Sprint(binary.BigEndian.Uint16(key)))
		default:
			a, _ := netip.AddrFromSlice(key[:length])
			words = append(words, a.String())
		}
		key = key[length:]
	}
	return strings.Join(words, " . ")
}

// registerPart returns the register that holds the nth four bytes of a concatenation. The
// kernel has two sets of numbers for the same space: reg is the first of those for sixteen
// bytes each, and parts that follow each other without a gap need those for four.
func registerPart(nth uint32) uint32 { return unix.NFT_REG32_00 + nth }

// portStatement translates the statements that host ports need.
func portStatement(s fmt.Stringer) []expr.Any {
	switch s := s.(type) {
	case netconf.NftLocal:
		return []expr.Any{&expr.Fib{Register: reg, ResultADDRTYPE: true, FlagDADDR: true},
			equalExpr(binaryutil.NativeEndian.PutUint32(unix.RTN_LOCAL))}
	case netconf.NftPrefix:
		return matchPrefix(s)
	case netconf.NftHostPort:
		return leadToPod(s)
	case netconf.NftIsHairpin:
		// The key is source and destination side by side: the set holds each pod's address twice.
		from, to, words := addressFields(s.Family)
		from.DestRegister, to.DestRegister = registerPart(0), registerPart(words)
		return []expr.Any{from, to, &expr.Lookup{SourceRegister: registerPart(0), SetName: s.Set}}
	}
	return nil
}

// addressFields returns what loads source and destination, and how many words of four bytes
// each of them fills.
func addressFields(f eni.Family) (from, to *expr.Payload, words uint32) {
	field := func(offset, length uint32) *expr.Payload {
		return &expr.Payload{DestRegister: reg, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: length}
	}
	if f == eni.IPv6 {
		return field(8, 16), field(24, 16), 4
	}
	return field(12, 4), field(16, 4), 1
}

func matchPrefix(p netconf.NftPrefix) []expr.Any {
	from, to, _ := addressFields(eni.FamilyOf(p.Net.Addr()))
	field := from
	if p.To {
		field = to
	}
	// Only the first bytes are loaded and compared, without a mask, as nft does it. All that is asked
	// for is 127.0.0.0/8: a netmask that ends inside of a byte would need another form.
	field.Len = uint32(p.Net.Bits() / 8)
	return []expr.Any{field, equalExpr(p.Net.Addr().AsSlice()[:field.Len])}
}

// leadToPod looks the port up and gives the connection the destination found. The key fills
// registers from the first one on, and so does what the map has for it, the pod's address and
// port: the key is not needed any more. Where the map has nothing the kernel ends the rule, and
// goes on with the next one.
func leadToPod(d netconf.NftHostPort) []expr.Any {
	var list []expr.Any
	_, to, words := addressFields(d.Family)
	next := uint32(0)
	if d.Addr { // a port of one address of the node: that is the first part of the key
		to.DestRegister = registerPart(0)
		list, next = append(list, to), words
	}
	return append(list,
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: registerPart(next)},
		&expr.Payload{DestRegister: registerPart(next + 1), Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
		&expr.Lookup{SourceRegister: registerPart(0), DestRegister: registerPart(0), IsDestRegSet: true, SetName: d.Map},
		&expr.NAT{Type: expr.NATTypeDestNAT, Family: uint32(protocolNumber(d.Family)), RegAddrMin: registerPart(0), RegProtoMin: registerPart(words)})
}
