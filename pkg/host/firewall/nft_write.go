package firewall

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/userdata"
	"golang.org/x/sys/unix"
)

// nftWriter writes our table. Its methods collect messages; one Flush sends them
// as one transaction.
type nftWriter struct {
	c     *nftables.Conn
	table *nftables.Table
}

// rebuild replaces the table, or makes it.
func (w nftWriter) rebuild(t netconf.NftTable) error {
	w.c.AddTable(w.table) // so that there is something to delete
	w.c.DelTable(w.table)
	if err := w.create(t); err != nil {
		return err
	}
	return w.c.Flush()
}

func (w nftWriter) create(t netconf.NftTable) error {
	w.c.AddTable(w.table)
	d := nftDiff{addChains: t.Chains, addSets: t.Sets, addRules: t.Chains}
	for _, s := range t.Sets {
		d.addElements = append(d.addElements, elements{s, encode(s)})
	}
	return w.queue(d)
}

func (w nftWriter) change(d nftDiff) error {
	if err := w.queue(d); err != nil {
		return err
	}
	return w.c.Flush()
}

// queue removes users before what they use and adds the other way round: rules
// use sets and chains, elements use chains.
func (w nftWriter) queue(d nftDiff) error {
	for _, name := range d.flush {
		w.c.FlushChain(&nftables.Chain{Name: name, Table: w.table})
	}
	for _, e := range d.delElements {
		if err := chunks(e.list, func(list []nftables.SetElement) error {
			return w.c.SetDeleteElements(nftSet(w.table, e.set), list)
		}); err != nil {
			return err
		}
	}
	for _, name := range d.delSets {
		set := &nftables.Set{Name: name, Table: w.table}
		w.c.FlushSet(set) // older kernels count the elements' chains as used else
		w.c.DelSet(set)
	}
	for _, name := range d.delChains {
		w.c.DelChain(&nftables.Chain{Name: name, Table: w.table})
	}
	for _, c := range d.addChains {
		w.c.AddChain(nftChain(w.table, c))
	}
	for i, s := range d.addSets {
		set := nftSet(w.table, s)
		set.ID = uint32(i + 1)
		if err := w.c.AddSet(set, nil); err != nil {
			return err
		}
	}
	for _, e := range d.addElements {
		if err := chunks(e.list, func(list []nftables.SetElement) error {
			return w.c.SetAddElements(nftSet(w.table, e.set), list)
		}); err != nil {
			return err
		}
	}
	for _, c := range d.addRules {
		for _, r := range c.Rules {
			rule, err := expressions(r)
			if err != nil {
				return err
			}
			w.c.AddRule(&nftables.Rule{Table: w.table, Chain: &nftables.Chain{Name: c.Name, Table: w.table}, Exprs: rule,
				UserData: userdata.AppendString(nil, userdata.TypeComment, r.Comment())})
		}
	}
	return nil
}

// chunks does the elements in parts that fit a netlink attribute, whose length
// has 16 bits: an IPv6 element with its verdict takes about 60 bytes.
func chunks(list []nftables.SetElement, do func([]nftables.SetElement) error) error {
	const most = 500
	for len(list) > 0 {
		n := min(most, len(list))
		if err := do(list[:n]); err != nil {
			return err
		}
		list = list[n:]
	}
	return nil
}

func nftChain(table *nftables.Table, c netconf.NftChain) *nftables.Chain {
	chain := &nftables.Chain{Name: c.Name, Table: table}
	if c.Hook == "" {
		return chain
	}
	hook, policy := nftables.ChainHookPrerouting, nftables.ChainPolicyAccept
	if c.Hook == "postrouting" {
		hook = nftables.ChainHookPostrouting
	}
	chain.Type, chain.Hooknum, chain.Policy = nftables.ChainType(c.Type), hook, &policy
	chain.Priority = nftables.ChainPriorityRef(nftables.ChainPriority(c.Priority))
	return chain
}

func nftSet(table *nftables.Table, s netconf.NftSet) *nftables.Set {
	set := &nftables.Set{Table: table, Name: s.Name, IsMap: s.Verdicts, Interval: s.Interval, KeyByteOrder: binaryutil.BigEndian}
	if s.Verdicts {
		set.DataType = nftables.TypeVerdict
	}
	switch s.Type {
	case "ipv4_addr":
		set.KeyType = nftables.TypeIPAddr
	case "ipv6_addr":
		set.KeyType = nftables.TypeIP6Addr
	case "ifname":
		set.KeyType, set.KeyByteOrder = nftables.TypeIFName, binaryutil.NativeEndian
	case "mark":
		set.KeyType, set.KeyByteOrder = nftables.TypeMark, binaryutil.NativeEndian
	}
	return set
}

// encode returns the set's elements as the kernel takes them.
func encode(s netconf.NftSet) []nftables.SetElement {
	list := make([]nftables.SetElement, 0, len(s.Elements))
	for _, e := range s.Elements {
		var v *expr.Verdict
		if e.Verdict.Kind != "" {
			v = nftVerdict(e.Verdict)
		}
		switch key := e.Key.(type) {
		case netip.Addr:
			list = append(list, nftables.SetElement{Key: key.AsSlice(), VerdictData: v})
		case netip.Prefix:
			list = append(list, nftables.SetElement{Key: key.Addr().AsSlice()})
			if end := after(key); end.IsValid() {
				list = append(list, nftables.SetElement{Key: end.AsSlice(), IntervalEnd: true})
			}
		case netconf.NftName:
			list = append(list, nftables.SetElement{Key: ifname(string(key)), VerdictData: v})
		case netconf.NftMark:
			list = append(list, nftables.SetElement{Key: binaryutil.NativeEndian.PutUint32(uint32(key)), VerdictData: v})
		}
	}
	return list
}

