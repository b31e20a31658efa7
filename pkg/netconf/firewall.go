package netconf

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// Firewall is what the packet filter should hold: marks that send a packet out
// through its ENI, the node's address for what leaves the VPC, and no foreign
// source addresses from pods. Nft and Iptables say it in the filter's words.
type Firewall struct {
	Backend   ipam.Firewall
	Mask      uint32         // our bits of packet and connection marks
	ENIs      []FirewallENI  // by index
	Sources   []Source       // routing map only: addresses of ENIs other than 0, sorted
	Pool      []netip.Addr   // IPv4 addresses that leave the VPC as SNAT, sorted; SNAT on only
	Subnets   []netip.Prefix // IPv4 subnets of the ENIs: iptables matches on them, so that nothing is per pod
	VPC       []netip.Prefix // IPv4 destinations that see the pod's own address, sorted, none inside another
	SNAT      netip.Addr     // ENI 0's primary IPv4; invalid: SNAT is off
	OutDevice string         // ENI 0's device
	// DropSpoofed4 and DropSpoofed6 ask for reverse path checks on pod links.
	// There is one for IPv6 if and only if the book has IPv6 at all.
	DropSpoofed4, DropSpoofed6 bool
}

// FirewallENI is an ENI as the firewall sees it.
type FirewallENI struct {
	Index  int
	Device string
}

// Source sends what Addr sends out through the ENI with the index.
type Source struct {
	Addr netip.Addr
	ENI  int
}

// NewFirewall returns what the packet filter should hold for the book. With
// looseRPFilter (net.ipv4.conf.all.rp_filter is 2) the strict rp_filter of a
// pod's own link has no effect; the firewall then does its work. Pods without
// IPv4 have no such setting on their link either. Addresses with a damaged
// record are left out: their ENI is not known.
func NewFirewall(s *ipam.State, looseRPFilter bool) Firewall {
	f := Firewall{
		Backend: s.Settings.Firewall, Mask: s.Settings.MarkMask,
		DropSpoofed4: looseRPFilter || !slices.Contains(s.Settings.Families, eni.IPv4),
		DropSpoofed6: hasIPv6(s),
	}
	for _, nic := range s.ENIs {
		f.ENIs = append(f.ENIs, FirewallENI{nic.Index, nic.Device})
		if nic.Index == 0 {
			f.OutDevice = nic.Device
			if s.Settings.SNAT && nic.V4.IsValid() {
				f.SNAT = nic.V4.Primary.Addr()
			}
		}
	}
	slices.SortFunc(f.ENIs, func(a, b FirewallENI) int { return a.Index - b.Index })
	for _, a := range s.Addresses {
		if s.Settings.Routing == ipam.Map && a.ENI > 0 {
			f.Sources = append(f.Sources, Source{a.Addr, a.ENI})
		}
		if f.SNAT.IsValid() && a.Addr.Is4() {
			f.Pool = append(f.Pool, a.Addr)
		}
	}
	slices.SortFunc(f.Sources, func(a, b Source) int { return a.Addr.Compare(b.Addr) })
	slices.SortFunc(f.Pool, netip.Addr.Compare)
	if f.SNAT.IsValid() {
		f.Subnets, f.VPC = subnets4(s.ENIs), merge4(s.Settings.VPC)
	}
	return f
}

func subnets4(nics []eni.Interface) []netip.Prefix {
	var nets []netip.Prefix
	for _, nic := range nics {
		if nic.V4.IsValid() {
			nets = append(nets, nic.V4.Primary)
		}
	}
	return merge4(nets)
}

// merge4 returns the IPv4 prefixes sorted and without those inside another: an
// nftables interval set refuses overlaps.
func merge4(prefixes []netip.Prefix) []netip.Prefix {
	var sorted, kept []netip.Prefix
	for _, p := range prefixes {
		if p.Addr().Is4() {
			sorted = append(sorted, p.Masked())
		}
	}
	slices.SortFunc(sorted, func(a, b netip.Prefix) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), a.Bits()-b.Bits())
	})
	for _, p := range sorted {
		if n := len(kept); n == 0 || !kept[n-1].Overlaps(p) {
			kept = append(kept, p)
		}
	}
	return kept
}

