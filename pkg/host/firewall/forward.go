package firewall

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/google/nftables"
)

// Flow is the first packet of a TCP connection that the node forwards for a pod. What
// is not given is not known.
type Flow struct {
	What     string // for people: "what pods send"
	Family   eni.Family
	In, Out  string // links
	Src, Dst netip.Addr
	// Mark is what the packet has of Mask's bits by rules of enipool; no Mask: it has none.
	Mark, Mask uint32
}

// PodFlows returns what pods of the family send and get by the ENI's device.
func PodFlows(f eni.Family, device string) []Flow {
	pod := netconf.HostDevice(eni.Key{})
	return []Flow{
		{What: "what pods send", Family: f, In: pod, Out: device},
		{What: "what pods get", Family: f, In: device, Out: pod},
	}
}

// Blocked returns a line for each chain of others at hook forward that drops one of
// the flows for certain: with its name, and with the command that mends it. A chain
// whose rules might accept the flow is none: not every match can be judged from here.
func Blocked(ctx context.Context, flows []Flow) ([]string, error) {
	lines, err := nftBlocked(flows)
	if err != nil {
		return nil, err
	}
	more, err := legacyBlocked(ctx, flows)
	return append(lines, more...), err
}

// nftBlocked looks at the base chains of nftables, which are those of iptables on
// nftables too.
func nftBlocked(flows []Flow) ([]string, error) {
	c, err := nftConn()
	if err != nil {
		return nil, fmt.Errorf("open nftables: %w", err)
	}
	chains, err := c.ListChains()
	if err != nil {
		if noNftables(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("list nftables chains: %w", err)
	}
	var lines []string
	for _, base := range chains {
		if base.Hooknum == nil || *base.Hooknum != *nftables.ChainHookForward || base.Type != nftables.ChainTypeFilter || !forwards(base.Table.Family) {
			continue
		}
		rules := newNftRules(c, base.Table)
		policyDrops := base.Policy != nil && *base.Policy == nftables.ChainPolicyDrop
		dropped, err := droppedFlows(flows, base.Name, policyDrops, rules, func(f Flow) bool { return inFamily(base.Table.Family, f.Family) })
		if err != nil {
			return nil, err
		}
		if len(dropped) > 0 {
			lines = append(lines, blockedLine("nftables table "+familyName(base.Table.Family)+" "+base.Table.Name, base.Name, policyDrops, dropped, nftMend(base)))
		}
	}
	return lines, nil
}

// droppedFlows returns what is dropped, for people.
func droppedFlows(flows []Flow, base string, policyDrops bool, rules ruleSource, of func(Flow) bool) ([]string, error) {
	var dropped []string
	for _, f := range flows {
		if !of(f) || slices.Contains(dropped, f.What) {
			continue
		}
		w := walk{flow: f, rules: rules}
		end, err := w.chain(base, 0)
		if err != nil {
			return nil, err
		}
		if !w.mayPass && (end == isDropped || end == fallsThrough && policyDrops) {
			dropped = append(dropped, f.What)
		}
	}
	return dropped, nil
}

func blockedLine(table, chain string, policyDrops bool, dropped []string, mend string) string {
	how := "by a rule"
	if policyDrops {
		how = "by its policy"
	}
	return fmt.Sprintf("%s: chain %s drops %s %s; to let it pass: %s", table, chain, strings.Join(dropped, " and "), how, mend)
}

// nftMend returns the commands by which the owner of the chain would let pods pass.
func nftMend(base *nftables.Chain) string {
	pods := netconf.VethPrefix
	family := base.Table.Family
	switch {
	case base.Table.Name == "firewalld":
		return "firewall-cmd --permanent --zone=trusted --add-interface=" + pods + "+ && firewall-cmd --reload"
	case base.Table.Name == "filter" && base.Name == "FORWARD" && family == nftables.TableFamilyIPv4:
		return iptMend("iptables")
	case base.Table.Name == "filter" && base.Name == "FORWARD" && family == nftables.TableFamilyIPv6:
		return iptMend("ip6tables")
	}
	insert := fmt.Sprintf("nft insert rule %s %s %s", familyName(family), base.Table.Name, base.Name)
	return fmt.Sprintf(`%s iifname '"%s*"' accept; %[1]s oifname '"%[2]s*"' accept`, insert, pods)
}

func iptMend(tool string) string {
	return fmt.Sprintf("%s -I FORWARD -i %s+ -j ACCEPT; %[1]s -I FORWARD -o %[2]s+ -j ACCEPT", tool, netconf.VethPrefix)
}

// legacyBlocked looks at legacy iptables, where it holds anything.
func legacyBlocked(ctx context.Context, flows []Flow) ([]string, error) {
	var lines []string
	for _, family := range []eni.Family{eni.IPv4, eni.IPv6} {
		names, err := legacyTables(family)
		if err != nil || !slices.Contains(names, "filter") {
			if err != nil {
				return nil, err
			}
			continue
		}
		t, err := findLegacy(family)
		if missing(err) {
			continue // nobody can look
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		rules := textRules{list: func(chain string) ([]string, error) { return t.List("filter", chain) }}
		policyDrops, err := rules.policyDrops("FORWARD")
		if err != nil {
			return nil, fmt.Errorf("list %s table filter chain FORWARD: %w", t.name, err)
		}
		dropped, err := droppedFlows(flows, "FORWARD", policyDrops, rules, func(f Flow) bool { return f.Family == family })
		if err != nil {
			return nil, err
		}
		if len(dropped) > 0 {
			lines = append(lines, blockedLine("legacy "+plainName(family)+" table filter", "FORWARD", policyDrops, dropped, iptMend(t.name)))
		}
	}
	return lines, nil
}

// findLegacy returns the legacy tool of the family.
func findLegacy(family eni.Family) (tool, error) {
	t, err := findTool(family, plainName(family)+"-legacy")
	if missing(err) {
		if t, err = findTool(family, plainName(family)); err == nil && !t.legacy {
			_, err = lookPath(plainName(family) + "-legacy")
		}
	}
	return t, err
}

func forwards(f nftables.TableFamily) bool {
	return f == nftables.TableFamilyINet || f == nftables.TableFamilyIPv4 || f == nftables.TableFamilyIPv6
}

func inFamily(table nftables.TableFamily, f eni.Family) bool {
	return table == nftables.TableFamilyINet || (table == nftables.TableFamilyIPv6) == (f == eni.IPv6)
}

func familyName(f nftables.TableFamily) string {
	switch f {
	case nftables.TableFamilyIPv4:
		return "ip"
	case nftables.TableFamilyIPv6:
		return "ip6"
	}
	return "inet"
}
