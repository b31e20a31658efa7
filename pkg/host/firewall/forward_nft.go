package firewall

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// nftRules shows the rules of a table of nftables. What was read once is kept.
type nftRules struct {
	c     *nftables.Conn
	table *nftables.Table
	rules map[string][]*nftables.Rule
	sets  map[string]nftElements
}

func newNftRules(c *nftables.Conn, t *nftables.Table) nftRules {
	return nftRules{c, t, map[string][]*nftables.Rule{}, map[string]nftElements{}}
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
		p := nftPacket{rules: n, walk: w, view: ruleView{match: matches, mark: w.mark, conn: w.conn}}
		for _, e := range r.Exprs {
			if p.takeExpr(e); p.view.match == matchesNot {
				break // as in the kernel
			}
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

func (p *nftPacket) narrowMatch(m match) { p.view.match = p.view.match.and(m) }

func (p *nftPacket) takeExpr(e expr.Any) {
	switch e := e.(type) {
	case *expr.Counter, *expr.Log:
	case *expr.Immediate:
		p.load(e.Register, e.Data)
	case *expr.Meta:
		switch {
		case e.SourceRegister && e.Key == expr.MetaKeyMARK:
			p.view.mark = markOf(p.readBits(e.Register, 4))
		case e.SourceRegister:
		case e.Key == expr.MetaKeyMARK:
			p.loadMark(e.Register, p.view.mark)
		default:
			p.load(e.Register, p.metaValue(e.Key))
		}
	case *expr.Ct:
		p.takeConntrack(e)
	case *expr.Payload:
		p.load(e.DestRegister, p.payloadValue(e))
	case *expr.Bitwise:
		data, known := maskBits(e, &p.registers)
		p.loadBits(e.DestRegister, data, known)
	case *expr.Cmp:
		m := compareBits(e, &p.registers)
		if p.walk.flow.mayGetRules(textOf(p.readKnown(e.Register, unix.IFNAMSIZ)), textOf(e.Data)) {
			m = mayMatch
		}
		p.narrowMatch(m)
		// The library leaves out expressions that it does not know. One of those may have loaded
		// something else into this register for the next comparison, so nothing is known of it.
		p.load(e.Register, nil)
	case *expr.Lookup:
		p.takeLookup(e)
	case *expr.Match:
		p.narrowMatch(p.xtMatch(e))
	case *expr.Target:
		p.takeTarget(e)
	case *expr.Reject:
		p.view.action = drops
	case *expr.NAT:
		if e.Type == expr.NATTypeSourceNAT {
			p.view.action, p.view.source = translates, source{given: true, addr: p.natAddress(e)}
		}
	case *expr.Masq:
		p.view.action, p.view.source = translates, source{given: true, masquerade: true}
	case *expr.Queue:
		p.view.action = decidesElsewhere
	case *expr.Verdict:
		p.takeVerdict(e)
	default:
		p.narrowMatch(mayMatch)
		p.registers = registers{} // it may have loaded any
	}
}

// takeConntrack loads what is known of the connection, or sets its mark.
func (p *nftPacket) takeConntrack(e *expr.Ct) {
	switch {
	case e.SourceRegister || e.Register == 0:
		// The library does not tell the register of a statement that sets something. The value is
		// loaded right before the statement, so it is in the register that was written last.
		if e.Key == expr.CtKeyMARK {
			p.view.conn = markOf(p.readBits(p.last, 4))
		}
	case e.Key == expr.CtKeyMARK:
		p.loadMark(e.Register, p.view.conn)
	default:
		p.load(e.Register, p.walk.flow.ctValue(e.Key))
	}
}

func (p *nftPacket) loadMark(register uint32, m mark) {
	data, known := m.registerBytes()
	p.loadBits(register, data, known)
}

// natAddress is the one that a rule gives, where it is one only.
func (p *nftPacket) natAddress(e *expr.NAT) netip.Addr {
	length := 4
	if p.walk.flow.Family == eni.IPv6 {
		length = 16
	}
	least := p.readKnown(e.RegAddrMin, length)
	if e.RegAddrMax != 0 && !bytes.Equal(least, p.readKnown(e.RegAddrMax, length)) {
		return netip.Addr{}
	}
	a, _ := netip.AddrFromSlice(least)
	return a
}

func (p *nftPacket) takeVerdict(v *expr.Verdict) {
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

// metaValue returns what is known of the packet.
func (p *nftPacket) metaValue(key expr.MetaKey) []byte {
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
	}
	return nil
}

// textOf returns the name of a link that stands in a register.
func textOf(data []byte) string { return string(bytes.TrimRight(data, "\x00")) }

func linkName(name string) []byte {
	if name == "" {
		return nil
	}
	return padLinkName(name)
}

// ctState is the bit that tells the state of the flow's connection.
func (f Flow) ctState() uint32 {
	if f.Reply {
		return expr.CtStateBitESTABLISHED
	}
	return expr.CtStateBitNEW
}

func (f Flow) ctValue(key expr.CtKey) []byte {
	switch {
	case key == expr.CtKeySTATE:
		return binaryutil.NativeEndian.PutUint32(f.ctState())
	case key == expr.CtKeyDIRECTION && f.Reply:
		return []byte{1}
	case key == expr.CtKeyDIRECTION:
		return []byte{0}
	case key == expr.CtKeySTATUS && !f.Reply: // not translated
		return make([]byte, 4)
	}
	return nil
}

// flowPort is the port at both ends of a flow: nobody's rule is for it.
const flowPort = 49151

func (p *nftPacket) payloadValue(e *expr.Payload) []byte {
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

// firstBytes returns the first n bytes of the address. A rule that compares an address with a
// prefix loads only the bytes of the prefix.
func firstBytes(a netip.Addr, n uint32) []byte {
	if b := a.AsSlice(); int(n) <= len(b) {
		return b[:n]
	}
	return nil
}

func maskBits(e *expr.Bitwise, r *registers) (data, known []byte) {
	have, has := r.readBits(e.SourceRegister, len(e.Mask))
	if len(have) == 0 || len(have) != len(e.Xor) {
		return nil, nil
	}
	data, known = make([]byte, len(have)), make([]byte, len(have))
	for i := range have {
		known[i] = has[i] | ^e.Mask[i]
		data[i] = (have[i]&e.Mask[i] ^ e.Xor[i]) & known[i]
	}
	return data, known
}

// compareBits judges a comparison by the bits that are known.
func compareBits(e *expr.Cmp, r *registers) match {
	have, known := r.readBits(e.Register, len(e.Data)) // a name that ends in * is compared as far as it goes
	if len(have) == 0 || e.Op != expr.CmpOpEq && e.Op != expr.CmpOpNeq {
		return mayMatch
	}
	m := matches
	for i := range have {
		switch {
		case (have[i]^e.Data[i])&known[i] != 0:
			m = matchesNot
		case known[i] != 0xff:
			m = m.and(mayMatch)
		}
	}
	if e.Op == expr.CmpOpNeq {
		return m.not()
	}
	return m
}
