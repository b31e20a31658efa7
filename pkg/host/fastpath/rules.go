package fastpath

import (
	"errors"
	"slices"

	"github.com/enipool/enipool/pkg/netconf"
	"golang.org/x/sys/unix"
)

// Rules are read here and not by the library that the firewall is written with:
// it leaves out expressions that it does not know, and a rule whose condition is
// left out looks as if it applied to everything.

func unknownProtocol(err error) bool {
	return errors.Is(err, unix.EPROTONOSUPPORT) || errors.Is(err, unix.EOPNOTSUPP)
}

// ruleReader follows the expressions of a rule.
type ruleReader struct {
	rule  netconf.OthersRule
	state knownRegister
}

// knownRegister is a register that holds what is known of the packet: that its
// connection is established.
type knownRegister struct {
	known           bool
	register, value uint32
}

func parseRule(message []byte) (netconf.OthersRule, error) {
	var r ruleReader
	parts, err := fields(message)
	if err != nil {
		return r.rule, err
	}
	err = each(parts[unix.NFTA_RULE_EXPRESSIONS], func(_ uint16, expression []byte) error { return r.readExpression(expression) })
	return r.rule, err
}

// loading are the expressions that load something of the packet or of its connection
// and do nothing else, with the attribute that names the register. One may end the
// rule, where there is nothing to load.
var loading = map[string]uint16{
	"meta": unix.NFTA_META_DREG, "payload": unix.NFTA_PAYLOAD_DREG, "ct": unix.NFTA_CT_DREG, "rt": unix.NFTA_RT_DREG, "fib": unix.NFTA_FIB_DREG,
	"exthdr": unix.NFTA_EXTHDR_DREG, "hash": unix.NFTA_HASH_DREG, "byteorder": unix.NFTA_BYTEORDER_DREG,
	"socket": 2, "osf": 1, "xfrm": 1, "tunnel": 2, // NFTA_*_DREG of <linux/netfilter/nf_tables.h>
}

// traffic are the keys of "ct" that tell what accounting saw of the connection. It
// does not see what jumps.
var traffic = []uint32{unix.NFT_CT_PKTS, unix.NFT_CT_BYTES, unix.NFT_CT_AVGPKT}

// objectCounter is NFT_OBJECT_COUNTER.
const objectCounter = 1

func (r *ruleReader) readExpression(data []byte) error {
	parts, err := fields(data)
	if err != nil {
		return err
	}
	name := trimZeros(parts[unix.NFTA_EXPR_NAME])
	f, err := fields(parts[unix.NFTA_EXPR_DATA])
	if err != nil {
		return err
	}
	// What stands behind a condition that is never true does not happen, and what
	// stands before it does.
	if r.rule.Match == netconf.MatchesNone || r.rule.Does == netconf.Acts {
		return nil
	}
	to := loading[name] // 0 for others
	switch {
	case name == "counter" || name == "objref" && decodeNumber(f[unix.NFTA_OBJREF_IMM_TYPE]) == objectCounter:
	case name == "bitwise":
		return r.readBitwise(f)
	case name == "cmp":
		return r.readCompare(f)
	case name == "match":
		r.match(f)
	case name == "immediate":
		return r.readVerdict(f)
	case name == "range", name == "lookup" && f[unix.NFTA_LOOKUP_DREG] == nil:
		r.matchSome()
	case name == "ct" && slices.Contains(traffic, decodeNumber(f[unix.NFTA_CT_KEY])):
		r.rule.Does = netconf.Acts
	case to != 0 && f[to] != nil:
		r.state.known = false // a long value fills several registers
		if name == "ct" && decodeNumber(f[unix.NFTA_CT_KEY]) == unix.NFT_CT_STATE {
			r.state = knownRegister{known: true, register: decodeNumber(f[unix.NFTA_CT_DREG]), value: stateEstablished}
			break
		}
		r.matchSome()
	default:
		// It decides, sets, counts or remembers something, or is not known: limit, quota,
		// last, numgen and connlimit depend on what came before, and a map says anything.
		r.rule.Does = netconf.Acts
	}
	return nil
}

// stateEstablished is what nftables loads as `ct state` of such a packet.
const stateEstablished = 2

// matchSome notes that the rule applies to packets that are not told from others here.
func (r *ruleReader) matchSome() {
	if r.rule.Match == netconf.MatchesAll {
		r.rule.Match = netconf.MatchesSome
	}
}

func (r *ruleReader) readBitwise(f attributes) error {
	was := r.state
	mask, errMask := decodeWord(f[unix.NFTA_BITWISE_MASK])
	xor, errXor := decodeWord(f[unix.NFTA_BITWISE_XOR])
	known := was.known && was.register == decodeNumber(f[unix.NFTA_BITWISE_SREG]) && errMask == nil && errXor == nil
	r.state = knownRegister{known: known, register: decodeNumber(f[unix.NFTA_BITWISE_DREG]), value: was.value&mask ^ xor}
	return nil
}

func (r *ruleReader) readCompare(f attributes) error {
	known := r.state.known && r.state.register == decodeNumber(f[unix.NFTA_CMP_SREG])
	with, err := decodeWord(f[unix.NFTA_CMP_DATA])
	op := decodeNumber(f[unix.NFTA_CMP_OP])
	if !known || err != nil || op > unix.NFT_CMP_NEQ {
		r.matchSome()
		return nil
	}
	if (r.state.value == with) != (op == unix.NFT_CMP_EQ) {
		r.rule.Match = netconf.MatchesNone
	}
	return nil
}

// nfAccept is NF_ACCEPT of <linux/netfilter.h>.
const nfAccept = 1

// readVerdict reads a verdict.
func (r *ruleReader) readVerdict(f attributes) error {
	if decodeNumber(f[unix.NFTA_IMMEDIATE_DREG]) != unix.NFT_REG_VERDICT {
		r.state.known = false
		return nil
	}
	data, err := fields(f[unix.NFTA_IMMEDIATE_DATA])
	if err != nil {
		return err
	}
	verdict, err := fields(data[unix.NFTA_DATA_VERDICT])
	if err != nil {
		return err
	}
	switch int32(decodeNumber(verdict[unix.NFTA_VERDICT_CODE])) {
	case nfAccept:
		r.rule.Does = netconf.Accepts
	case unix.NFT_CONTINUE:
		r.rule.Does = netconf.Nothing
	case unix.NFT_RETURN:
		r.rule.Does = netconf.Returns
	case unix.NFT_JUMP:
		r.rule.Does = netconf.Jumps
	case unix.NFT_GOTO:
		r.rule.Does = netconf.Goes
	default:
		r.rule.Does = netconf.Acts
	}
	r.rule.Target = trimZeros(verdict[unix.NFTA_VERDICT_CHAIN])
	if netconf.IsIptChain(r.rule.Target) {
		// Ours: what it does to packets the fast path does too.
		r.rule.Does, r.rule.Target = netconf.Nothing, ""
	}
	return nil
}
