package fastpath

import (
	"errors"
	"fmt"

	"github.com/enipool/enipool/pkg/netconf"
	"golang.org/x/sys/unix"
)

// chains reads the chains of nftables that matter. A node may have ten thousand others,
// a few per service: of those nothing is kept but what the kernel sends of them.
type chains struct {
	from *nftables
	read []netconf.OthersChain
	done map[chainID]bool
	next []chainID // to read; the base chains first
	base map[chainID]baseChain
}

// chainID names a chain.
type chainID struct {
	family      uint8
	table, name string
}

// baseChain is where a chain hangs and what it does to packets that nothing in it
// decides about.
type baseChain struct {
	hook  string
	drops bool
}

// families are those of tables that see IPv4 packets, by number.
var families = map[uint8]string{unix.NFPROTO_INET: "inet", unix.NFPROTO_IPV4: "ip", unix.NFPROTO_NETDEV: "netdev"}

// readChains reads the base chains that matter and those they lead to. What changes
// meanwhile may be read half as it was and half as it is: compare generations.
func readChains() ([]netconf.OthersChain, error) {
	from, err := openNftables()
	if err != nil {
		return nil, err
	}
	c := chains{from: from, done: map[chainID]bool{}, base: map[chainID]baseChain{}}
	defer func() { c.from.close() }()
	// In this order, so that what keeps packets from the fast path reads the same each time.
	for _, family := range []uint8{unix.NFPROTO_INET, unix.NFPROTO_IPV4, unix.NFPROTO_NETDEV} {
		if err := c.from.ask(unix.NFT_MSG_GETCHAIN, unix.NLM_F_DUMP, family, nil, c.noteBase); err != nil {
			return nil, err
		}
	}
	for len(c.next) > 0 {
		id := c.next[0]
		c.next = c.next[1:]
		if c.done[id] {
			continue
		}
		c.done[id] = true
		if err := c.readRules(id); err != nil {
			return nil, fmt.Errorf("chain %s of %s: %w", id.name, id.tableName(), err)
		}
	}
	return c.read, nil
}

// noteBase notes a base chain that sees forwarded packets of known connections.
func (c *chains) noteBase(message []byte) error {
	id, base, err := parseChain(message)
	ours := id.family == unix.NFPROTO_INET && netconf.IsNftTable(id.table)
	if err == nil && base.hook != "" && !ours {
		c.base[id] = base
		c.next = append(c.next, id)
	}
	return err
}

// parseChain reads a chain. One without a hook that matters has none.
func parseChain(message []byte) (id chainID, base baseChain, err error) {
	id.family = message[0]
	f, err := fields(message[headSize:])
	if err != nil || f[unix.NFTA_CHAIN_HOOK] == nil || trimZeros(f[unix.NFTA_CHAIN_TYPE]) == "nat" {
		return id, base, err
	}
	hook, err := fields(f[unix.NFTA_CHAIN_HOOK])
	id.table, id.name = trimZeros(f[unix.NFTA_CHAIN_TABLE]), trimZeros(f[unix.NFTA_CHAIN_NAME])
	policy := f[unix.NFTA_CHAIN_POLICY]
	base = baseChain{hook: hookName(id.family, decodeNumber(hook[unix.NFTA_HOOK_HOOKNUM])), drops: policy != nil && decodeNumber(policy) == nfDrop}
	return id, base, err
}

// nfDrop is NF_DROP of <linux/netfilter.h>.
const nfDrop = 0

// hookName returns the name of a hook that forwarded packets pass, "" for others. What
// jumps passes no hook egress either.
func hookName(family uint8, hook uint32) string {
	if family == unix.NFPROTO_NETDEV {
		return map[uint32]string{unix.NF_NETDEV_INGRESS: "ingress", unix.NF_NETDEV_EGRESS: "egress"}[hook]
	}
	const ingress = 5 // NF_INET_INGRESS
	return map[uint32]string{unix.NF_INET_PRE_ROUTING: "prerouting", unix.NF_INET_FORWARD: "forward",
		unix.NF_INET_POST_ROUTING: "postrouting", ingress: "ingress"}[hook]
}

// readRules reads what the rules of a chain do to packets of established connections,
// and which chains they lead to, up to the last one that matters.
func (c *chains) readRules(id chainID) error {
	base := c.base[id]
	chain := netconf.OthersChain{Table: id.tableName(), Name: id.name, Hook: base.hook, Drops: base.drops}
	which := append(textAttribute(unix.NFTA_RULE_TABLE, id.table), textAttribute(unix.NFTA_RULE_CHAIN, id.name)...)
	err := c.from.ask(unix.NFT_MSG_GETRULE, unix.NLM_F_DUMP, id.family, which, func(message []byte) error {
		rule, err := parseRule(message[headSize:])
		if err != nil {
			return err
		}
		chain.Rules = append(chain.Rules, rule)
		if rule.Target != "" && rule.Match != netconf.MatchesNone {
			c.next = append(c.next, chainID{id.family, id.table, rule.Target})
		}
		if rule.Last() {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		// The rest of the list still comes by this socket.
		c.from.close()
		c.from, err = openNftables()
	}
	c.read = append(c.read, chain)
	return err
}

func (id chainID) tableName() string { return families[id.family] + " " + id.table }