// marks tells whether packets need marks: with one ENI there is only one way
// out. With more, every connection from outside has its replies leave by the ENI
// it came in by, whatever the address of the pod and wherever they go: a
// NodePort's connection comes in by any ENI; one straight to a pod may come from
// outside the VPC, and what goes there would leave by ENI 0 otherwise.
func (f Firewall) marks() bool { return len(f.ENIs) > 1 }

// uplinks returns the ENIs whose device is named like a pod's link.
func (f Firewall) uplinks() []FirewallENI {
	return slices.DeleteFunc(slices.Clone(f.ENIs), func(e FirewallENI) bool { return !strings.HasPrefix(e.Device, VethPrefix) })
}

// IptChainPrefix begins the name of every iptables chain of ours.
const IptChainPrefix = "ENIPOOL-"

// IptChain is a chain of iptables or ip6tables and the one jump to it. Its name
// carries a hash of its rules, so a chain with this name never needs a change.
type IptChain struct {
	Table, Parent string
	First         bool // the jump stands before all others, not behind them
	Name          string
	Rules         []string // as `iptables -S` prints them, without "-A NAME "
}

// Iptables returns the chains of the family. They hold nothing per pod.
func (f Firewall) Iptables(family eni.Family) []IptChain {
	if family == eni.IPv6 && !f.DropSpoofed6 {
		return nil
	}
	var chains []IptChain
	add := func(table, parent, name string, rules []string) {
		if len(rules) == 0 {
			return
		}
		// Others end mangle and raw early for connections they know, so ours
		// come first there. In nat the rules of others may be more special.
		chains = append(chains, IptChain{Table: table, Parent: parent, First: table != "nat",
			Name: IptChainPrefix + name + "-" + shortHash(strings.Join(rules, "\n")), Rules: rules})
	}
	add("mangle", "PREROUTING", "MARK", f.iptMarks())
	if family == eni.IPv4 {
		add("nat", "POSTROUTING", "SNAT", f.iptSNAT())
	}
	if family == eni.IPv6 || f.DropSpoofed4 {
		add("raw", "PREROUTING", "SPOOF", f.iptSpoof())
	}
	return chains
}

func (f Firewall) iptMarks() []string {
	if !f.marks() {
		return nil
	}
	var rules []string
	for _, e := range f.ENIs {
		rules = append(rules, fmt.Sprintf("-i %s -m conntrack --ctstate NEW -j CONNMARK --set-xmark %#x/%#x",
			e.Device, Mark(e.Index, f.Mask), f.Mask))
	}
	return append(rules, fmt.Sprintf("-m conntrack --ctdir REPLY -m connmark ! --mark 0x0/%#[1]x -j CONNMARK --restore-mark --nfmask %#[1]x --ctmask %#[1]x", f.Mask))
}

func (f Firewall) iptSNAT() []string {
	if !f.SNAT.IsValid() {
		return nil
	}
	rules := []string{fmt.Sprintf("! -o %s -j RETURN", f.OutDevice), fmt.Sprintf("-s %s/32 -j RETURN", f.SNAT)}
	for _, cidr := range f.VPC {
		rules = append(rules, strings.TrimSpace(iptPrefix("-d", cidr)+" -j RETURN"))
	}
	for _, subnet := range f.Subnets {
		rules = append(rules, strings.TrimSpace(iptPrefix("-s", subnet)+fmt.Sprintf(" -j SNAT --to-source %s --random-fully", f.SNAT)))
	}
	return rules
}

// iptPrefix leaves a match on everything out, as iptables does.
func iptPrefix(flag string, p netip.Prefix) string {
	if p.Bits() == 0 {
		return ""
	}
	return flag + " " + p.String()
}

func (f Firewall) iptSpoof() []string {
	var rules []string
	for _, e := range f.uplinks() {
		rules = append(rules, fmt.Sprintf("-i %s -j RETURN", e.Device))
	}
	return append(rules, fmt.Sprintf("-i %s+ -m rpfilter --invert -j DROP", VethPrefix))
}

