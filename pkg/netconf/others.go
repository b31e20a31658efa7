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

// Last tells whether no rule behind it matters: it is certain here what becomes of the
// packet in the chain, or that something may.
func (r OthersRule) Last() bool {
	switch r.Does {
	case Acts:
		return r.Match != MatchesNone
	case Accepts, Goes, Returns:
		return r.Match == MatchesAll
	}
	return false
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

// Causes returns what keeps packets from the fast path, for people; nothing if
// all that others have lets every packet of an established connection pass and
// does nothing else to it.
func (o Others) Causes() []string {
	var list []string
	walk := newPolicyWalk(o.Chains)
	for i, c := range o.Chains {
		if c.Hook == "" {
			continue
		}
		walk.cause = ""
		if passed := walk.followChain(&o.Chains[i]); walk.cause == "" && !passed && c.Drops {
			walk.cause = fmt.Sprintf("chain %s of %s drops what no rule of it accepts", c.Name, c.Table)
		}
		if walk.cause != "" && !slices.Contains(list, walk.cause) {
			list = append(list, walk.cause)
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

// chainName tells a chain from those of the same name in other tables.
type chainName struct{ table, name string }

// verdict is what is known of a chain: nothing yet, while it is being followed, and
// in the end.
type verdict uint8

const (
	unknown verdict = iota
	open
	acceptsNotAll
	acceptsAll
)

// policyWalk is the way of an established connection's packet through base chains.
type policyWalk struct {
	chains   map[chainName]*OthersChain
	verdicts map[chainName]verdict
	cause    string // the first that was met
}

func newPolicyWalk(chains []OthersChain) policyWalk {
	w := policyWalk{chains: make(map[chainName]*OthersChain, len(chains)), verdicts: map[chainName]verdict{}}
	for i, c := range chains {
		w.chains[chainName{c.Table, c.Name}] = &chains[i]
	}
	return w
}

// followChain returns whether every packet is accepted in the chain for certain. What is
// behind a chain does not depend on the way there, so each is followed once: chains
// that lead to the next one twice would take 2^n steps.
func (w *policyWalk) followChain(c *OthersChain) (accepted bool) {
	name := chainName{c.Table, c.Name}
	if known := w.verdicts[name]; known > open {
		return known == acceptsAll
	}
	w.verdicts[name] = open
	if accepted = w.followRules(c); w.cause != "" {
		delete(w.verdicts, name) // the next base chain that leads here has the same cause
		return false
	}
	w.verdicts[name] = acceptsNotAll
	if accepted {
		w.verdicts[name] = acceptsAll
	}
	return accepted
}

func (w *policyWalk) followRules(chain *OthersChain) (accepted bool) {
	for i, rule := range chain.Rules {
		if w.cause != "" || rule.Match == MatchesNone {
			continue
		}
		end, ends := false, false
		switch rule.Does {
		case Accepts:
			end, ends = true, true
		case Acts:
			w.cause = fmt.Sprintf("rule %d of chain %s of %s could decide about pods' packets", i+1, chain.Name, chain.Table)
		case Returns:
			ends = true
		case Jumps, Goes:
			to := chainName{chain.Table, rule.Target}
			// The kernel allows no circles. They come from reading while rules change.
			if w.chains[to] == nil || w.verdicts[to] == open {
				w.cause = fmt.Sprintf("rule %d of chain %s of %s leads to chain %s, which can't be read", i+1, chain.Name, chain.Table, rule.Target)
				break
			}
			end = w.followChain(w.chains[to])
			ends = end || rule.Does == Goes
		}
		// What only some packets meet leaves the rest to the rules below.
		if ends && rule.Match == MatchesAll {
			return end
		}
	}
	return false
}
