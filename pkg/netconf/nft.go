package netconf

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/eni"
)

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