// Lines returns the chain and its jump in the words of `iptables -S`.
func (c IptChain) Lines() []string {
	lines := []string{"-N " + c.Name, "-A " + c.Parent + " -j " + c.Name}
	for _, r := range c.Rules {
		lines = append(lines, "-A "+c.Name+" "+r)
	}
	return lines
}

func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:4])
}

// Names of the table and of those of its parts that are always the same.
const (
	NftTableName = "enipool"

	nftArrivals, nftReplies   = "arrivals", "replies"
	nftSources4, nftSources6  = "source4", "source6"
	nftPool4, nftVPC4         = "pool4", "vpc4"
	nftOutPrefix, nftInPrefix = "eni", "in"
)

// NftTable is the whole table `inet enipool`.
type NftTable struct {
	Sets   []NftSet
	Chains []NftChain
}

// NftSet is a named set or, with Verdicts, a named map to verdicts.
type NftSet struct {
	Name     string
	Type     string // of the keys: ipv4_addr, ipv6_addr, ifname or mark
	Verdicts bool
	Interval bool // keys are prefixes
	Elements []NftElement
}

// NftElement is an element of a set. Key is a netip.Addr, a netip.Prefix, an
// NftName or an NftMark, as the set's Type and Interval say.
type NftElement struct {
	Key     fmt.Stringer
	Verdict NftVerdict
}

// NftChain is a chain; one without Hook is only reached from others.
type NftChain struct {
	Name         string
	Type, Hook   string
	Priority     int
	PriorityName string // Priority in the words of nft
	Rules        []NftRule
}

// NftRule is a rule. Its statements are of the types NftDevice, NftFamily,
// NftConn, NftLookup, NftSpoofed, NftSetMark, NftSNAT and NftVerdict.
type NftRule struct {
	Reason     string // for people
	Statements []fmt.Stringer
}

// NftName is the name of a link.
type NftName string

// NftMark is a packet or connection mark.
type NftMark uint32

// NftVerdict ends a rule; Chain is for jump and goto.
type NftVerdict struct{ Kind, Chain string }

// NftDevice matches the link a packet came in on or, with Out, leaves by. A
// name that ends in * stands for all that begin so.
type NftDevice struct {
	Out  bool
	Name string
}

// NftFamily matches packets of the family.
type NftFamily eni.Family

// NftConn matches on the packet's connection.
type NftConn string

// What NftConn can match.
const (
	NftNew   NftConn = "ct state new"
	NftReply NftConn = "ct direction reply"
)

// NftField is what NftLookup looks up.
type NftField string

// The fields of NftLookup; the mark of the connection comes with a mask.
const (
	NftSource4      NftField = "ip saddr"
	NftDestination4 NftField = "ip daddr"
	NftSource6      NftField = "ip6 saddr"
	NftArrival      NftField = "iifname"
	NftConnMark     NftField = "ct mark"
)

// NftLookup matches a field that is in a set (with Not: that is not), or takes
// the verdict that a map has for it (with Map).
type NftLookup struct {
	Field    NftField
	Mask     uint32 // of NftConnMark
	Map, Not bool
	Set      string
}

// NftSpoofed matches packets whose source is not routed to where they came from.
type NftSpoofed struct{}

// NftSetMark sets the bits of Mask in the mark of the packet or, with Conn, of
// the connection to Mark, and leaves the other bits alone.
type NftSetMark struct {
	Conn       bool
	Mask, Mark uint32
}

// NftSNAT gives the packet's connection another source address.
type NftSNAT struct{ To netip.Addr }

