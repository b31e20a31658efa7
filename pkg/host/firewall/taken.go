package firewall

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/google/nftables"
)

// ourIptPort is how the chain is named by which enipool's own rules for ports begin, where it
// uses iptables.
const ourIptPort = netconf.IptPodsPrefix + "PORTIN"

// Where in nat prerouting iptables has its rules, and enipool's table its own.
const (
	iptPriority  = -100
	oursPriority = -99
)

// findTaken returns the host ports of f that a rule of others leads elsewhere before enipool's
// comes. Those of the portmap plugin are left out: portmapped has them. It reads the chains
// that a packet to the ports comes by, and of those only rules that may concern them:
// kube-proxy may have tens of thousands.
func (o *othersNat) findTaken(ctx context.Context, f netconf.Firewall) (list []netconf.TakenPort, err error) {
	if len(f.Ports) == 0 {
		return nil, nil
	}
	asked := map[uint16]bool{}
	for _, p := range f.Ports {
		for _, port := range p.Ports {
			asked[port.Port] = true
		}
	}
	chains, closeAll, err := o.natChains(asked)
	if err != nil {
		return nil, err
	}
	defer closeAll()
	legacy, err := o.legacyNatChains(ctx)
	if err != nil {
		return nil, err
	}
	chains = append(chains, legacy...)
	// In the kernel's order: a connection is translated once, by the first chain that does.
	slices.SortStableFunc(chains, func(a, b natChain) int { return cmp.Compare(a.priority, b.priority) })
	for _, p := range f.Ports {
		for _, port := range p.Ports {
			probe, ok := probeOf(f, p.Pod, port)
			if !ok {
				continue
			}
			t, err := takenBy(f.Backend, chains, probe)
			if err != nil {
				return nil, err
			}
			if t != nil {
				t.Port, t.Pod = port, p.Pod
				list = append(list, *t)
			}
		}
	}
	return list, nil
}

// natChain is a base chain of others that packets to the node come by.
type natChain struct {
	family   nftables.TableFamily
	table    string // for people
	name     string
	priority int
	rules    natRules
}

// portProbe is the first packet of a connection to a port of the node, from outside.
type portProbe struct {
	family    eni.Family
	transport netconf.Transport
	port      uint16
	to        netip.Addr
	in        string // the link that it comes by
}

// probeOf asks for the primary ENI's address where the port is one of all addresses: what
// others have of a single other address is theirs.
func probeOf(f netconf.Firewall, pod netip.Addr, port netconf.HostPort) (portProbe, bool) {
	p := portProbe{family: eni.FamilyOf(pod), transport: port.Transport, port: port.Port, to: f.Node4, in: f.OutDevice}
	if p.family == eni.IPv6 {
		p.to = f.Node6
	}
	if port.Host.IsValid() && !port.Host.IsUnspecified() {
		p.to = port.Host
	}
	return p, port.Serves(pod) && p.to.IsValid()
}

// takenBy follows the packet through the chains in the order of the kernel.
func takenBy(b ipam.Firewall, chains []natChain, p portProbe) (*netconf.TakenPort, error) {
	ours := oursPriority
	if b == ipam.Iptables {
		ours = iptPriority
	}
	for _, base := range chains {
		if !inFamily(base.family, p.family) || base.priority > ours {
			continue
		}
		w := natWalk{probe: p, rules: base.rules}
		r, err := w.followChain(base.name, 0)
		if err != nil {
			return nil, err
		}
		switch r.end {
		case portIsTaken:
			return &netconf.TakenPort{Owner: ownerOf(base.table, r.chain), By: base.table + ", chain " + r.chain, To: r.to,
				Doubtful: base.priority == ours && !w.metOurs && !base.leadsToOurs()}, nil
		case packetIsDropped, nobodyKnows:
			return nil, nil // it may never come to the chains behind
		}
		if w.metOurs {
			return nil, nil // the pod has it
		}
	}
	return nil, nil
}

// leadsToOurs tells whether enipool's rules stand in the same base chain, behind.
func (c natChain) leadsToOurs() bool {
	rules, err := c.rules.list(c.name)
	return err == nil && slices.ContainsFunc(rules, func(r natRule) bool { return strings.HasPrefix(r.target(), ourIptPort) })
}

// ownerOf knows the names that programs give to what they make.
func ownerOf(table, chain string) netconf.PortOwner {
	switch {
	case strings.HasPrefix(chain, "KUBE-") || strings.HasSuffix(table, " kube-proxy"):
		return netconf.KubeProxy
	case strings.HasPrefix(chain, "DOCKER") || strings.HasSuffix(table, " docker-bridges"):
		return netconf.Docker
	case strings.HasPrefix(chain, "NETAVARK") || strings.HasSuffix(table, " netavark"):
		return netconf.Podman
	}
	return ""
}

// natChains returns those of nftables, which are those of iptables on nftables too.
func (o *othersNat) natChains(asked map[uint16]bool) (list []natChain, closeAll func(), err error) {
	raw, err := dialNft()
	if err != nil {
		return nil, nil, fmt.Errorf("open nftables: %w", err)
	}
	for _, base := range o.chains {
		if base.Hooknum == nil || *base.Hooknum != *nftables.ChainHookPrerouting || base.Type != nftables.ChainTypeNAT ||
			base.Priority == nil || !isForwardFamily(base.Table.Family) || isOurs(base.Table) || base.Table.Name == portmapTable {
			continue
		}
		where := "nftables table " + familyName(base.Table.Family) + " " + base.Table.Name
		// iptables on nftables keeps its tables in the families ip and ip6, one for each.
		if base.Table.Name == "nat" && base.Name == "PREROUTING" && base.Table.Family != nftables.TableFamilyINet {
			where = map[nftables.TableFamily]string{nftables.TableFamilyIPv4: "iptables -t nat", nftables.TableFamilyIPv6: "ip6tables -t nat"}[base.Table.Family]
		}
		list = append(list, natChain{base.Table.Family, where, base.Name, int(*base.Priority),
			&nftNatRules{raw: raw, table: base.Table, asked: asked, read: map[string][]natRule{}}})
	}
	return list, func() { raw.Close() }, nil
}

func isOurs(t *nftables.Table) bool {
	return t.Family == nftables.TableFamilyINet && slices.ContainsFunc((netconf.Firewall{}).Tables(), func(w netconf.NftTable) bool { return w.Name == t.Name })
}

// legacyNatChains returns those of legacy iptables, where it has any.
func (o *othersNat) legacyNatChains(ctx context.Context) (list []natChain, err error) {
	for _, family := range kernelFamilies() {
		d, err := o.legacyNat(family)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, fmt.Errorf("look for rules of others for host ports: %w", err)
		}
		if len(d.lines) > 0 {
			list = append(list, natChain{tableFamily(family), d.tool + " -t nat", "PREROUTING", iptPriority, newTextNatRules(d.lines)})
		}
	}
	return list, nil
}