// after returns the first address behind p, the zero Addr if there is none: an
// interval without end goes on for ever.
func after(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().AsSlice()
	for i := range b {
		if host := 8*(i+1) - p.Bits(); host > 0 {
			b[i] |= byte(1<<min(host, 8) - 1)
		}
	}
	last, _ := netip.AddrFromSlice(b)
	return last.Next()
}

// ifname pads a link's name as the kernel keeps it.
func ifname(name string) []byte {
	b := make([]byte, unix.IFNAMSIZ)
	copy(b, name)
	return b
}

func nftVerdict(v netconf.NftVerdict) *expr.Verdict {
	kind := map[string]expr.VerdictKind{"jump": expr.VerdictJump, "goto": expr.VerdictGoto,
		"accept": expr.VerdictAccept, "drop": expr.VerdictDrop}[v.Kind]
	return &expr.Verdict{Kind: kind, Chain: v.Chain}
}

// reg is the one register that all our expressions need.
const reg = 1

// expressions translates a rule. What reads a header of one family first makes
// sure that the packet is of it, once a rule.
func expressions(r netconf.NftRule) ([]expr.Any, error) {
	var list []expr.Any
	var known eni.Family
	for _, s := range r.Statements {
		if family := headerOf(s); family != 0 && family != known {
			list = append(list, isFamily(family)...)
			known = family
		}
		e := statement(s)
		if e == nil {
			return nil, fmt.Errorf("translate nftables rule %q: unknown statement %q", r, s)
		}
		list = append(list, e...)
	}
	return list, nil
}

func headerOf(s fmt.Stringer) eni.Family {
	if l, ok := s.(netconf.NftLookup); ok {
		switch l.Field {
		case netconf.NftSource4, netconf.NftDestination4:
			return eni.IPv4
		case netconf.NftSource6:
			return eni.IPv6
		}
	}
	return 0
}

func isFamily(f eni.Family) []expr.Any {
	number := byte(unix.NFPROTO_IPV4)
	if f == eni.IPv6 {
		number = unix.NFPROTO_IPV6
	}
	return []expr.Any{&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: reg}, equal([]byte{number})}
}

func equal(data []byte) expr.Any { return &expr.Cmp{Op: expr.CmpOpEq, Register: reg, Data: data} }

func statement(s fmt.Stringer) []expr.Any {
	switch s := s.(type) {
	case netconf.NftDevice:
		return device(s)
	case netconf.NftFamily:
		return isFamily(eni.Family(s))
	case netconf.NftConn:
		return conn(s)
	case netconf.NftLookup:
		return lookup(s)
	case netconf.NftSpoofed:
		return []expr.Any{&expr.Fib{Register: reg, ResultOIF: true, FlagSADDR: true, FlagIIF: true, FlagPRESENT: true}, equal(make([]byte, 4))}
	case netconf.NftSetMark:
		return setMark(s)
	case netconf.NftSNAT:
		return []expr.Any{&expr.Immediate{Register: reg, Data: s.To.AsSlice()},
			&expr.NAT{Type: expr.NATTypeSourceNAT, Family: unix.NFPROTO_IPV4, RegAddrMin: reg, FullyRandom: true}}
	case netconf.NftVerdict:
		return []expr.Any{nftVerdict(s)}
	}
	return nil
}

func device(d netconf.NftDevice) []expr.Any {
	meta := &expr.Meta{Key: expr.MetaKeyIIFNAME, Register: reg}
	if d.Out {
		meta.Key = expr.MetaKeyOIFNAME
	}
	if start, any := strings.CutSuffix(d.Name, "*"); any {
		return []expr.Any{meta, equal([]byte(start))}
	}
	return []expr.Any{meta, equal(ifname(d.Name))}
}

func conn(c netconf.NftConn) []expr.Any {
	switch c {
	case netconf.NftNew:
		return []expr.Any{&expr.Ct{Key: expr.CtKeySTATE, Register: reg}, mask(expr.CtStateBitNEW, 0),
			&expr.Cmp{Op: expr.CmpOpNeq, Register: reg, Data: make([]byte, 4)}}
	case netconf.NftReply:
		return []expr.Any{&expr.Ct{Key: expr.CtKeyDIRECTION, Register: reg}, equal([]byte{1})}
	}
	return nil
}

// mask keeps the bits of keep and then flips those of flip.
func mask(keep, flip uint32) expr.Any {
	return &expr.Bitwise{SourceRegister: reg, DestRegister: reg, Len: 4,
		Mask: binaryutil.NativeEndian.PutUint32(keep), Xor: binaryutil.NativeEndian.PutUint32(flip)}
}

func lookup(l netconf.NftLookup) []expr.Any {
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
	case netconf.NftArrival:
		return []expr.Any{&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: reg}, find}
	case netconf.NftConnMark:
		return []expr.Any{&expr.Ct{Key: expr.CtKeyMARK, Register: reg}, mask(l.Mask, 0), find}
	}
	return nil
}

func setMark(m netconf.NftSetMark) []expr.Any {
	load, store := expr.Any(&expr.Meta{Key: expr.MetaKeyMARK, Register: reg}), expr.Any(&expr.Meta{Key: expr.MetaKeyMARK, Register: reg, SourceRegister: true})
	if m.Conn {
		load, store = &expr.Ct{Key: expr.CtKeyMARK, Register: reg}, &expr.Ct{Key: expr.CtKeyMARK, Register: reg, SourceRegister: true}
	}
	return []expr.Any{load, mask(^m.Mask, m.Mark), store}
}
