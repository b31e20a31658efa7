package hostport

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/host/nfset"
	"github.com/enipool/enipool/pkg/iptexec"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/podrecord"
	"golang.org/x/sys/unix"
)

// In iptables the ports of all pods are written from the records each time, in one process
// per family. So there is nothing to find out and nothing to be removed, and a pod that
// failed half-way leaves no rule behind.

// restoreIptables makes iptables hold what the records say, for the families of the record,
// and keeps what it holds for pods whose records can't be read or are lost.
func (n Node) restoreIptables(record podrecord.Record) error {
	all, err := n.Records.All() // in the order in which the agent wants their rules
	if err != nil && !podrecord.Unreadable(err) {
		return err
	}
	others := slices.DeleteFunc(slices.Clone(all), func(o podrecord.Record) bool { return o.Key == record.Key })
	kept, rest, err := n.findUnrecorded(record, others)
	if err != nil {
		return fmt.Errorf("change host ports: %w: %w", ErrNotReady, err)
	}
	first, rest, err := n.refuseKept(record, rest)
	if err != nil {
		return err
	}
	if len(first) > 0 {
		if err := n.queueBehind(record); err != nil {
			return err
		}
	}
	return n.writeChains(slices.Concat(kept, first, Wanted(all), rest), record.Addrs)
}

// writeChains writes the chains of the families of the addresses. Of two that want the same
// port the first one gets it.
func (n Node) writeChains(wanted []netconf.PodPorts, addrs []netip.Addr) error {
	for _, family := range []eni.Family{eni.IPv4, eni.IPv6} {
		if !slices.ContainsFunc(addrs, func(a netip.Addr) bool { return eni.FamilyOf(a) == family }) {
			continue
		}
		rules := netconf.IptRestore(netconf.IptPorts(family, wanted, n.primaryAddr(family)))
		if err := iptexec.Restore(family, rules, n.Lock.FD()); err != nil {
			return fmt.Errorf("change host ports: %w: %w", ErrNotReady, err)
		}
	}
	return nil
}

func (n Node) primaryAddr(family eni.Family) netip.Addr {
	if family == eni.IPv6 {
		return n.Node6
	}
	return n.Node4
}

// withdrawRules takes the record's rules away: what is left is the others'. Where it fails, only
// chains that are provably gone say that the rules are gone with them.
func (n Node) withdrawRules(r podrecord.Record, others []podrecord.Record) error {
	first, rest, err := n.findUnrecorded(r, others)
	if err == nil {
		err = n.writeChains(slices.Concat(first, Wanted(others), rest), r.Addrs)
	}
	if err == nil {
		return nil
	}
	for _, a := range r.Addrs {
		if !chainGone(eni.FamilyOf(a)) {
			return fmt.Errorf("close host ports: %w", err)
		}
	}
	return nil
}

// chainGone tells whether iptables provably has no chain of host ports. The kernel is asked:
// a program that can't be run, or one that works on other tables, proves nothing.
func chainGone(family eni.Family) bool {
	table := nfset.Table{Family: unix.NFPROTO_IPV4, Name: "nat"}
	if family == eni.IPv6 {
		table.Family = unix.NFPROTO_IPV6
	}
	there, err := table.HasChain(netconf.IptPortChain)
	if there || err != nil && !noNftables(err) {
		return false
	}
	return iptexec.NoLegacyChain(family, netconf.IptPortChain)
}

// checkIptables looks for the rules of the ports in the chains.
func (n Node) checkIptables(held []netconf.PodPorts) ([]string, error) {
	var lines []string
	for _, p := range held {
		family := eni.FamilyOf(p.Pod)
		for _, c := range netconf.IptPorts(family, []netconf.PodPorts{p}, n.primaryAddr(family)) {
			have, err := iptexec.Rules(family, c.Name)
			if err != nil {
				return lines, fmt.Errorf("read host ports: %w", err)
			}
			for _, rule := range c.Rules {
				if !slices.Contains(have, rule) {
					lines = append(lines, fmt.Sprintf("chain %s lacks %s", c.Name, rule))
				}
			}
		}
	}
	return lines, nil
}
