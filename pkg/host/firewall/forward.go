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

	// ENI is by whose device the pod's packets go. If one pod's of an ENI pass, those of the
	// others that don't are not told: rules for single pods are not for all.
	ENI string
	// NewLink is In or Out where others need not know that link of a pod yet: what they
	// decide by the names of single links is not certain. "": they know both.
	NewLink string
}

// PodFlows returns what a pod of the family with the link sends and gets by the ENI's
// device. No link: a pod to come.
func PodFlows(f eni.Family, link, device string) []Flow {
	added := ""
	if link == "" {
		link = netconf.HostDevice(eni.Key{})
		added = link
	}
	return []Flow{
		{What: "what pods send", Family: f, In: link, Out: device, ENI: device, NewLink: added},
		{What: "what pods get", Family: f, In: device, Out: link, ENI: device, NewLink: added},
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
		d, err := droppedFlows(flows, base.Name, policyDrops, rules, func(f Flow) bool { return inFamily(base.Table.Family, f.Family) })
		if err != nil {
			return nil, err
		}
		if len(d.flows) > 0 {
			lines = append(lines, d.line("nftables table "+familyName(base.Table.Family)+" "+base.Table.Name, base.Name, nftMend(base)))
		}
	}
	return lines, nil
}

// dropped is what a base chain drops of what pods send and get.
type dropped struct {
	flows      []string // for people
	dispatch   string   // the chain of Calico's that drops them, "" if none does
	pastCalico bool     // they come by a chain of Calico's before they are dropped
	byRule     bool     // else by the chain's policy
}

// droppedFlows returns what is dropped of all pods of an ENI that are asked for.
func droppedFlows(flows []Flow, base string, policyDrops bool, rules ruleSource, of func(Flow) bool) (dropped, error) {
	type pods struct {
		what, eni string
		family    eni.Family
	}
	passes := map[pods]bool{}
	lost := map[pods]walk{}
	var d dropped
	for _, f := range flows {
		p := pods{f.What, f.ENI, f.Family}
		if !of(f) || passes[p] {
			continue
		}
		w := walk{flow: f, rules: rules}
		end, err := w.chain(base, 0)
		if err != nil {
			return d, err
		}
		passes[p] = w.mayPass || w.dropsByPolicy() || end != isDropped && (end != fallsThrough || !policyDrops)
		lost[p] = w
	}
	for _, f := range flows {
		p := pods{f.What, f.ENI, f.Family}
		w, asked := lost[p]
		if !asked || passes[p] {
			continue
		}
		if !slices.Contains(d.flows, f.What) {
			d.flows = append(d.flows, f.What)
		}
		if dispatches(w.droppedIn) {
			d.dispatch = w.droppedIn
		}
		d.pastCalico, d.byRule = d.pastCalico || w.pastCalico, d.byRule || w.droppedIn != ""
	}
	return d, nil
}

func (d dropped) line(table, chain, accept string) string {
	how := "by its policy"
	if d.byRule {
		how = "by a rule"
	}
	return fmt.Sprintf("%s: chain %s drops %s %s; %s", table, chain, strings.Join(d.flows, " and "), how, d.mend(accept))
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
		d, err := droppedFlows(flows, "FORWARD", policyDrops, rules, func(f Flow) bool { return f.Family == family })
		if err != nil {
			return nil, err
		}
		if len(d.flows) > 0 {
			lines = append(lines, d.line("legacy "+plainName(family)+" table filter", "FORWARD", iptMend(t.name)))
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
