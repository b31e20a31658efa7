package firewall

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/xt"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// nftRules shows the rules of a table of nftables.
type nftRules struct {
	c     *nftables.Conn
	table *nftables.Table
	rules map[string][]*nftables.Rule
}

func newNftRules(c *nftables.Conn, t *nftables.Table) nftRules {
	return nftRules{c, t, map[string][]*nftables.Rule{}}
}

func (n nftRules) each(chain string, w *walk, visit func(ruleView) (bool, error)) error {
	rules, read := n.rules[chain]
	if !read {
		var err error
		rules, err = n.c.GetRules(n.table, &nftables.Chain{Name: chain, Table: n.table})
		if kernel := new(netlink.OpError); err != nil && !errors.As(err, &kernel) {
			// A rule that the library can't read, such as `ct original ip daddr`: what the
			// chain does with the packet nobody can tell.
			_, err := visit(ruleView{match: mayMatch, action: decidesElsewhere})
			return err
		}
		if err != nil {
			return fmt.Errorf("list rules of nftables table %s chain %s: %w", n.table.Name, chain, err)
		}
		n.rules[chain] = rules
	}
	for _, r := range rules {
		p := nftPacket{rules: n, walk: w, view: ruleView{match: matches}}
		for _, e := range r.Exprs {
			p.take(e)
		}
		if goOn, err := visit(p.view); err != nil || !goOn {
			return err
		}
	}
	return nil
}

// nftPacket takes a packet through the expressions of a rule.
type nftPacket struct {
	rules nftRules
	walk  *walk
	registers
	view ruleView
}

func (p *nftPacket) also(m match) { p.view.match = p.view.match.and(m) }

func (p *nftPacket) take(e expr.Any) {
	switch e := e.(type) {
	case *expr.Counter, *expr.Log:
	case *expr.Immediate:
		p.load(e.Register, e.Data)
	case *expr.Meta:
		if e.SourceRegister {
			if e.Key == expr.MetaKeyMARK {
				p.view.marks, p.view.mark = true, slices.Clone(p.read(e.Register, 4))
			}
			return
		}
		p.load(e.Register, p.meta(e.Key))
	case *expr.Ct:
		if !e.SourceRegister {
			p.load(e.Register, conntrackOfNew(e.Key))
		}
	case *expr.Payload:
		p.load(e.DestRegister, p.payload(e))
	case *expr.Bitwise:
		p.load(e.DestRegister, bitwise(p.read(e.SourceRegister, len(e.Mask)), e))
	case *expr.Cmp:
		have := p.read(e.Register, len(e.Data))
		if p.walk.flow.mayGetRules(textOf(p.read(e.Register, unix.IFNAMSIZ)), textOf(e.Data)) {
			have = nil
		}
		p.also(compare(have, e))
	case *expr.Lookup:
		p.lookup(e)
	case *expr.Match:
		p.also(xtMatch(e))
	case *expr.Target:
		p.target(e.Name)
	case *expr.Reject:
		p.view.action = drops
	case *expr.Queue:
		p.view.action = decidesElsewhere
	case *expr.Verdict:
		p.verdict(e)
	default:
		p.also(mayMatch)
	}
}

func (p *nftPacket) verdict(v *expr.Verdict) {
	p.view.chain = v.Chain
	switch v.Kind {
	case expr.VerdictAccept:
		p.view.action = accepts
	case expr.VerdictDrop:
		p.view.action = drops
	case expr.VerdictReturn:
		p.view.action = returns
	case expr.VerdictJump:
		p.view.action = jumps
	case expr.VerdictGoto:
		p.view.action = goesTo
	}
}

func (p *nftPacket) target(name string) {
	switch name {
	case "REJECT":
		p.view.action = drops
	case "MARK", "CONNMARK":
		p.view.marks = true
	case "NFQUEUE":
		p.view.action = decidesElsewhere
	}
}

// meta returns what is known of the packet. It has the flow's mark until a rule sets another
// one, and is the first of a TCP connection.
func (p *nftPacket) meta(key expr.MetaKey) []byte {
	f := p.walk.flow
	switch key {
	case expr.MetaKeyIIFNAME:
		return linkName(f.In)
	case expr.MetaKeyOIFNAME:
		return linkName(f.Out)
	case expr.MetaKeyNFPROTO:
		if f.Family == eni.IPv6 {
			return []byte{unix.NFPROTO_IPV6}
		}
		return []byte{unix.NFPROTO_IPV4}
	case expr.MetaKeyL4PROTO:
		return []byte{unix.IPPROTO_TCP}
	case expr.MetaKeyMARK:
		if !p.walk.marked {
			return binaryutil.NativeEndian.PutUint32(p.walk.flow.Mark)
		}
	}
	return nil
}

// textOf returns the name of a link that stands in a register.
func textOf(data []byte) string { return string(bytes.TrimRight(data, "\x00")) }

func linkName(name string) []byte {
	if name == "" {
		return nil
	}
	return ifname(name)
}

