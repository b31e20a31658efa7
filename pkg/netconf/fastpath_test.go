package netconf

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestTheFastPathKnowsWhatTheFirewallKnows(t *testing.T) {
	addr, prefix := netip.MustParseAddr, netip.MustParsePrefix
	s := &ipam.State{
		Settings: ipam.Settings{SNAT: true, MarkMask: 0xff0000, CoolDown: time.Minute,
			VPC: []netip.Prefix{prefix("10.0.0.0/16"), prefix("10.0.1.0/24"), prefix("2001:db8::/32")}},
		ENIs: []eni.Interface{
			{Index: 1, Device: "eth1"},
			{Index: 0, Device: "eth0", V4: eni.Net{Primary: prefix("10.0.0.10/24"), Gateway: addr("10.0.0.1")}},
		},
		Addresses: []eni.Address{
			{Addr: addr("10.0.0.21"), ENI: 1}, {Addr: addr("10.0.0.11"), ENI: 0}, {Addr: addr("2001:db8::1"), ENI: 1},
			{Addr: addr("10.0.0.22"), ENI: 1, State: eni.Releasing},
		},
	}
	want := FastPath{
		Mask: 0xff0000, ENIs: []string{"eth0", "eth1"}, SNAT: true, VPC: []netip.Prefix{prefix("10.0.0.0/16")},
		Pool: []PoolMark{{addr("10.0.0.11"), 0}, {addr("10.0.0.21"), 0x10000}}, Known: 250 * time.Millisecond,
	}
	if diff := cmp.Diff(want, NewFastPath(s), cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})); diff != "" {
		t.Error(diff)
	}
	s.Settings.SNAT, s.Settings.CoolDown = false, 0
	if f := NewFastPath(s); f.SNAT || f.VPC != nil || f.Known != 0 {
		t.Errorf("without SNAT and cooldown: %+v", f)
	}
}

