package firewall

import (
	"encoding/binary"
	"iter"

	"github.com/enipool/enipool/pkg/nlmsg"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// nftAttributes are those of a message about nftables, behind struct nfgenmsg.
func nftAttributes(body []byte) iter.Seq2[uint16, []byte] {
	return nlmsg.Attributes(body[min(4, len(body)):])
}

// eachExpression goes through the expressions of a rule.
func eachExpression(list []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, data []byte) bool) {
		for _, element := range nlmsg.Attributes(list) {
			var name, data []byte
			for kind, value := range nlmsg.Attributes(element) {
				switch kind {
				case unix.NFTA_EXPR_NAME:
					name = value[:max(len(value)-1, 0)]
				case unix.NFTA_EXPR_DATA:
					data = value
				}
			}
			if !yield(name, data) {
				return
			}
		}
	}
}

// requiredPort returns the port that a packet must be for to match the rule, 0 if it may be
// for others too. In most rules of a large node that is all that is looked at.
func requiredPort(list []byte) uint16 {
	isPort := false // what was loaded last
	for name, data := range eachExpression(list) {
		switch string(name) {
		case "payload":
			isPort = loadsPort(data)
			continue
		case "cmp":
			if port := comparedPort(data); isPort && port != 0 {
				return port
			}
		case "match":
			if port := matchedPort(data); port != 0 {
				return port
			}
		}
		isPort = false
	}
	return 0
}

// networkUint32 reads a number of four bytes, which nftables has in the order of the network.
func networkUint32(b []byte) uint32 {
	if len(b) != 4 {
		return 0
	}
	return binary.BigEndian.Uint32(b)
}

func loadsPort(payload []byte) bool {
	var base, offset, length uint32
	for kind, value := range nlmsg.Attributes(payload) {
		switch kind {
		case unix.NFTA_PAYLOAD_BASE:
			base = networkUint32(value)
		case unix.NFTA_PAYLOAD_OFFSET:
			offset = networkUint32(value)
		case unix.NFTA_PAYLOAD_LEN:
			length = networkUint32(value)
		}
	}
	return base == unix.NFT_PAYLOAD_TRANSPORT_HEADER && offset == 2 && length == 2
}

func comparedPort(cmp []byte) (port uint16) {
	for kind, value := range nlmsg.Attributes(cmp) {
		switch kind {
		case unix.NFTA_CMP_OP:
			if networkUint32(value) != unix.NFT_CMP_EQ {
				return 0
			}
		case unix.NFTA_CMP_DATA:
			for _, data := range nlmsg.Attributes(value) {
				if len(data) == 2 {
					port = binary.BigEndian.Uint16(data)
				}
			}
		}
	}
	return port
}

// matchedPort reads the matches tcp and udp of older iptables: the last port of each range
// and the flags that turn a match around stand at fixed places.
func matchedPort(match []byte) uint16 {
	var name string
	var info []byte
	for kind, value := range nlmsg.Attributes(match) {
		switch kind {
		case unix.NFTA_MATCH_NAME:
			name = string(value[:max(len(value)-1, 0)])
		case unix.NFTA_MATCH_INFO:
			info = value
		}
	}
	// invflags of struct xt_tcp and xt_udp; both begin with the ranges of ports.
	flags := map[string]int{"tcp": 11, "udp": 8}[name]
	if flags == 0 || len(info) <= flags || info[flags] != 0 {
		return 0
	}
	first, last := binary.NativeEndian.Uint16(info[4:]), binary.NativeEndian.Uint16(info[6:])
	if first != last {
		return 0
	}
	return first
}

// decodeExpressions returns the expressions of a rule, nil for each that is not known.
func decodeExpressions(family byte, list []byte) (exprs []expr.Any) {
	for name, data := range eachExpression(list) {
		e := newExpression(string(name))
		if e != nil && expr.Unmarshal(family, data, e) != nil {
			e = nil
		}
		if i, ok := e.(*expr.Immediate); ok && i.Register == unix.NFT_REG_VERDICT && len(i.Data) == 0 {
			if e = (&expr.Verdict{}); expr.Unmarshal(family, data, e) != nil {
				e = nil
			}
		}
		exprs = append(exprs, e)
	}
	return exprs
}

// newExpression knows what decides where a packet to a port goes.
func newExpression(name string) expr.Any {
	switch name {
	case "bitwise":
		return &expr.Bitwise{}
	case "cmp":
		return &expr.Cmp{}
	case "counter":
		return &expr.Counter{}
	case "ct":
		return &expr.Ct{}
	case "dynset":
		return &expr.Dynset{}
	case "fib":
		return &expr.Fib{}
	case "immediate":
		return &expr.Immediate{}
	case "log":
		return &expr.Log{}
	case "lookup":
		return &expr.Lookup{}
	case "match":
		return &expr.Match{}
	case "meta":
		return &expr.Meta{}
	case "nat":
		return &expr.NAT{}
	case "numgen":
		return &expr.Numgen{}
	case "payload":
		return &expr.Payload{}
	case "redir":
		return &expr.Redir{}
	case "target":
		return &expr.Target{}
	}
	return nil // a rule with it may match, see natPacket.takeExpr
}
