package firewall

import (
	"net/netip"

	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/xt"
)

// xtMatch judges what iptables on nftables leaves to its own matches.
func (p *nftPacket) xtMatch(e *expr.Match) match {
	switch info := e.Info.(type) {
	case *xt.ConntrackMtinfo1:
		return p.walk.flow.xtState(info.MatchFlags, info.InvertFlags, uint16(info.StateMask))
	case *xt.ConntrackMtinfo2:
		return p.walk.flow.xtState(info.MatchFlags, info.InvertFlags, info.StateMask)
	case *xt.ConntrackMtinfo3:
		return p.walk.flow.xtState(info.MatchFlags, info.InvertFlags, info.StateMask)
	}
	switch {
	case e.Name == "comment":
		return matches
	case e.Name == "mark" && e.Rev == 1:
		return xtMark(p.view.mark, e.Info)
	case e.Name == "connmark" && e.Rev == 1:
		return xtMark(p.view.conn, e.Info)
	}
	return mayMatch
}

// xtMark judges a match on a mark: struct xt_mark_mtinfo1 of the kernel.
func xtMark(have mark, info xt.InfoAny) match {
	raw, is := info.(*xt.Unknown)
	if !is || len(*raw) < 9 {
		return mayMatch
	}
	m := have.judgeBits(wordAt(*raw, 0), wordAt(*raw, 1))
	if (*raw)[8] != 0 {
		m = m.not()
	}
	return m
}

func wordAt(raw []byte, i int) uint32 { return binaryutil.NativeEndian.Uint32(raw[4*i : 4*i+4]) }

// xtState judges a match on the state and the direction of the connection.
func (f Flow) xtState(flags, invert, states uint16) match {
	const state, direction = uint16(xt.ConntrackState | xt.ConntrackStateAlias), uint16(xt.ConntrackDirection)
	m := matches
	if flags&state != 0 {
		is := matchIf(uint32(states)&f.ctState() != 0)
		if invert&state != 0 {
			is = is.not()
		}
		m = m.and(is)
	}
	if flags&direction != 0 { // inverted it asks for replies
		m = m.and(matchIf(f.Reply == (invert&direction != 0)))
	}
	if flags&^(state|direction) != 0 {
		m = m.and(mayMatch)
	}
	return m
}

// takeTarget takes in what a target of iptables does.
func (p *nftPacket) takeTarget(e *expr.Target) {
	switch e.Name {
	case "REJECT":
		p.view.action = drops
	case "MARK":
		p.view.mark = xtSetMark(p.view.mark, e)
	case "CONNMARK":
		p.view.mark, p.view.conn = xtConnmark(e).applyTo(p.view.mark, p.view.conn)
	case "MASQUERADE":
		p.view.action, p.view.source = translates, source{given: true, masquerade: true}
	case "SNAT":
		p.view.action, p.view.source = translates, source{given: true, addr: xtSource(e)}
	case "NFQUEUE", "NETMAP", "TPROXY", "SYNPROXY":
		p.view.action = decidesElsewhere
	}
}

// xtSetMark reads struct xt_mark_tginfo2.
func xtSetMark(have mark, e *expr.Target) mark {
	raw, is := e.Info.(*xt.Unknown)
	if !is || e.Rev != 2 || len(*raw) < 8 {
		return mark{}
	}
	return have.and(^wordAt(*raw, 1)).xor(exactMark(wordAt(*raw, 0)))
}

// xtConnmark reads struct xt_connmark_tginfo1 and 2; marks that it shifts are not known
// any more.
func xtConnmark(e *expr.Target) connmark {
	raw, is := e.Info.(*xt.Unknown)
	if !is || e.Rev < 1 || e.Rev > 2 || len(*raw) < 16 {
		return connmark{unknown: true}
	}
	c := connmark{value: wordAt(*raw, 0), ctMask: wordAt(*raw, 1), nfMask: wordAt(*raw, 2)}
	mode := (*raw)[12]
	if e.Rev == 2 {
		mode, c.unknown = (*raw)[14], (*raw)[13] != 0
	}
	c.save, c.restore = mode == 1, mode == 2
	return c
}

// xtSource is the address that a target SNAT gives, where it is one only.
func xtSource(e *expr.Target) netip.Addr {
	ranges, is := e.Info.(*xt.NatIPv4MultiRangeCompat)
	if !is || e.Rev != 0 || len(*ranges) != 1 || !(*ranges)[0].MinIP.Equal((*ranges)[0].MaxIP) {
		return netip.Addr{}
	}
	a, _ := netip.AddrFromSlice((*ranges)[0].MinIP.To4())
	return a
}