func TestOthersKeepPacketsFromTheFastPath(t *testing.T) {
	base := func(drops bool, rules ...OthersRule) OthersChain {
		return OthersChain{Table: "ip filter", Name: "FORWARD", Hook: "forward", Drops: drops, Rules: rules}
	}
	sub := func(rules ...OthersRule) OthersChain {
		return OthersChain{Table: "ip filter", Name: "SUB", Rules: rules}
	}
	accept, some, drop := OthersRule{Does: Accepts}, OthersRule{Match: MatchesSome, Does: Accepts}, OthersRule{Match: MatchesSome, Does: Acts}
	never, jump := OthersRule{Match: MatchesNone, Does: Acts}, OthersRule{Does: Jumps, Target: "SUB"}
	maybeJump, leads := OthersRule{Match: MatchesSome, Does: Jumps, Target: "SUB"}, OthersRule{Does: Goes, Target: "SUB"}
	back := OthersRule{Does: Returns}
	const acts, drops = "rule 1 of chain FORWARD of ip filter could decide about pods' packets", "chain FORWARD of ip filter drops what no rule of it accepts"
	for _, tt := range []struct {
		name   string
		others Others
		want   []string
	}{
		{"nothing", Others{}, nil},
		{"an empty chain", Others{Chains: []OthersChain{base(false)}}, nil},
		{"a chain that nothing leads to", Others{Chains: []OthersChain{sub(drop)}}, nil},
		{"a rule for new connections", Others{Chains: []OthersChain{base(false, never)}}, nil},
		{"a drop of some", Others{Chains: []OthersChain{base(false, drop)}}, []string{acts}},
		{"a drop behind the acceptance of all", Others{Chains: []OthersChain{base(true, accept, drop)}}, nil},
		{"a drop behind the acceptance of some", Others{Chains: []OthersChain{base(false, some, drop)}},
			[]string{"rule 2 of chain FORWARD of ip filter could decide about pods' packets"}},
		{"a policy", Others{Chains: []OthersChain{base(true, never)}}, []string{drops}},
		{"a policy and acceptance of some", Others{Chains: []OthersChain{base(true, some)}}, []string{drops}},
		{"a chain below accepts all", Others{Chains: []OthersChain{base(true, jump, drop), sub(accept)}}, nil},
		{"some go to a chain that accepts", Others{Chains: []OthersChain{base(true, maybeJump), sub(accept)}}, []string{drops}},
		{"a chain below returns before its drop", Others{Chains: []OthersChain{base(false, jump), sub(back, drop)}}, nil},
		{"what is gone to does not come back", Others{Chains: []OthersChain{base(true, leads, accept), sub(back)}}, []string{drops}},
		{"a chain below drops", Others{Chains: []OthersChain{base(false, maybeJump), sub(drop)}},
			[]string{"rule 1 of chain SUB of ip filter could decide about pods' packets"}},
		{"a chain that can't be read", Others{Chains: []OthersChain{base(false, jump)}},
			[]string{"rule 1 of chain FORWARD of ip filter leads to chain SUB, which can't be read"}},
		{"chains in a circle", Others{Chains: []OthersChain{base(false, jump), sub(jump)}},
			[]string{"rule 1 of chain SUB of ip filter leads to chain SUB, which can't be read"}},
		{"all the rest", Others{Legacy: []string{"filter"}, IPsec: true, IPVS: true, Programs: true},
			[]string{"table filter of iptables-legacy is in use", "there are IPsec policies (ip xfrm policy)", "IPVS serves addresses", "bpf programs hang at hooks of netfilter"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, tt.others.Causes()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Chains that each lead to the next one twice make 2^40 ways, and are read in no time.
func TestDeepChainsAreFollowedOnce(t *testing.T) {
	const levels = 40
	name := func(i int) string { return fmt.Sprint("LEVEL-", i) }
	for _, tt := range []struct {
		name string
		last OthersRule
		want []string
	}{
		{"benign", OthersRule{}, nil},
		{"accepts in the end", OthersRule{Match: MatchesSome, Does: Accepts}, nil},
		{"drops in the end", OthersRule{Does: Acts}, []string{"rule 1 of chain LEVEL-40 of ip filter could decide about pods' packets"}},
		{"leads back to the start", OthersRule{Match: MatchesSome, Does: Jumps, Target: "LEVEL-0"},
			[]string{"rule 1 of chain LEVEL-40 of ip filter leads to chain LEVEL-0, which can't be read"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var o Others
			for i := range levels {
				jump := OthersRule{Match: MatchesSome, Does: Jumps, Target: name(i + 1)}
				o.Chains = append(o.Chains, OthersChain{Table: "ip filter", Name: name(i), Rules: []OthersRule{jump, jump}})
			}
			o.Chains[0].Hook = "forward"
			o.Chains = append(o.Chains, OthersChain{Table: "ip filter", Name: name(levels), Rules: []OthersRule{tt.last}})
			if diff := cmp.Diff(tt.want, o.Causes()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Two base chains that lead to the same cause name it once, and a chain that one
// of them found harmless is harmless to the other.
func TestBaseChainsShareWhatIsBehindThem(t *testing.T) {
	hook := func(name string, targets ...string) OthersChain {
		c := OthersChain{Table: "inet f", Name: name, Hook: name, Drops: true}
		for _, target := range targets {
			c.Rules = append(c.Rules, OthersRule{Does: Jumps, Target: target})
		}
		return c
	}
	accepting := OthersChain{Table: "inet f", Name: "accepting", Rules: []OthersRule{{Does: Accepts}}}
	dropping := OthersChain{Table: "inet f", Name: "dropping", Rules: []OthersRule{{Match: MatchesSome, Does: Acts}}}
	for _, tt := range []struct {
		name   string
		chains []OthersChain
		want   []string
	}{
		{"both accept", []OthersChain{hook("forward", "accepting"), hook("postrouting", "accepting"), accepting}, nil},
		{"both drop", []OthersChain{hook("forward", "dropping"), hook("postrouting", "dropping"), dropping},
			[]string{"rule 1 of chain dropping of inet f could decide about pods' packets"}},
		{"one accepts", []OthersChain{hook("forward", "dropping"), hook("postrouting", "accepting"), hook("ingress", "dropping"), dropping, accepting},
			[]string{"rule 1 of chain dropping of inet f could decide about pods' packets"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Others{Chains: tt.chains}.Causes()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