func conntrackOfNew(key expr.CtKey) []byte {
	switch key {
	case expr.CtKeySTATE:
		return binaryutil.NativeEndian.PutUint32(expr.CtStateBitNEW)
	case expr.CtKeyDIRECTION:
		return []byte{0}
	case expr.CtKeySTATUS: // not translated
		return make([]byte, 4)
	}
	return nil
}

// flowPort is the port at both ends of a flow: nobody's rule is for it.
const flowPort = 49151

func (p *nftPacket) payload(e *expr.Payload) []byte {
	if e.OperationType != expr.PayloadLoad {
		return nil
	}
	f := p.walk.flow
	source, to := uint32(12), uint32(16)
	if f.Family == eni.IPv6 {
		source, to = 8, 24
	}
	switch {
	case e.Base == expr.PayloadBaseTransportHeader && e.Len == 2 && e.Offset <= 2:
		return binaryutil.BigEndian.PutUint16(flowPort)
	case e.Base != expr.PayloadBaseNetworkHeader:
	case e.Offset == source:
		return firstBytes(f.Src, e.Len)
	case e.Offset == to:
		return firstBytes(f.Dst, e.Len)
	}
	return nil
}

// firstBytes returns so many bytes of the address: of one that is compared with a prefix only
// those are loaded that it has.
func firstBytes(a netip.Addr, n uint32) []byte {
	if b := a.AsSlice(); int(n) <= len(b) {
		return b[:n]
	}
	return nil
}

func bitwise(have []byte, e *expr.Bitwise) []byte {
	if len(have) != len(e.Mask) || len(have) != len(e.Xor) || len(have) == 0 {
		return nil
	}
	out := make([]byte, len(have))
	for i := range have {
		out[i] = have[i]&e.Mask[i] ^ e.Xor[i]
	}
	return out
}

func compare(have []byte, e *expr.Cmp) match {
	if len(have) < len(e.Data) || len(e.Data) == 0 {
		return mayMatch
	}
	c := bytes.Compare(have[:len(e.Data)], e.Data) // a name that ends in * is compared as far as it goes
	switch e.Op {
	case expr.CmpOpEq:
		return matchIf(c == 0)
	case expr.CmpOpNeq:
		return matchIf(c != 0)
	}
	return mayMatch
}

// lookup finds the packet in a set, or its verdict in a map.
func (p *nftPacket) lookup(e *expr.Lookup) {
	set, err := p.rules.c.GetSetByName(p.rules.table, e.SetName)
	var list []nftables.SetElement
	if err == nil {
		list, err = p.rules.c.GetSetElements(set)
	}
	var key []byte
	var elements [][]byte
	for _, l := range list {
		elements = append(elements, l.Key)
	}
	if key = p.read(e.SourceRegister, unix.IFNAMSIZ); len(list) > 0 {
		key = p.read(e.SourceRegister, len(list[0].Key))
	}
	isMap := e.IsDestRegSet
	found, value, sure := findElement(list, key)
	switch {
	case err != nil || len(list) > 0 && key == nil || !sure || set.Interval && isMap || p.walk.flow.mayGetElement(key, elements):
		p.also(mayMatch)
		if isMap {
			p.view.action = decidesElsewhere
		}
	case isMap && found:
		if v := decodeVerdict(value); v != nil {
			p.verdict(v)
		}
	case e.Invert:
		p.also(matchIf(!found))
	default:
		p.also(matchIf(found))
	}
}

// findElement returns whether the key is in the set, and the value it has there.
// Intervals are told by their ends.
func findElement(list []nftables.SetElement, key []byte) (found bool, value []byte, sure bool) {
	slices.SortFunc(list, func(a, b nftables.SetElement) int { return bytes.Compare(a.Key, b.Key) })
	interval := slices.ContainsFunc(list, func(e nftables.SetElement) bool { return e.IntervalEnd })
	for _, e := range list {
		if len(e.Key) != len(key) || e.KeyEnd != nil {
			return false, nil, false
		}
		switch c := bytes.Compare(e.Key, key); {
		case c == 0 && !e.IntervalEnd:
			return true, e.Val, true
		case c <= 0 && interval:
			found = !e.IntervalEnd
		}
	}
	return found, nil, true
}

// xtMatch judges what iptables on nftables leaves to its own matches.
func xtMatch(e *expr.Match) match {
	switch info := e.Info.(type) {
	case *xt.ConntrackMtinfo1:
		return xtState(info.MatchFlags, info.InvertFlags, uint16(info.StateMask))
	case *xt.ConntrackMtinfo2:
		return xtState(info.MatchFlags, info.InvertFlags, info.StateMask)
	case *xt.ConntrackMtinfo3:
		return xtState(info.MatchFlags, info.InvertFlags, info.StateMask)
	}
	if e.Name == "comment" {
		return matches
	}
	return mayMatch
}

// xtState judges a match on the state of the connection, which is new.
func xtState(flags, invert, states uint16) match {
	const state = uint16(xt.ConntrackState | xt.ConntrackStateAlias)
	if flags&state == 0 {
		return mayMatch
	}
	m := matchIf(states&uint16(expr.CtStateBitNEW) != 0)
	if invert&state != 0 {
		m = m.not()
	}
	if flags&^state != 0 {
		m = m.and(mayMatch)
	}
	return m
}
