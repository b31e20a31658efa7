package netconf

import (
	"fmt"
	"net/netip"

	"github.com/enipool/enipool/pkg/eni"
)

// Names of our tables and of those of their parts that are always the same.
const (
	NftTableName = "enipool"
	NftPodsName  = "enipool-pods" // see TableOfPods

	nftArrivals, nftReplies, nftOurMarks = "arrivals", "replies", "marks"
	nftSources4, nftSources6             = "source4", "source6"
	nftPool4, nftVPC4                    = "pool4", "vpc4"
	nftOutPrefix, nftInPrefix            = "eni", "in"
)

// NftTable is a whole table of the family inet.
type NftTable struct {
	Name   string
	Sets   []NftSet
	Chains []NftChain
}

// NftSet is a named set or, with Verdicts or Data, a named map.
type NftSet struct {
	Name     string
	Type     string // of the keys: ipv4_addr, ipv6_addr, ifname, mark, or parts with " . " between
	Verdicts bool
	Data     string // type of a map's values that are no verdicts
	Interval bool   // keys are prefixes
	Elements []NftElement
}

// NftElement is an element of a set. Key is a netip.Addr, a netip.Prefix, an
// NftName or an NftMark, as the set's Type and Interval say; key and value of
// concatenations know their own bytes.
type NftElement struct {
	Key     fmt.Stringer
	Verdict NftVerdict
	Value   fmt.Stringer // of a map with Data
}

// NftChain is a chain; one without Hook is only reached from others.
type NftChain struct {
	Name         string
	Type, Hook   string
	Priority     int
	PriorityName string // Priority in the words of nft
	Rules        []NftRule
}

// Translates tells whether the chain, or what it is reached from, gives packets other
// addresses.
func (c NftChain) Translates() bool { return c.Type == "nat" || c.Name == nftPortsChain }

// NftRule is a rule. Its statements are of the types NftDevice, NftFamily,
// NftConn, NftUnmarked, NftLookup, NftSpoofed, NftSetMark, NftSNAT, NftLocal, NftPrefix,
// NftHostPort, NftIsHairpin and NftVerdict.
type NftRule struct {
	Purpose    string // for people
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
	NftNew         NftConn = "ct state new"
	NftEstablished NftConn = "ct state established" // not the errors about it, which are related
	NftReply       NftConn = "ct direction reply"
	NftOriginal    NftConn = "ct direction original"
)

// NftUnmarked matches packets whose connection has none of the bits in its mark.
type NftUnmarked struct{ Mask uint32 }

// NftField is what NftLookup looks up.
type NftField string

// The fields of NftLookup; marks come with a mask.
const (
	NftSource4      NftField = "ip saddr"
	NftDestination4 NftField = "ip daddr"
	NftSource6      NftField = "ip6 saddr"
	NftDestination6 NftField = "ip6 daddr"
	NftArrival      NftField = "iifname"
	NftConnMark     NftField = "ct mark"
	NftPacketMark   NftField = "meta mark"
)

// NftLookup matches a field that is in a set (with Not: that is not), or takes
// the verdict that a map has for it (with Map).
type NftLookup struct {
	Field    NftField
	Mask     uint32 // of marks
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

// Tables returns the nftables form, in the order in which it is to change: what marks
// connections comes after what understands the marks. A table without chains should not
// be there; enipool-replies is left of builds between releases.
func (f Firewall) Tables() []NftTable {
	return []NftTable{f.TableOfPods(), f.Table(), {Name: "enipool-replies"}}
}

// TableOfPods returns the table that leads replies and the connections to host ports.
//
// It is a table of its own because the release before this one, which knows nothing of
// host ports and gives marks other bits, replaces the other table with its own. This
// one, and the rules for its marks, it leaves in place: on a node that is downgraded
// connections go on and host ports stay open.
func (f Firewall) TableOfPods() NftTable {
	t := NftTable{Name: NftPodsName}
	if f.needsMarks() {
		f.addReplies(&t)
	}
	f.addPorts(&t)
	return t
}

// IsNftTable tells whether the table of the family inet is ours.
func IsNftTable(name string) bool { return name == NftTableName || name == NftPodsName }

// Table returns the nftables form but for TableOfPods.
func (f Firewall) Table() NftTable {
	table := NftTable{Name: NftTableName}
	if f.needsMarks() {
		f.addMarks(&table)
	}
	if f.DropSpoofed4 || f.DropSpoofed6 {
		table.Chains = append(table.Chains, NftChain{Name: "spoof", Type: "filter", Hook: "prerouting",
			Priority: -300, PriorityName: "raw", Rules: f.nftSpoof()})
	}
	if f.SNAT.IsValid() {
		pool, vpc := NftSet{Name: nftPool4, Type: "ipv4_addr"}, NftSet{Name: nftVPC4, Type: "ipv4_addr", Interval: true}
		for _, a := range f.Pool {
			_, e := SNATSource(a)
			pool.Elements = append(pool.Elements, e)
		}
		for _, p := range f.VPC {
			vpc.Elements = append(vpc.Elements, NftElement{Key: p})
		}
		table.Sets = append(table.Sets, pool, vpc)
		table.Chains = append(table.Chains, NftChain{Name: "snat4", Type: "nat", Hook: "postrouting",
			Priority: 100, PriorityName: "srcnat", Rules: []NftRule{{"outside the VPC a pod has the node's address", []fmt.Stringer{
				NftDevice{Out: true, Name: f.OutDevice}, NftLookup{Field: NftSource4, Set: nftPool4},
				NftLookup{Field: NftDestination4, Set: nftVPC4, Not: true}, NftSNAT{f.SNAT}}}}})
	}
	return table
}

// SNATSource is the name of the set that an IPv4 address of the pool is in so that it
// leaves the VPC as the node's address, and its element.
func SNATSource(a netip.Addr) (set string, e NftElement) { return nftPool4, NftElement{Key: a} }

// NftHoldsPool tells whether the set of the name holds what SNATSource adds.
func NftHoldsPool(set string) bool { return set == nftPool4 }

// NftHoldsVPC tells whether the set of the name holds what is inside the VPC.
func NftHoldsVPC(set string) bool { return set == nftVPC4 }

func (f Firewall) nftSpoof() []NftRule {
	var rules []NftRule
	for _, e := range f.enisNamedLikePods() {
		rules = append(rules, NftRule{"an ENI, no pod's link", []fmt.Stringer{NftDevice{Name: e.Device}, NftVerdict{Kind: "accept"}}})
	}
	for _, family := range []eni.Family{eni.IPv4, eni.IPv6} {
		if f.dropsSpoofed(family) {
			rules = append(rules, NftRule{"pods send from their own addresses only", []fmt.Stringer{
				NftDevice{Name: VethPrefix + "*"}, NftFamily(family), NftSpoofed{}, NftVerdict{Kind: "drop"}}})
		}
	}
	return rules
}
