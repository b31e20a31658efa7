package fastpath

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/netconf"
	"github.com/google/nftables"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Rules are read here and not by the library that the firewall is written with:
// it leaves out expressions that it does not know, and a rule whose condition is
// left out looks as if it applied to everything.

// readRules reads what the rules of a chain do to packets of established
// connections.
func readRules(c *nftables.Chain) ([]netconf.OthersRule, error) {
	messages, err := ask(unix.NFT_MSG_GETRULE, netlink.Dump, uint8(c.Table.Family), []netlink.Attribute{
		{Type: unix.NFTA_RULE_TABLE, Data: append([]byte(c.Table.Name), 0)},
		{Type: unix.NFTA_RULE_CHAIN, Data: append([]byte(c.Name), 0)},
	})
	if err != nil {
		return nil, err
	}
	var rules []netconf.OthersRule
	for _, m := range messages {
		rule, err := parseRule(m.Data[4:])
		if err != nil {
			return nil, err
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

// nftGeneration returns the number that every change of nftables adds to.
func nftGeneration() (generation uint32, err error) {
	messages, err := ask(unix.NFT_MSG_GETGEN, 0, unix.AF_UNSPEC, nil)
	if err != nil {
		return 0, fmt.Errorf("read nftables: %w", err)
	}
	for _, m := range messages {
		d, err := netlink.NewAttributeDecoder(m.Data[4:])
		if err != nil {
			return 0, err
		}
		d.ByteOrder = binary.BigEndian
		for d.Next() {
			if d.Type() == unix.NFTA_GEN_ID {
				generation = d.Uint32()
			}
		}
		if err := d.Err(); err != nil {
			return 0, err
		}
	}
	return generation, nil
}

func ask(kind uint16, flags netlink.HeaderFlags, family uint8, attrs []netlink.Attribute) ([]netlink.Message, error) {
	conn, err := netlink.Dial(unix.NETLINK_NETFILTER, nil)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	data, err := netlink.MarshalAttributes(attrs)
	if err != nil {
		return nil, err
	}
	return conn.Execute(netlink.Message{
		Header: netlink.Header{Type: netlink.HeaderType(unix.NFNL_SUBSYS_NFTABLES<<8 | kind), Flags: netlink.Request | flags},
		Data:   append([]byte{family, unix.NFNETLINK_V0, 0, 0}, data...),
	})
}

func unknownProtocol(err error) bool {
	return errors.Is(err, unix.EPROTONOSUPPORT) || errors.Is(err, unix.EOPNOTSUPP)
}

// ruleReader follows the expressions of a rule. Registers hold what is known of
// the packet: that its connection is established.
type ruleReader struct {
	rule      netconf.OthersRule
	registers map[uint32]uint32
}

func parseRule(message []byte) (netconf.OthersRule, error) {
	var r ruleReader
	r.registers = map[uint32]uint32{}
	err := each(message, func(d *netlink.AttributeDecoder) error {
		if d.Type() != unix.NFTA_RULE_EXPRESSIONS {
			return nil
		}
		return each(d.Bytes(), func(d *netlink.AttributeDecoder) error { return r.expression(d.Bytes()) })
	})
	return r.rule, err
}

// each calls do for every attribute.
func each(data []byte, do func(*netlink.AttributeDecoder) error) error {
	d, err := netlink.NewAttributeDecoder(data)
	if err != nil {
		return err
	}
	d.ByteOrder = binary.BigEndian
	for d.Next() {
		if err := do(d); err != nil {
			return err
		}
	}
	return d.Err()
}

// fields returns the attributes by type, without the flags.
func fields(data []byte) (map[uint16][]byte, error) {
	list := map[uint16][]byte{}
	err := each(data, func(d *netlink.AttributeDecoder) error {
		list[d.Type()] = d.Bytes()
		return nil
	})
	return list, err
}

// matching are the expressions that compare or load what is not known here.
var matching = []string{"meta", "payload", "rt", "socket", "fib", "hash", "numgen", "range", "exthdr", "limit", "quota", "connlimit",
	"osf", "xfrm", "tunnel", "inner", "byteorder", "last", "lookup", "ct", "bitwise", "cmp", "match"}

// setting are the attributes by which some of them change a packet instead.
var setting = map[string]uint16{"meta": unix.NFTA_META_SREG, "payload": unix.NFTA_PAYLOAD_SREG, "exthdr": unix.NFTA_EXTHDR_SREG, "ct": unix.NFTA_CT_SREG}

func (r *ruleReader) expression(data []byte) error {
	parts, err := fields(data)
	if err != nil {
		return err
	}
	name := text(parts[unix.NFTA_EXPR_NAME])
	f, err := fields(parts[unix.NFTA_EXPR_DATA])
	if err != nil {
		return err
	}
	// What stands behind a condition that is never true does not happen, and what
	// stands before it does.
	if r.rule.Match == netconf.MatchesNone || r.rule.Does == netconf.Acts {
		return nil
	}
	_, sets := f[setting[name]]
	switch {
	case name == "counter":
	case setting[name] != 0 && sets:
		r.rule.Does = netconf.Acts
	case name == "ct" && number(f[unix.NFTA_CT_KEY]) == unix.NFT_CT_STATE:
		r.registers[number(f[unix.NFTA_CT_DREG])] = stateEstablished
	case name == "bitwise":
		return r.bitwise(f)
	case name == "cmp":
		return r.compare(f)
	case name == "match":
		r.match(f)
	case name == "immediate":
		return r.immediate(f)
	case name == "lookup" && f[unix.NFTA_LOOKUP_DREG] != nil:
		r.rule.Does = netconf.Acts // whatever the map says
	case slices.Contains(matching, name):
		if to := loaded(name, f); to != 0 {
			delete(r.registers, to)
		} else {
			clear(r.registers) // it may have loaded any
		}
		r.some()
	default:
		r.rule.Does = netconf.Acts
	}
	return nil
}

// stateEstablished is what nftables loads as `ct state` of such a packet.
const stateEstablished = 2

// loaded returns the register that the expression loads, if it is one.
func loaded(name string, f map[uint16][]byte) uint32 {
	at := map[string]uint16{"meta": unix.NFTA_META_DREG, "payload": unix.NFTA_PAYLOAD_DREG, "ct": unix.NFTA_CT_DREG, "rt": unix.NFTA_RT_DREG,
		"fib": unix.NFTA_FIB_DREG, "exthdr": unix.NFTA_EXTHDR_DREG}[name]
	if f[at] == nil {
		return 0
	}
	return number(f[at])
}

// some notes that the rule applies to packets that are not told from others here.
func (r *ruleReader) some() {
	if r.rule.Match == netconf.MatchesAll {
		r.rule.Match = netconf.MatchesSome
	}
}

func (r *ruleReader) bitwise(f map[uint16][]byte) error {
	from, to := number(f[unix.NFTA_BITWISE_SREG]), number(f[unix.NFTA_BITWISE_DREG])
	value, known := r.registers[from]
	mask, errMask := value4(f[unix.NFTA_BITWISE_MASK])
	xor, errXor := value4(f[unix.NFTA_BITWISE_XOR])
	if !known || errMask != nil || errXor != nil {
		delete(r.registers, to)
		return nil
	}
	r.registers[to] = value&mask ^ xor
	return nil
}

func (r *ruleReader) compare(f map[uint16][]byte) error {
	value, known := r.registers[number(f[unix.NFTA_CMP_SREG])]
	with, err := value4(f[unix.NFTA_CMP_DATA])
	op := number(f[unix.NFTA_CMP_OP])
	if !known || err != nil || op > unix.NFT_CMP_NEQ {
		r.some()
		return nil
	}
	if (value == with) != (op == unix.NFT_CMP_EQ) {
		r.rule.Match = netconf.MatchesNone
	}
	return nil
}

// match reads a match of iptables. Of those only the state of the connection is
// known.
func (r *ruleReader) match(f map[uint16][]byte) {
	const stateOnly, established = 1, 1 << 1 // XT_CONNTRACK_STATE, XT_CONNTRACK_STATE_BIT(IP_CT_ESTABLISHED)
	// struct xt_conntrack_mtinfo3 of <linux/netfilter/xt_conntrack.h>: eight
	// addresses, two times, six numbers of 16 bits, then flags and masks.
	const flagsAt, invertAt, stateAt = 8*16 + 8 + 10, 8*16 + 8 + 12, 8*16 + 8 + 14
	name, info := text(f[unix.NFTA_MATCH_NAME]), f[unix.NFTA_MATCH_INFO]
	revision := number(f[unix.NFTA_MATCH_REV])
	switch {
	case name == "comment":
	case name == "conntrack" && revision >= 2 && len(info) >= stateAt+2:
		flags, invert := binary.NativeEndian.Uint16(info[flagsAt:]), binary.NativeEndian.Uint16(info[invertAt:])
		states := binary.NativeEndian.Uint16(info[stateAt:])
		if flags&stateOnly != 0 && (states&established != 0) == (invert&stateOnly != 0) {
			r.rule.Match = netconf.MatchesNone
			return
		}
		if flags&^stateOnly != 0 {
			r.some()
		}
	default:
		r.some()
	}
}

// nfAccept is NF_ACCEPT of <linux/netfilter.h>.
const nfAccept = 1

// immediate reads a verdict.
func (r *ruleReader) immediate(f map[uint16][]byte) error {
	if number(f[unix.NFTA_IMMEDIATE_DREG]) != unix.NFT_REG_VERDICT {
		delete(r.registers, number(f[unix.NFTA_IMMEDIATE_DREG]))
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
	if r.rule.Does == netconf.Acts {
		return nil
	}
	does, ok := map[int32]netconf.OthersAction{
		nfAccept: netconf.Accepts, unix.NFT_CONTINUE: netconf.Nothing, unix.NFT_RETURN: netconf.Returns,
		unix.NFT_JUMP: netconf.Jumps, unix.NFT_GOTO: netconf.Goes,
	}[int32(number(verdict[unix.NFTA_VERDICT_CODE]))]
	if !ok {
		does = netconf.Acts
	}
	r.rule.Does, r.rule.Target = does, text(verdict[unix.NFTA_VERDICT_CHAIN])
	if netconf.IsIptChain(r.rule.Target) {
		// Ours: what it does to packets the fast path does too.
		r.rule.Does, r.rule.Target = netconf.Nothing, ""
	}
	return nil
}

// value4 reads a value of four bytes, in the machine's order as registers hold it.
func value4(data []byte) (uint32, error) {
	f, err := fields(data)
	if err != nil || len(f[unix.NFTA_DATA_VALUE]) != 4 {
		return 0, errors.Join(err, errors.New("no value of four bytes"))
	}
	return binary.NativeEndian.Uint32(f[unix.NFTA_DATA_VALUE]), nil
}

// number reads an attribute of four bytes, 0 if it is not there.
func number(data []byte) uint32 {
	if len(data) != 4 {
		return 0
	}
	return binary.BigEndian.Uint32(data)
}

func text(data []byte) string { return strings.TrimRight(string(data), "\x00") }