// Table returns the whole of the nftables form.
func (f Firewall) Table() NftTable {
	var t NftTable
	if f.marks() {
		f.addMarks(&t)
	}
	if f.DropSpoofed4 || f.DropSpoofed6 {
		t.Chains = append(t.Chains, NftChain{Name: "spoof", Type: "filter", Hook: "prerouting",
			Priority: -300, PriorityName: "raw", Rules: f.nftSpoof()})
	}
	if f.SNAT.IsValid() {
		pool, vpc := NftSet{Name: nftPool4, Type: "ipv4_addr"}, NftSet{Name: nftVPC4, Type: "ipv4_addr", Interval: true}
		for _, a := range f.Pool {
			pool.Elements = append(pool.Elements, NftElement{Key: a})
		}
		for _, p := range f.VPC {
			vpc.Elements = append(vpc.Elements, NftElement{Key: p})
		}
		t.Sets = append(t.Sets, pool, vpc)
		t.Chains = append(t.Chains, NftChain{Name: "snat4", Type: "nat", Hook: "postrouting",
			Priority: 100, PriorityName: "srcnat", Rules: []NftRule{{"outside the VPC a pod has the node's address", []fmt.Stringer{
				NftDevice{Out: true, Name: f.OutDevice}, NftLookup{Field: NftSource4, Set: nftPool4},
				NftLookup{Field: NftDestination4, Set: nftVPC4, Not: true}, NftSNAT{f.SNAT}}}}})
	}
	return t
}

// addMarks adds what decides on marks. It runs behind every DNAT (priority
// dstnat), or a pod that talks to a service would be judged by the service's
// address. A mark is set in a small chain per ENI and not by a map from address
// to mark, because older kernels can't OR a looked-up value into a mark, and the
// bits of others must survive.
func (f Firewall) addMarks(t *NftTable) {
	arrivals := NftSet{Name: nftArrivals, Type: "ifname", Verdicts: true}
	replies := NftSet{Name: nftReplies, Type: "mark", Verdicts: true}
	for _, e := range f.ENIs {
		out, in, mark := fmt.Sprint(nftOutPrefix, e.Index), fmt.Sprint(nftInPrefix, e.Index), Mark(e.Index, f.Mask)
		arrivals.Elements = append(arrivals.Elements, NftElement{NftName(e.Device), NftVerdict{"jump", in}})
		replies.Elements = append(replies.Elements, NftElement{NftMark(mark), NftVerdict{"goto", out}})
		t.Chains = append(t.Chains,
			NftChain{Name: out, Rules: []NftRule{{"leave by " + e.Device, []fmt.Stringer{NftSetMark{Mask: f.Mask, Mark: mark}}}}},
			NftChain{Name: in, Rules: []NftRule{{"came in by " + e.Device, []fmt.Stringer{NftSetMark{Conn: true, Mask: f.Mask, Mark: mark}}}}})
	}
	slices.SortFunc(replies.Elements, func(a, b NftElement) int { return cmp.Compare(a.Key.(NftMark), b.Key.(NftMark)) })
	t.Sets = append(t.Sets, arrivals, replies)
	rules := []NftRule{
		{"a connection remembers the ENI it came in by", []fmt.Stringer{NftNew, NftLookup{Field: NftArrival, Map: true, Set: nftArrivals}}},
		{"its replies leave by that ENI", []fmt.Stringer{NftReply, NftLookup{Field: NftConnMark, Mask: f.Mask, Map: true, Set: nftReplies}}},
	}
	source4 := NftSet{Name: nftSources4, Type: "ipv4_addr", Verdicts: true}
	source6 := NftSet{Name: nftSources6, Type: "ipv6_addr", Verdicts: true}
	for _, s := range f.Sources {
		e := NftElement{s.Addr, NftVerdict{"goto", fmt.Sprint(nftOutPrefix, s.ENI)}}
		if s.Addr.Is4() {
			source4.Elements = append(source4.Elements, e)
		} else {
			source6.Elements = append(source6.Elements, e)
		}
	}
	if len(source4.Elements) > 0 {
		t.Sets = append(t.Sets, source4)
		rule := NftRule{"a pod's packets leave by its address's ENI", []fmt.Stringer{NftLookup{Field: NftSource4, Map: true, Set: nftSources4}}}
		if f.SNAT.IsValid() {
			// What gets the node's address leaves by the node's ENI.
			rule.Statements = slices.Insert(rule.Statements, 0, fmt.Stringer(NftLookup{Field: NftDestination4, Set: nftVPC4}))
		}
		rules = append(rules, rule)
	}
	if len(source6.Elements) > 0 {
		t.Sets = append(t.Sets, source6)
		rules = append(rules, NftRule{"a pod's packets leave by its address's ENI", []fmt.Stringer{NftLookup{Field: NftSource6, Map: true, Set: nftSources6}}})
	}
	t.Chains = append(t.Chains, NftChain{Name: "marks", Type: "filter", Hook: "prerouting",
		Priority: -90, PriorityName: "dstnat + 10", Rules: rules})
}

