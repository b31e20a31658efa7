package firewall

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/google/nftables"
)

// baseChain is a chain of others, or of iptables, that the kernel hands packets to. Its
// rules are read when a packet is led through it.
type baseChain struct {
	table    string // as people name it
	name     string
	iptables string // the table of iptables that it belongs to, "" if it is nobody's
	hook     nftables.ChainHook
	kind     nftables.ChainType
	priority nftables.ChainPriority
	families []eni.Family
	rules    ruleSource
	drops    func() (bool, error) // whether its policy does
	mend     string               // commands by which its owner would let pods pass
}

// The priority of ours by which packets are translated, and that from which a connection
// is known: the kernel's NF_IP_PRI_NAT_SRC and NF_IP_PRI_CONNTRACK.
const (
	priorityOfSNAT      = 100
	priorityOfConntrack = -200
)

// forwardedBy are the hooks that what pods send and get passes, in this order.
func forwardedBy() []nftables.ChainHook {
	return []nftables.ChainHook{*nftables.ChainHookPrerouting, *nftables.ChainHookForward, *nftables.ChainHookPostrouting}
}

// readBaseChains returns the base chains of others at those hooks, in the order in which
// packets pass them.
func readBaseChains(ctx context.Context) ([]baseChain, error) {
	chains, err := nftBaseChains()
	if err != nil {
		return nil, err
	}
	for _, family := range []eni.Family{eni.IPv4, eni.IPv6} {
		legacy, err := legacyBaseChains(ctx, family)
		if err != nil {
			return nil, err
		}
		chains = append(chains, legacy...)
	}
	slices.SortStableFunc(chains, func(a, b baseChain) int {
		return cmp.Or(cmp.Compare(slices.Index(forwardedBy(), a.hook), slices.Index(forwardedBy(), b.hook)), cmp.Compare(a.priority, b.priority))
	})
	return chains, nil
}

// nftBaseChains returns those of nftables, among them those of iptables on nftables.
func nftBaseChains() ([]baseChain, error) {
	c, err := nftConn()
	if err != nil {
		return nil, fmt.Errorf("open nftables: %w", err)
	}
	list, err := c.ListChains()
	if err != nil {
		if noNftables(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("list nftables chains: %w", err)
	}
	var chains []baseChain
	rules := map[nftables.Table]nftRules{}
	for _, base := range list {
		family := base.Table.Family
		if base.Hooknum == nil || base.Priority == nil || !slices.Contains(forwardedBy(), *base.Hooknum) || !isForwardFamily(family) ||
			family == nftables.TableFamilyINet && netconf.IsNftTable(base.Table.Name) {
			continue
		}
		table := nftables.Table{Name: base.Table.Name, Family: family}
		if _, known := rules[table]; !known {
			rules[table] = newNftRules(c, base.Table)
		}
		drops := base.Policy != nil && *base.Policy == nftables.ChainPolicyDrop
		chain := baseChain{table: "nftables table " + familyName(family) + " " + table.Name, name: base.Name, hook: *base.Hooknum, kind: base.Type,
			priority: *base.Priority, rules: rules[table], drops: func() (bool, error) { return drops, nil }, mend: nftMend(base)}
		for _, f := range []eni.Family{eni.IPv4, eni.IPv6} {
			if inFamily(family, f) {
				chain.families = append(chain.families, f)
			}
		}
		// iptables on nftables keeps its tables in the families ip and ip6, one for each, and
		// names the base chains by their hooks.
		if slices.Contains(parentChains(), base.Name) && family != nftables.TableFamilyINet {
			chain.iptables = table.Name
		}
		chains = append(chains, chain)
	}
	return chains, nil
}

// legacyBaseChains returns those of legacy iptables that matter for pods, where it holds
// anything.
func legacyBaseChains(ctx context.Context, family eni.Family) ([]baseChain, error) {
	hooks := forwardedBy()
	want := map[string][]baseChain{
		"mangle": {{name: "PREROUTING", hook: hooks[0], priority: -150}, {name: "FORWARD", hook: hooks[1], priority: -150}, {name: "POSTROUTING", hook: hooks[2], priority: -150}},
		"filter": {{name: "FORWARD", hook: hooks[1]}},
		"nat":    {{name: "POSTROUTING", hook: hooks[2], priority: priorityOfSNAT, kind: nftables.ChainTypeNAT}},
	}
	names, err := legacyTables(family)
	if err != nil || !slices.ContainsFunc(names, func(n string) bool { return want[n] != nil }) {
		return nil, err
	}
	t, err := findLegacy(family)
	if isNotInstalled(err) {
		return nil, nil // nobody can look
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	var chains []baseChain
	for _, table := range sortedKeys(want) {
		if !slices.Contains(names, table) {
			continue
		}
		rules := textRules{list: func(chain string) ([]string, error) { return t.List(table, chain) }, lines: map[string][]string{}}
		for _, c := range want[table] {
			c.table, c.iptables, c.families, c.rules = "legacy "+plainName(family)+" table "+table, table, []eni.Family{family}, rules
			c.kind, c.mend = cmp.Or(c.kind, nftables.ChainTypeFilter), iptMend(t.name, table)
			c.drops = func() (bool, error) { return rules.policyDrops(c.name) }
			chains = append(chains, c)
		}
	}
	return chains, nil
}

// leadsTo returns the chain of enipool, of those whose names begin so, that the base chain
// jumps to, "" if it jumps to none.
func (c baseChain) leadsTo(prefix string) (found string, err error) {
	err = c.rules.each(c.name, &walk{}, func(r ruleView) (bool, error) {
		if r.action == jumps && hasOurPrefix(r.chain, prefix) {
			found = r.chain
		}
		return found == "", nil
	})
	return found, err
}
