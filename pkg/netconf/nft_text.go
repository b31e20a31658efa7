package netconf

import (
	"fmt"
	"strings"

	"github.com/enipool/enipool/pkg/eni"
)

// Nft returns the nftables form in the words of `nft list table` of each table.
func (f Firewall) Nft() string {
	var text strings.Builder
	for _, t := range f.Tables() {
		if len(t.Chains) > 0 {
			text.WriteString(t.String())
		}
	}
	return text.String()
}

// String returns the table in the words of `nft list table`.
func (t NftTable) String() string {
	var blocks []string
	for _, s := range t.Sets {
		blocks = append(blocks, s.String())
	}
	for _, c := range t.Chains {
		blocks = append(blocks, c.String())
	}
	return "table inet " + t.Name + " {\n" + strings.Join(blocks, "\n") + "}\n"
}

// String returns the set in the words of nft.
func (s NftSet) String() string {
	var text strings.Builder
	kind, keys := "set", s.Type
	if s.Verdicts {
		kind, keys = "map", s.Type+" : verdict"
	}
	if s.Data != "" {
		kind, keys = "map", s.Type+" : "+s.Data
	}
	fmt.Fprintf(&text, "\t%s %s {\n\t\ttype %s\n", kind, s.Name, keys)
	if s.Interval {
		text.WriteString("\t\tflags interval\n")
	}
	perLine := map[string]int{"ipv4_addr": 2, "mark": 5}[s.Type]
	for i, e := range s.Elements {
		switch {
		case i == 0:
			text.WriteString("\t\telements = { ")
		case perLine > 0 && i%perLine > 0:
			text.WriteString(", ")
		default:
			text.WriteString(",\n\t\t\t     ")
		}
		text.WriteString(e.String())
	}
	if len(s.Elements) > 0 {
		text.WriteString(" }\n")
	}
	return text.String() + "\t}\n"
}

// String returns the element in the words of nft.
func (e NftElement) String() string {
	switch {
	case e.Value != nil:
		return e.Key.String() + " : " + e.Value.String()
	case e.Verdict.Kind == "":
		return e.Key.String()
	}
	return e.Key.String() + " : " + e.Verdict.String()
}

// String returns the chain in the words of nft.
func (c NftChain) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\tchain %s {\n", c.Name)
	if c.Hook != "" {
		fmt.Fprintf(&b, "\t\ttype %s hook %s priority %s; policy accept;\n", c.Type, c.Hook, c.PriorityName)
	}
	for _, r := range c.Rules {
		fmt.Fprintf(&b, "\t\t%s\n", r)
	}
	return b.String() + "\t}\n"
}

func (r NftRule) statementsText() string {
	words := make([]string, len(r.Statements))
	for i, s := range r.Statements {
		words[i] = s.String()
	}
	return strings.Join(words, " ")
}

// Comment returns the purpose and a hash of the rule's text: kernels differ in
// how they show a rule, but not in how they show its comment, so drift is found
// by comparing comments.
func (r NftRule) Comment() string { return r.Purpose + " #" + shortHash(r.statementsText()) }

// String returns the rule in the words of nft.
func (r NftRule) String() string {
	return fmt.Sprintf("%s comment %q", r.statementsText(), r.Comment())
}

// String returns the name in quotes.
func (n NftName) String() string { return fmt.Sprintf("%q", string(n)) }

// String returns the mark with all its digits.
func (m NftMark) String() string { return fmt.Sprintf("%#08x", uint32(m)) }

// String returns the verdict in the words of nft.
func (v NftVerdict) String() string { return strings.TrimSpace(v.Kind + " " + v.Chain) }

// String returns the match in the words of nft.
func (d NftDevice) String() string {
	if d.Out {
		return fmt.Sprintf("oifname %q", d.Name)
	}
	return fmt.Sprintf("iifname %q", d.Name)
}

// String returns the match in the words of nft.
func (f NftFamily) String() string { return "meta nfproto " + eni.Family(f).String() }

// String returns the match in the words of nft.
func (c NftConn) String() string { return string(c) }

// String returns the match in the words of nft.
func (u NftUnmarked) String() string {
	return fmt.Sprintf("ct mark & %s == %s", NftMark(u.Mask), NftMark(0))
}

// String returns the lookup in the words of nft.
func (l NftLookup) String() string {
	text := string(l.Field)
	if l.Field == NftConnMark || l.Field == NftPacketMark {
		text += " & " + NftMark(l.Mask).String()
	}
	switch {
	case l.Map:
		text += " vmap"
	case l.Not:
		text += " !="
	case l.Field == NftPacketMark:
		text += " =="
	}
	return text + " @" + l.Set
}

// String returns the match in the words of nft.
func (NftSpoofed) String() string { return "fib saddr . iif oif missing" }

// String returns the statement as nft lists it: bits that are set anyway need
// no clearing.
func (m NftSetMark) String() string {
	key := "meta mark"
	if m.Conn {
		key = "ct mark"
	}
	s := key + " set " + key
	if keep := ^m.Mask | m.Mark; keep != ^uint32(0) {
		s += " & " + NftMark(keep).String()
	}
	if m.Mark == 0 {
		return s
	}
	return s + " | " + NftMark(m.Mark).String()
}

// String returns the statement in the words of nft.
func (n NftSNAT) String() string {
	return fmt.Sprintf("snat %s to %s fully-random", ipWord(eni.FamilyOf(n.To)), n.To)
}
