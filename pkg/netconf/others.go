package netconf

import (
	"fmt"
	"slices"
)

// Others is what other programs have on the node that could decide about a
// packet which takes the fast path, and would not see it. It is about IPv4.
type Others struct {
	// Chains are the chains of nftables (iptables-nft among them) that a forwarded
	// packet of a known connection passes, and those that they lead to. Chains of
	// type nat are none of them: they see the first packet of a connection only, and
	// that one never takes the fast path.
	Chains []OthersChain
	// Legacy are the tables of the older iptables that are in use, but for nat.
	Legacy   []string
	IPsec    bool // there are policies that a packet may have to be encrypted by
	IPVS     bool // it translates without conntrack's knowledge
	Programs bool // bpf programs hang at netfilter's hooks
}

// OthersChain is a chain. Hook is empty where it is only reached from others.
type OthersChain struct {
	Table string // with its family, like "ip filter"
	Name  string
	Hook  string
	Drops bool // its policy
	Rules []OthersRule
}

// OthersRule is a rule, as far as it matters to a packet that belongs to an
// established connection which nobody translates.
type OthersRule struct {
	Match  OthersMatch
	Does   OthersAction
	Target string // chain of a jump or goto
}

// OthersMatch tells whether a rule applies to such packets.
type OthersMatch uint8

// Some applies to what is not known here: the rest of a packet.
const (
	MatchesAll OthersMatch = iota
	MatchesSome
	MatchesNone
)

// OthersAction is what a rule does.
type OthersAction uint8

// What rules do. Acts is everything that a packet which does not come by would
// miss: to drop, mark, log, queue or change it, or to count on it.
const (
	Nothing OthersAction = iota
	Accepts
	Acts
	Jumps
	Goes
	Returns
)

// Obstacles returns what keeps packets from the fast path, for people; nothing if
// all that others have lets every packet of an established connection pass and
// does nothing else to it.
func (o Others) Obstacles() []string {
	var list []string
	for _, c := range o.Chains {
		if c.Hook == "" {
			continue
		}
		walk := policyWalk{chains: o.Chains, table: c.Table}
		if passed := walk.follow(c, 0); walk.obstacle == "" && !passed && c.Drops {
			walk.obstacle = fmt.Sprintf("chain %s of %s drops what no rule of it accepts", c.Name, c.Table)
		}
		if walk.obstacle != "" && !slices.Contains(list, walk.obstacle) {
			list = append(list, walk.obstacle)
		}
	}
	for _, table := range o.Legacy {
		list = append(list, fmt.Sprintf("table %s of iptables-legacy is in use", table))
	}
	if o.IPsec {
		list = append(list, "there are IPsec policies (ip xfrm policy)")
	}
	if o.IPVS {
		list = append(list, "IPVS serves addresses")
	}
	if o.Programs {
		list = append(list, "bpf programs hang at hooks of netfilter")
	}
	return list
}

// policyWalk is the way of an established connection's packet through a base chain.
type policyWalk struct {
	chains   []OthersChain
	table    string
	obstacle string // the first that was met
}

// deepest is more than the kernel allows chains to lead to each other.
const deepest = 32

// follow returns whether every packet is accepted in the chain for certain.
func (w *policyWalk) follow(c OthersChain, depth int) (accepted bool) {
	for i, r := range c.Rules {
		if w.obstacle != "" || r.Match == MatchesNone {
			continue
		}
		end, ends := false, false
		switch r.Does {
		case Accepts:
			end, ends = true, true
		case Acts:
			w.obstacle = fmt.Sprintf("rule %d of chain %s of %s could decide about pods' packets", i+1, c.Name, c.Table)
		case Returns:
			ends = true
		case Jumps, Goes:
			at := slices.IndexFunc(w.chains, func(o OthersChain) bool { return o.Table == w.table && o.Name == r.Target })
			if at < 0 || depth == deepest {
				w.obstacle = fmt.Sprintf("rule %d of chain %s of %s leads to chain %s, which can't be read", i+1, c.Name, c.Table, r.Target)
				break
			}
			end = w.follow(w.chains[at], depth+1)
			ends = end || r.Does == Goes
		}
		// What only some packets meet leaves the rest to the rules below.
		if ends && r.Match == MatchesAll {
			return end
		}
	}
	return false
}
