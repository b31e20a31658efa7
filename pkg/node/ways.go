package node

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/host/firewall"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
)

// waysOf returns the ways that packets of pods of each ENI and family take, by the node state.
// Whether they are let pass is asked of some pods, all else of the first.
func waysOf(s *ipam.State, links []string, now time.Duration) firewall.Ways {
	w := firewall.Ways{Backend: s.Settings.Firewall}
	for _, nic := range s.ENIs {
		for _, f := range []eni.Family{eni.IPv4, eni.IPv6} {
			for i, a := range settledPods(s, nic.Index, f, links, now) {
				p := podOfENI{nic, a.Addr, linkOf(a)}
				w.Forwarded = append(w.Forwarded, p.forwarded()...)
				if i == 0 {
					w.Marked = append(w.Marked, p.marked(s)...)
					w.Leaving = append(w.Leaving, p.leaving(s)...)
				}
			}
		}
	}
	// A chain is reported once, for the first flow that it touches: what pods send says most.
	slices.SortStableFunc(w.Marked, func(a, b firewall.Marked) int { return int(a.Way) - int(b.Way) })
	return w
}

// podOfENI is a pod of a family on an ENI.
type podOfENI struct {
	nic  eni.Interface
	addr netip.Addr
	link string // "": a pod to come
}

// forwarded returns what the pod sends and gets.
func (p podOfENI) forwarded() []firewall.Flow {
	flows := firewall.PodFlows(eni.FamilyOf(p.addr), p.link, p.nic.Device)
	flows[0].Src, flows[1].Dst = p.addr, p.addr
	return flows
}

// marked returns the flows whose marks choose an ENI; with one ENI there are none.
func (p podOfENI) marked(s *ipam.State) []firewall.Marked {
	if len(s.ENIs) < 2 {
		return nil
	}
	flows := p.forwarded()
	for i := range flows {
		flows[i].Mark, flows[i].Mask = netconf.Mark(p.nic.Index, s.Settings.MarkMask), s.Settings.MarkMask
	}
	sent, arriving, answered := flows[0], flows[1], flows[0]
	arriving.What = "connections that come in by " + p.nic.Device
	answered.What, answered.Reply = "what pods answer", true
	list := []firewall.Marked{{Flow: arriving, Way: firewall.Arriving}, {Flow: answered, Way: firewall.Answered}}
	if s.Settings.Routing == ipam.Map && p.nic.Index > 0 {
		sent.Out = "" // that is what the mark is for
		list = slices.Insert(list, 0, firewall.Marked{Flow: sent, Way: firewall.Sent})
	}
	return list
}

// leastOfVPC is the shortest prefix that is taken for a VPC's. A shorter one says that pods keep
// their addresses everywhere, and what others translate there is meant.
const leastOfVPC = 8

// leaving returns what the pod sends within the VPC, as itself, and outside it.
func (p podOfENI) leaving(s *ipam.State) []firewall.Destination {
	family := eni.FamilyOf(p.addr)
	vpc := s.Settings.VPC
	if family == eni.IPv6 {
		vpc = p.nic.Ranges()
	}
	var list []firewall.Destination
	for _, net := range vpc {
		if !net.IsValid() || eni.FamilyOf(net.Addr()) != family || net.Bits() < leastOfVPC {
			continue
		}
		for _, to := range someIn(net) {
			f := p.forwarded()[0]
			f.What, f.Dst = fmt.Sprintf("what pods send within the VPC (as to %s)", to), to
			list = append(list, firewall.Destination{Flows: []firewall.Flow{f}})
		}
	}
	return append(list, p.outside(s)...)
}

// outside returns what leaves the VPC as ENI 0's address.
func (p podOfENI) outside(s *ipam.State) []firewall.Destination {
	at := slices.IndexFunc(s.ENIs, func(nic eni.Interface) bool { return nic.Index == 0 && nic.V4.IsValid() })
	if !s.Settings.SNAT || at < 0 || !p.addr.Is4() {
		return nil
	}
	d := firewall.Destination{SNAT: s.ENIs[at].V4.Primary.Addr()}
	// Any two that are far from each other and in no list of addresses for special use.
	for _, to := range []netip.Addr{netip.AddrFrom4([4]byte{11, 22, 33, 44}), netip.AddrFrom4([4]byte{185, 22, 33, 44})} {
		if !slices.ContainsFunc(s.Settings.VPC, func(net netip.Prefix) bool { return net.Contains(to) }) {
			f := p.forwarded()[0]
			f.What, f.Out, f.Dst = "what pods send out of the VPC", s.ENIs[at].Device, to
			d.Flows = append(d.Flows, f)
		}
	}
	if len(d.Flows) == 0 {
		return nil
	}
	return []firewall.Destination{d}
}

// someIn returns an address near each end of the prefix, but none of those that clouds
// keep for themselves, for which others may have rules.
func someIn(net netip.Prefix) []netip.Addr {
	const far = 13
	low, high := net.Masked().Addr(), lastOf(net)
	for range far {
		low, high = low.Next(), high.Prev()
	}
	if !net.Contains(low) || !net.Contains(high) {
		return []netip.Addr{net.Masked().Addr()}
	}
	return []netip.Addr{low, high}
}

func lastOf(net netip.Prefix) netip.Addr {
	b := net.Masked().Addr().AsSlice()
	for bit := net.Bits(); bit < 8*len(b); bit++ {
		b[bit/8] |= 0x80 >> (bit % 8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}
