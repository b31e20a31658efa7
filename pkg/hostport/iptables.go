package hostport

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/iptexec"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/podrecord"
)

// In iptables the ports of all pods are written anew, from the records, in one
// process per family. So there is nothing to find out and nothing to be removed,
// and a pod that failed half-way leaves no rule behind.

// restore makes iptables hold what the records say, for the families of addrs.
func (n Node) restore(addrs []netip.Addr) error {
	records, err := n.Records.All()
	if err != nil && !errors.Is(err, podrecord.ErrDamaged) {
		return err
	}
	return n.restoreTo(records, addrs)
}

func (n Node) restoreTo(records []podrecord.Record, addrs []netip.Addr) error {
	wanted := Wanted(records)
	for _, family := range []eni.Family{eni.IPv4, eni.IPv6} {
		if !slices.ContainsFunc(addrs, func(a netip.Addr) bool { return eni.FamilyOf(a) == family }) {
			continue
		}
		rules := netconf.IptRestore(netconf.IptPorts(family, wanted, n.node(family)))
		if err := iptexec.Restore(family, rules, n.Lock.FD()); err != nil {
			return fmt.Errorf("change host ports: %w: %w", ErrNotReady, err)
		}
	}
	return nil
}

func (n Node) node(family eni.Family) netip.Addr {
	if family == eni.IPv6 {
		return n.Node6
	}
	return n.Node4
}

// withdraw takes the record's rules away: what is left is the others'.
func (n Node) withdraw(r podrecord.Record, others []podrecord.Record) error {
	err := n.restoreTo(others, r.Addrs)
	if err == nil {
		return nil
	}
	// Where the chains can't be listed they are gone, and the rules with them.
	if _, gone := n.checkIptables(Ports(r)); gone != nil {
		return nil
	}
	return err
}

// checkIptables looks for the rules of the ports in the chains.
func (n Node) checkIptables(held []netconf.PodPorts) ([]string, error) {
	var lines []string
	for _, p := range held {
		family := eni.FamilyOf(p.Pod)
		for _, c := range netconf.IptPorts(family, []netconf.PodPorts{p}, n.node(family)) {
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