func (f Firewall) nftSpoof() []NftRule {
	var rules []NftRule
	for _, e := range f.uplinks() {
		rules = append(rules, NftRule{"an ENI, no pod's link", []fmt.Stringer{NftDevice{Name: e.Device}, NftVerdict{Kind: "accept"}}})
	}
	statements := []fmt.Stringer{NftDevice{Name: VethPrefix + "*"}}
	switch {
	case !f.DropSpoofed4:
		statements = append(statements, NftFamily(eni.IPv6))
	case !f.DropSpoofed6:
		statements = append(statements, NftFamily(eni.IPv4))
	}
	return append(rules, NftRule{"pods send from their own addresses only", append(statements, NftSpoofed{}, NftVerdict{Kind: "drop"})})
}

// Nft returns the nftables form in the words of `nft list table inet enipool`.
func (f Firewall) Nft() string { return f.Table().String() }

// String returns the table in the words of `nft list table`.
func (t NftTable) String() string {
	var blocks []string
	for _, s := range t.Sets {
		blocks = append(blocks, s.String())
	}
	for _, c := range t.Chains {
		blocks = append(blocks, c.String())
	}
	return "table inet " + NftTableName + " {\n" + strings.Join(blocks, "\n") + "}\n"
}

// String returns the set in the words of nft.
func (s NftSet) String() string {
	var b strings.Builder
	kind, keys := "set", s.Type
	if s.Verdicts {
		kind, keys = "map", s.Type+" : verdict"
	}
	fmt.Fprintf(&b, "\t%s %s {\n\t\ttype %s\n", kind, s.Name, keys)
	if s.Interval {
		b.WriteString("\t\tflags interval\n")
	}
	perLine := map[string]int{"ipv4_addr": 2, "mark": 5}[s.Type]
	for i, e := range s.Elements {
		switch {
		case i == 0:
			b.WriteString("\t\telements = { ")
		case perLine > 0 && i%perLine > 0:
			b.WriteString(", ")
		default:
			b.WriteString(",\n\t\t\t     ")
		}
		b.WriteString(e.String())
	}
	if len(s.Elements) > 0 {
		b.WriteString(" }\n")
	}
	return b.String() + "\t}\n"
}

// String returns the element in the words of nft.
func (e NftElement) String() string {
	if e.Verdict.Kind == "" {
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

func (r NftRule) text() string {
	words := make([]string, len(r.Statements))
	for i, s := range r.Statements {
		words[i] = s.String()
	}
	return strings.Join(words, " ")
}

// Comment returns the reason and a hash of the rule's text: kernels differ in
// how they show a rule, but not in how they show its comment, so drift is found
// by comparing comments.
func (r NftRule) Comment() string { return r.Reason + " #" + shortHash(r.text()) }

// String returns the rule in the words of nft.
func (r NftRule) String() string { return fmt.Sprintf("%s comment %q", r.text(), r.Comment()) }

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

// String returns the lookup in the words of nft.
func (l NftLookup) String() string {
	s := string(l.Field)
	if l.Field == NftConnMark {
		s += " & " + NftMark(l.Mask).String()
	}
	switch {
	case l.Map:
		s += " vmap"
	case l.Not:
		s += " !="
	}
	return s + " @" + l.Set
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
	return s + " | " + NftMark(m.Mark).String()
}

// String returns the statement in the words of nft.
func (n NftSNAT) String() string { return fmt.Sprintf("snat ip to %s fully-random", n.To) }
