package firewall

import (
	"net/netip"

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

// rebuildTable replaces the table, or makes it.
func (w nftWriter) rebuildTable(t netconf.NftTable) error {
	w.c.AddTable(w.table) // so that there is something to delete
	w.c.DelTable(w.table)
	if err := w.queueTable(t); err != nil {
		return err
	}
	return w.c.Flush()
}

func (w nftWriter) queueTable(t netconf.NftTable) error {
	w.c.AddTable(w.table)
	d := nftDiff{addChains: t.Chains, addSets: t.Sets, addRules: t.Chains}
	for _, s := range t.Sets {
		d.addElements = append(d.addElements, elements{s, encodeElements(s)})
	}
	return w.queueDiff(d)
}

func (w nftWriter) applyDiff(d nftDiff) error {
	if err := w.queueDiff(d); err != nil {
		return err
	}
	return w.c.Flush()
}

// queueDiff removes users before what they use and adds the other way round: rules
// use sets and chains, elements use chains.
func (w nftWriter) queueDiff(d nftDiff) error {
	for _, name := range d.flush {
		w.c.FlushChain(&nftables.Chain{Name: name, Table: w.table})
	}
	for _, e := range d.delElements {
		if err := eachChunk(e.list, func(list []nftables.SetElement) error {
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
		if err := eachChunk(e.list, func(list []nftables.SetElement) error {
			return w.c.SetAddElements(nftSet(w.table, e.set), list)
		}); err != nil {
			return err
		}
	}
	for _, c := range d.addRules {
		for _, r := range c.Rules {
			rule, err := ruleExprs(r)
			if err != nil {
				return err
			}
			w.c.AddRule(&nftables.Rule{Table: w.table, Chain: &nftables.Chain{Name: c.Name, Table: w.table}, Exprs: rule,
				UserData: userdata.AppendString(nil, userdata.TypeComment, r.Comment())})
		}
	}
	return nil
}

// eachChunk does the elements in parts that fit a netlink attribute, whose length
// has 16 bits: an IPv6 element with its verdict takes about 60 bytes.
func eachChunk(list []nftables.SetElement, do func([]nftables.SetElement) error) error {
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
	switch c.Hook {
	case "postrouting":
		hook = nftables.ChainHookPostrouting
	case "input":
		hook = nftables.ChainHookInput
	case "output":
		hook = nftables.ChainHookOutput
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
	if s.Data != "" {
		set.IsMap, set.DataType = true, concatenationType(s.Data)
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
	default:
		set.KeyType = concatenationType(s.Type)
	}
	return set
}

// encodeElements returns the set's elements as the kernel takes them.
func encodeElements(s netconf.NftSet) []nftables.SetElement {
	list := make([]nftables.SetElement, 0, len(s.Elements))
	for _, e := range s.Elements {
		var v *expr.Verdict
		if e.Verdict.Kind != "" {
			v = nftVerdict(e.Verdict)
		}
		switch key := e.Key.(type) {
		case concatenated:
			element := nftables.SetElement{Key: key.Bytes()}
			if value, ok := e.Value.(concatenated); ok {
				element.Val = value.Bytes()
			}
			list = append(list, element)
		case netip.Addr:
			list = append(list, nftables.SetElement{Key: key.AsSlice(), VerdictData: v})
		case netip.Prefix:
			list = append(list, nftables.SetElement{Key: key.Addr().AsSlice()})
			if end := addrAfter(key); end.IsValid() {
				list = append(list, nftables.SetElement{Key: end.AsSlice(), IntervalEnd: true})
			}
		case netconf.NftName:
			list = append(list, nftables.SetElement{Key: padLinkName(string(key)), VerdictData: v})
		case netconf.NftMark:
			list = append(list, nftables.SetElement{Key: binaryutil.NativeEndian.PutUint32(uint32(key)), VerdictData: v})
		}
	}
	return list
}

// addrAfter returns the first address behind p, the zero Addr if there is none: an
// interval without end goes on for ever.
func addrAfter(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().AsSlice()
	for i := range b {
		if host := 8*(i+1) - p.Bits(); host > 0 {
			b[i] |= byte(1<<min(host, 8) - 1)
		}
	}
	last, _ := netip.AddrFromSlice(b)
	return last.Next()
}

// padLinkName pads a link's name as the kernel keeps it.
func padLinkName(name string) []byte {
	b := make([]byte, unix.IFNAMSIZ)
	copy(b, name)
	return b
}

func nftVerdict(v netconf.NftVerdict) *expr.Verdict {
	kind := map[string]expr.VerdictKind{"jump": expr.VerdictJump, "goto": expr.VerdictGoto,
		"accept": expr.VerdictAccept, "drop": expr.VerdictDrop, "return": expr.VerdictReturn}[v.Kind]
	return &expr.Verdict{Kind: kind, Chain: v.Chain}
}
