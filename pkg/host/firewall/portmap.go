package firewall

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/google/nftables"
	"github.com/google/nftables/expr"
)

// What the portmap plugin of containernetworking/plugins makes: in iptables a chain for all
// pods, which leads to one for each, in nftables a table.
const (
	portmapChain  = "CNI-HOSTPORT-DNAT"
	portmapPrefix = "CNI-DN-"
	portmapTable  = "cni_hostport"
)

// readPortmapped returns the ports of the node that the portmap plugin leads to its pods. All
// places where it may have written them are read: which packet filter it uses its own
// configuration says, and which variant of iptables the node's links to programs say. Both may have
// changed since a pod came.
func (o *othersNat) readPortmapped(ctx context.Context) (list []netconf.OthersPort, err error) {
	for _, family := range kernelFamilies() {
		chains := o.ofFamily(family)
		more, err := portmappedNft(family, chains)
		if err != nil {
			return nil, err
		}
		list = append(list, more...)
		for _, legacy := range []bool{false, true} {
			if err := ctx.Err(); err != nil {
				return nil, fmt.Errorf("look for ports of the portmap plugin: %w", err)
			}
			more, err := o.portmappedIptables(family, legacy, chains)
			if err != nil {
				return nil, err
			}
			list = append(list, more...)
		}
	}
	return list, nil
}

// portmappedIptables runs a tool only where the kernel shows that there is something for it to
// see: each start costs milliseconds, and the legacy one makes the kernel set up tables.
func (o *othersNat) portmappedIptables(family eni.Family, legacy bool, chains []*nftables.Chain) (list []netconf.OthersPort, err error) {
	var d natDump
	if legacy {
		d, err = o.legacyNat(family)
	} else if slices.ContainsFunc(chains, func(c *nftables.Chain) bool { return c.Table.Name == "nat" && c.Name == portmapChain }) {
		d, err = dumpNat(family, false)
	}
	for _, line := range d.lines {
		// The chains of single pods say where a port leads. The one that leads to them names many
		// ports at once, and no pod.
		rest, isRule := strings.CutPrefix(line, "-A "+portmapPrefix)
		chain, rule, _ := strings.Cut(rest, " ")
		if p, ok := netconf.ParseIptPort(family, rule); isRule && ok {
			list = append(list, netconf.OthersPort{Port: p.Ports[0], Pod: p.Pod, By: "the portmap plugin (" + d.tool + " -t nat, chain " + portmapPrefix + chain + ")"})
		}
	}
	return list, err
}

// portmappedNft reads the rules of the plugin's table, if there is one.
func portmappedNft(family eni.Family, chains []*nftables.Chain) (list []netconf.OthersPort, err error) {
	var c *nftables.Conn
	for _, chain := range chains {
		// The base chains of the table lead to those that hold the ports, or masquerade.
		if chain.Table.Name != portmapTable || chain.Hooknum != nil {
			continue
		}
		if c == nil { // most nodes have no such table
			if c, err = nftConn(); err != nil {
				return nil, fmt.Errorf("open nftables: %w", err)
			}
		}
		rules, err := c.GetRules(chain.Table, chain)
		if err != nil {
			return nil, fmt.Errorf("list rules of nftables table %s chain %s: %w", portmapTable, chain.Name, err)
		}
		for _, r := range rules {
			if p, ok := parsePortmapRule(family, r); ok {
				p.By = fmt.Sprintf("the portmap plugin (nftables table %s %s, chain %s)", nftIPName(family), portmapTable, chain.Name)
				list = append(list, p)
			}
		}
	}
	return list, nil
}

func nftIPName(f eni.Family) string {
	if f == eni.IPv6 {
		return "ip6"
	}
	return "ip"
}

// parsePortmapRule reads a rule like "ip daddr 10.0.0.10 tcp dport 8080 dnat to 10.1.0.5:80". In
// the kernel that is a row of small steps: each field is loaded, then compared, and the target
// is put into registers that the last step names. Rules of the plugin compare for equality alone.
func parsePortmapRule(family eni.Family, r *nftables.Rule) (p netconf.OthersPort, ok bool) {
	p.Port.Host = netip.IPv4Unspecified()
	if family == eni.IPv6 {
		p.Port.Host = netip.IPv6Unspecified()
	}
	registers := map[uint32][]byte{} // what was put into them, by number
	var loaded expr.Any              // the field that the next comparison is about
	for _, e := range r.Exprs {
		switch e := e.(type) {
		case *expr.Meta, *expr.Payload:
			loaded = e
		case *expr.Cmp:
			notePortMatch(&p.Port, loaded, e.Data)
		case *expr.Immediate:
			registers[e.Register] = e.Data
		case *expr.NAT:
			p.Pod, ok = netip.AddrFromSlice(registers[e.RegAddrMin])
			if port := registers[e.RegProtoMin]; len(port) == 2 {
				p.Port.PodPort = binary.BigEndian.Uint16(port)
			}
		}
	}
	return p, ok && p.Port.Port != 0 && p.Port.Transport != 0
}

// notePortMatch takes what the field of a packet must be into the port. The only address that
// the plugin compares is the destination.
func notePortMatch(port *netconf.HostPort, field expr.Any, data []byte) {
	switch f := field.(type) {
	case *expr.Meta:
		if f.Key == expr.MetaKeyL4PROTO && len(data) == 1 {
			port.Transport = netconf.Transport(data[0])
		}
	case *expr.Payload:
		host, isAddr := netip.AddrFromSlice(data)
		switch {
		case f.Base == expr.PayloadBaseTransportHeader && f.Offset == 2 && len(data) == 2: // of TCP, UDP and SCTP alike
			port.Port = binary.BigEndian.Uint16(data)
		case f.Base == expr.PayloadBaseNetworkHeader && isAddr:
			port.Host = host
		}
	}
}
