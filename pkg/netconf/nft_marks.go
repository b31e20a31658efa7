package netconf

import (
	"cmp"
	"fmt"
	"slices"
)

// addMarks adds what decides on marks. It runs behind every DNAT (priority
// dstnat), or a pod that talks to a service would be judged by the service's
// address. A mark is set in a small chain per ENI and not by a map from address
// to mark, because older kernels can't OR a looked-up value into a mark, and the
// bits of others must survive.
func (f Firewall) addMarks(table *NftTable) {
	arrivals := NftSet{Name: nftArrivals, Type: "ifname", Verdicts: true}
	ours := NftSet{Name: nftOurMarks, Type: "mark"}
	for _, e := range f.ENIs {
		in := f.inChain(e)
		arrivals.Elements = append(arrivals.Elements, NftElement{Key: NftName(e.Device), Verdict: NftVerdict{"jump", in.Name}})
		ours.Elements = append(ours.Elements, NftElement{Key: NftMark(Mark(e.Index, f.Mask))})
		table.Chains = append(table.Chains, f.outChain(e), in)
	}
	sortByMark(ours.Elements)
	table.Sets = append(table.Sets, arrivals, ours)
	// First, because what comes in by an ENI may be of a pod too, whose plugin is another
	// (ipvlan, macvlan) with enipool as its IPAM.
	rules := []NftRule{{"what comes in by an ENI", []fmt.Stringer{NftLookup{Field: NftArrival, Map: true, Set: nftArrivals}}}}
	source4 := NftSet{Name: nftSources4, Type: "ipv4_addr", Verdicts: true}
	source6 := NftSet{Name: nftSources6, Type: "ipv6_addr", Verdicts: true}
	for _, s := range f.Sources {
		if set, e := s.Element(); set == nftSources4 {
			source4.Elements = append(source4.Elements, e)
		} else {
			source6.Elements = append(source6.Elements, e)
		}
	}
	if len(source4.Elements) > 0 {
		table.Sets = append(table.Sets, source4)
		rule := NftRule{"a pod's packets leave by its address's ENI", []fmt.Stringer{NftLookup{Field: NftSource4, Map: true, Set: nftSources4}}}
		if f.SNAT.IsValid() {
			// What gets the node's address leaves by the node's ENI.
			rule.Statements = slices.Insert(rule.Statements, 0, fmt.Stringer(NftLookup{Field: NftDestination4, Set: nftVPC4}))
		}
		rules = append(rules, rule)
	}
	if len(source6.Elements) > 0 {
		table.Sets = append(table.Sets, source6)
		rules = append(rules, NftRule{"a pod's packets leave by its address's ENI", []fmt.Stringer{NftLookup{Field: NftSource6, Map: true, Set: nftSources6}}})
	}
	// Only a value that would choose an ENI is cleared: aws-vpc-cni, whose pods may
	// be draining on this node, has one of the eight bits for purposes of its own.
	rules = append(rules, NftRule{"an ENI is chosen here and by nobody else", []fmt.Stringer{
		NftLookup{Field: NftPacketMark, Mask: f.Mask, Set: nftOurMarks}, NftSetMark{Mask: f.Mask}}})
	table.Chains = append(table.Chains, NftChain{Name: "marks", Type: "filter", Hook: "prerouting",
		Priority: NftMarksPriority, PriorityName: "dstnat + 10", Rules: rules})
}

// Priorities of the chains that mark packets, at hook prerouting: of what pods send, and of
// the answers of connections that came in by an ENI.
const (
	NftMarksPriority   = -90
	NftRepliesPriority = -89
)

// Element returns the element of the routing map that sends what the address sends
// out through its ENI, and the map's name.
func (s Source) Element() (set string, e NftElement) {
	set = nftSources6
	if s.Addr.Is4() {
		set = nftSources4
	}
	return set, NftElement{Key: s.Addr, Verdict: NftVerdict{"goto", fmt.Sprint(nftOutPrefix, s.ENI)}}
}

// inChain has the connection of what came in by the ENI remember it.
func (f Firewall) inChain(e FirewallENI) NftChain {
	remember := NftSetMark{Conn: true, Mask: f.Mask, Mark: Mark(e.Index, f.Mask)}
	return NftChain{Name: fmt.Sprint(nftInPrefix, e.Index), Rules: []NftRule{
		{"a connection remembers that it came in by " + e.Device, []fmt.Stringer{NftNew, remember}},
		// Its first packet may have come while these rules were gone: somebody flushed them,
		// or enipool was not there yet. To the kernel a lost answer is an answer too.
		{"one that began without these rules, too", []fmt.Stringer{NftOriginal, NftUnmarked{f.Mask}, remember}}}}
}

// outChain sets the mark that sends a packet out through the ENI.
func (f Firewall) outChain(e FirewallENI) NftChain {
	return NftChain{Name: fmt.Sprint(nftOutPrefix, e.Index), Rules: []NftRule{
		{"leave by " + e.Device, []fmt.Stringer{NftSetMark{Mask: f.Mask, Mark: Mark(e.Index, f.Mask)}}}}}
}

func sortByMark(elements []NftElement) {
	slices.SortFunc(elements, func(a, b NftElement) int { return cmp.Compare(a.Key.(NftMark), b.Key.(NftMark)) })
}

// addReplies adds what sends replies out through the ENI that their connection came
// in by: those of pods behind all other decisions on marks, and those of the node's
// own sockets, which no prerouting chain sees.
func (f Firewall) addReplies(table *NftTable) {
	var pods, sockets []NftRule
	// A mark of f.Mask is the latest decision, so it comes first.
	for i, mask := range append([]uint32{f.Mask}, f.OldMasks...) {
		replies, reason := NftSet{Name: nftReplies, Type: "mark", Verdicts: true}, "replies leave by the ENI that their connection came in by"
		if i > 0 {
			replies.Name, reason = fmt.Sprintf("%s-%08x", nftReplies, mask), "those of connections that still have a mark of before, too"
		}
		for _, e := range f.ENIs {
			replies.Elements = append(replies.Elements, NftElement{Key: NftMark(Mark(e.Index, mask)), Verdict: NftVerdict{"goto", fmt.Sprint(nftOutPrefix, e.Index)}})
		}
		sortByMark(replies.Elements)
		table.Sets = append(table.Sets, replies)
		reply := []fmt.Stringer{NftReply, NftLookup{Field: NftConnMark, Mask: mask, Map: true, Set: replies.Name}}
		pods = append(pods, NftRule{reason, reply})
		// What the node itself has to say about a pod's connection, such as that a
		// packet is too long, carries the address of ENI 0, and the VPC drops that
		// where it leaves by another one.
		sockets = append(sockets, NftRule{reason, append([]fmt.Stringer{NftEstablished}, reply...)})
	}
	for _, e := range f.ENIs {
		table.Chains = append(table.Chains, f.outChain(e))
	}
	table.Chains = append(table.Chains,
		NftChain{Name: "pods", Type: "filter", Hook: "prerouting", Priority: NftRepliesPriority, PriorityName: "-89", Rules: pods},
		NftChain{Name: "sockets", Type: "route", Hook: "output", Priority: -150, PriorityName: "mangle", Rules: sockets})
}
