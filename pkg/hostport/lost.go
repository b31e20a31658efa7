package hostport

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/iptexec"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/podrecord"
)

// Lost returns records for the pods whose own are lost or damaged, made of what the kernel
// holds for them: the ports that lead to an address of a pod, and its limits. Pods are
// the attachments that live, records those that can be read. What another pod's record
// asks for is that pod's. What leads to no living pod is nobody's and goes.
func Lost(pods, records []podrecord.Record, have []netconf.PodPorts, limits map[eni.Key]netconf.Limits) []podrecord.Record {
	recorded := map[eni.Key]bool{}
	for _, r := range records {
		recorded[r.Key] = true
	}
	var lost []podrecord.Record
	for _, p := range pods {
		if recorded[p.Key] {
			continue
		}
		p.Limits = limits[p.Key]
		// Most pods have no host port. For those the records, of which each may hold thousands
		// of ports, are not put into a set.
		if leads := leadingTo(p, have); len(leads) > 0 {
			taken := netconf.NewPortSet(Wanted(recordsBefore(p, records))...)
			p.Ports = netconf.PortsOf(p.Addrs, selectAll(taken, leads, false))
		}
		if !p.Extras.IsZero() {
			lost = append(lost, p)
		}
	}
	return lost
}

// leadingTo returns the ports that lead to the pod.
func leadingTo(p podrecord.Record, have []netconf.PodPorts) (list []netconf.PodPorts) {
	for _, h := range have {
		if slices.Contains(p.Addrs, h.Pod) {
			list = append(list, h)
		}
	}
	return list
}

// recordsBefore returns the records whose ports are not the lost pod's: all but those of its
// sandbox that had to wait for another network. Whether for this one the kernel tells.
func recordsBefore(lost podrecord.Record, records []podrecord.Record) (list []podrecord.Record) {
	for _, r := range records {
		if !sameSandbox(lost, r) || r.Turn == 0 {
			list = append(list, r)
		}
	}
	return list
}

// Found returns the ports of the node that lead to the pods, as the kernel holds them.
// Iptables is asked for the families of pods only: a node needs no program for others.
// Ports that lead elsewhere may be among them.
func Found(firewall ipam.Firewall, pods []podrecord.Record) ([]netconf.PodPorts, error) {
	if firewall == ipam.Iptables {
		var addrs []netip.Addr
		for _, p := range pods {
			addrs = append(addrs, p.Addrs...)
		}
		return foundIptables(familiesOf(addrs)...)
	}
	var list []netconf.PodPorts
	for _, name := range netconf.NftPortMaps() {
		elements, err := nftTable().List(name)
		if noNftables(err) {
			return nil, nil // then no port leads anywhere
		}
		if err != nil {
			return nil, fmt.Errorf("read host ports: %w", err)
		}
		for _, e := range elements {
			if p, ok := netconf.ParseNftPort(name, e.Key, e.Value); ok {
				list = append(list, p)
			}
		}
	}
	return list, nil
}

// foundIptables finds none where there is provably no chain. Where iptables is kept from
// telling, nothing is known.
func foundIptables(families ...eni.Family) (list []netconf.PodPorts, err error) {
	for _, family := range families {
		if chainGone(family) {
			continue // no program is needed to know it
		}
		rules, err := iptexec.Rules(family, netconf.IptPortChain)
		if err != nil && !chainGone(family) {
			return nil, fmt.Errorf("read host ports: %w", err)
		}
		for _, rule := range rules {
			if p, ok := netconf.ParseIptPort(family, rule); ok {
				list = append(list, p)
			}
		}
	}
	return list, nil
}

func familiesOf(addrs []netip.Addr) (families []eni.Family) {
	for _, a := range addrs {
		if f := eni.FamilyOf(a); !slices.Contains(families, f) {
			families = append(families, f)
		}
	}
	return families
}

// Pods returns what is known without records of the attachments of used addresses that can
// have ports and limits. Of two that have the same address the first has it.
func Pods(used []eni.Address, firewall ipam.Firewall) []podrecord.Record {
	var list []podrecord.Record
	at := map[eni.Key]int{}
	known := map[netip.Addr]bool{}
	for _, address := range used {
		if address.Owner.Kind != eni.Veth || known[address.Addr] {
			continue
		}
		known[address.Addr] = true
		i, begun := at[address.Owner.Key]
		if !begun {
			i = len(list)
			at[address.Owner.Key] = i
			list = append(list, podrecord.Record{Key: address.Owner.Key, Pod: address.Owner.PodName(), Firewall: firewall})
		}
		list[i].Addrs = append(list[i].Addrs, address.Addr)
	}
	return list
}
