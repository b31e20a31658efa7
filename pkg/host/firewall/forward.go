package firewall

import (
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

// Flow is a packet of a TCP connection that the node forwards for a pod: the first one, or
// an answer. What is not given is not known.
type Flow struct {
	What     string // for people: "what pods send"
	Family   eni.Family
	In, Out  string // links
	Src, Dst netip.Addr
	Reply    bool // it is an answer, of a connection that came in by an ENI
	// Mark is what enipool gives the packet of Mask's bits, or its connection: see Marked.
	Mark, Mask uint32

	// ENI is the device of the ENI by which the pod's packets go. Where those of one pod of an ENI
	// pass, nothing is told of the other pods of that ENI: what drops theirs is a rule for single
	// pods, which may be meant so.
	ENI string
	// NewLink is In or Out where that is the link of a pod to come. What others decide by the
	// names of single links is not certain for it: they may add a rule when they learn of the
	// pod. "": both links are there.
	NewLink string
}

// Ways are those that pods' packets take as enipool means it.
type Ways struct {
	Backend   ipam.Firewall
	Forwarded []Flow        // what others must not drop
	Marked    []Marked      // what others must not take the marks of
	Leaving   []Destination // what others must not translate
}

// Damage is what chains of others do to the ways of pods' packets, a line for each chain.
type Damage struct {
	Blocked    []string // packets that are lost, or take the wrong ENI
	Translated []string // packets that get another source address than enipool gives them
}

// FindDamage returns what chains of others do for certain; what depends on what can't be
// judged from here is left out. The kernel is read once, and no chain but those that the
// packets come to.
func FindDamage(ctx context.Context, w Ways) (Damage, error) {
	chains, err := readBaseChains(ctx)
	if err != nil {
		return Damage{}, err
	}
	var d Damage
	if d.Blocked, err = findBlocked(chains, w.Forwarded); err != nil {
		return d, err
	}
	for _, find := range []func([]baseChain, Ways) ([]string, error){findUnmarked, findUnreached} {
		lines, err := find(chains, w)
		if d.Blocked = append(d.Blocked, lines...); err != nil {
			return d, err
		}
	}
	d.Translated, err = findTranslated(chains, w)
	return d, err
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

// Blocked returns a line for each chain of others that drops one of the flows for certain,
// before or behind routing or at hook forward: with its name, and at hook forward with the
// command that mends it. A chain whose rules might accept the flow is none: not every match
// can be judged from here.
func Blocked(ctx context.Context, flows []Flow) ([]string, error) {
	chains, err := readBaseChains(ctx)
	if err != nil {
		return nil, err
	}
	return findBlocked(chains, flows)
}

func findBlocked(chains []baseChain, flows []Flow) ([]string, error) {
	var lines []string
	for _, c := range chains {
		// Behind the translation of sources packets may have other addresses.
		if c.kind != nftables.ChainTypeFilter || c.hook == *nftables.ChainHookPostrouting && c.priority >= priorityOfSNAT {
			continue
		}
		policyDrops, err := c.drops()
		if err != nil {
			return nil, err
		}
		d, err := c.droppedFlows(flows, policyDrops)
		d.hook = c.hook
		if err != nil {
			return nil, err
		}
		if len(d.flows) > 0 {
			lines = append(lines, d.lineFor(c.table, c.name, c.mend))
		}
	}
	return lines, nil
}

// dropped is what a base chain drops of what pods send and get.
type dropped struct {
	hook       nftables.ChainHook
	flows      []string // for people
	dispatch   string   // the chain of Calico's that drops them, "" if none does
	pastCalico bool     // they come by a chain of Calico's before they are dropped
	byRule     bool     // else by the chain's policy
}

// droppedFlows returns what is dropped of all pods of an ENI that are asked for. It follows the
// flows first, up to one that passes for each kind of packet, ENI and family, because a later flow
// may pass. The kinds that are left are told in the order of the flows.
func (c baseChain) droppedFlows(flows []Flow, policyDrops bool) (dropped, error) {
	type pods struct {
		what, eni string
		family    eni.Family
	}
	passes := map[pods]bool{}
	lost := map[pods]walk{}
	var d dropped
	for _, f := range flows {
		p := pods{f.What, f.ENI, f.Family}
		if !slices.Contains(c.families, f.Family) || passes[p] {
			continue
		}
		w := walk{flow: f.seenAt(c.hook), mark: exactMark(0)} // as it comes: chains before this one are not followed
		end, err := w.followBase(c.rules, c.name)
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
		if isDispatch(w.droppedIn) {
			d.dispatch = w.droppedIn
		}
		d.pastCalico, d.byRule = d.pastCalico || w.pastCalico, d.byRule || w.droppedIn != ""
	}
	return d, nil
}

// seenAt returns the flow with what a chain at the hook sees of it. Where it leaves is not known
// before routing; where it came in by, behind it, only to newer kernels.
func (f Flow) seenAt(hook nftables.ChainHook) Flow {
	switch hook {
	case *nftables.ChainHookPrerouting:
		f.Out = ""
	case *nftables.ChainHookPostrouting:
		f.In = ""
	}
	return f
}

func (d dropped) lineFor(table, chain, accept string) string {
	how := "by its policy"
	if d.byRule {
		how = "by a rule"
	}
	return fmt.Sprintf("%s: chain %s drops %s %s; %s", table, chain, strings.Join(d.flows, " and "), how, d.mendText(accept))
}

// nftMend returns the commands by which the owner of the chain would let pods pass.
func nftMend(base *nftables.Chain) string {
	pods := netconf.VethPrefix
	family := base.Table.Family
	switch {
	case base.Table.Name == "firewalld":
		return "firewall-cmd --permanent --zone=trusted --add-interface=" + pods + "+ && firewall-cmd --reload"
	case base.Table.Name == "filter" && base.Name == "FORWARD" && family == nftables.TableFamilyIPv4:
		return iptMend("iptables", "filter")
	case base.Table.Name == "filter" && base.Name == "FORWARD" && family == nftables.TableFamilyIPv6:
		return iptMend("ip6tables", "filter")
	}
	insert := fmt.Sprintf("nft insert rule %s %s %s", familyName(family), base.Table.Name, base.Name)
	return fmt.Sprintf(`%s iifname '"%s*"' accept; %[1]s oifname '"%[2]s*"' accept`, insert, pods)
}

func iptMend(tool, table string) string {
	if table != "filter" {
		tool += " -t " + table
	}
	return fmt.Sprintf("%s -I FORWARD -i %s+ -j ACCEPT; %[1]s -I FORWARD -o %[2]s+ -j ACCEPT", tool, netconf.VethPrefix)
}

// findLegacy returns the legacy tool of the family: under its own name, or where that is not
// installed, under the plain one if that is the legacy variant. The error says that it is not
// installed, see isNotInstalled.
func findLegacy(family eni.Family) (tool, error) {
	t, err := findTool(family, plainName(family)+"-legacy")
	if isNotInstalled(err) {
		if t, err = findTool(family, plainName(family)); err == nil && !t.legacy {
			_, err = lookPath(plainName(family) + "-legacy")
		}
	}
	return t, err
}

func isForwardFamily(f nftables.TableFamily) bool {
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
