package node

import (
	"bytes"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/host/events"
	"github.com/enipool/enipool/pkg/netconf"
)

// concern is what a change of the kernel means for us.
type concern uint8

const (
	nothing  concern = iota
	fault            // others changed what the node needs
	suspect          // what a pod needs is gone: a fault, or the plugin is taking the pod down
	restored         // what a pod needs is there again: the plugin is setting the pod up
)

// known is what of the node a change is judged by.
type known struct {
	devices map[string]bool // of the ENIs
	tables  map[int]bool    // theirs, and that of the pods
	links   map[int]string  // names of the links of ENIs and pods, by index

	without6 bool // pods have no IPv6
}

// podLink are the names of the host's ends of pods' links.
var podLink = regexp.MustCompile(`^` + netconf.VethPrefix + `[0-9a-f]{11}$`).MatchString

// limitLink are the names of the links that pods' egress limits need.
var limitLink = regexp.MustCompile(`^` + netconf.LimitPrefix + `[0-9a-f]{11}$`).MatchString

// podLinkOf is the name of the link of the pod that the limit's link is for.
func podLinkOf(limit string) string {
	return netconf.VethPrefix + strings.TrimPrefix(limit, netconf.LimitPrefix)
}

// judge tells what a change means. What the agent itself changes is never judged: the
// kernel is read once more after that. The plugin's work for a pod is told by what it
// is: objects that carry our protocol numbers or the name of a pod's link. That they
// come is never a fault; that they go is one only if the pod of the name stays.
func (k known) judge(e events.Event) (c concern, name string) {
	switch e.Kind {
	case events.Overflow:
		return fault, ""
	case events.Link:
		return k.judgeLink(e)
	case events.Address:
		name := k.links[e.Link]
		// With an address of its own a pod's link may let foreign sources pass.
		addressed := podLink(name) && !e.IPv6 && !e.Gone
		return only(e.Gone && k.devices[name] || netconf.IsNamedForServices(name) || addressed), ""
	case events.Route:
		return k.judgeRoute(e)
	case events.Rule:
		return judgeRule(e)
	case events.Neighbour:
		return k.judgeNeighbour(e)
	case events.Netconf:
		return k.judgeSetting(e)
	case events.Qdisc, events.Filter:
		return k.judgeQueue(e)
	case events.Nftables:
		return judgeNftables(e), ""
	}
	return nothing, ""
}

func (k known) judgeLink(e events.Event) (concern, string) {
	was := k.links[e.Link]
	switch {
	case podLink(e.Name) && (e.Gone || e.Toggled && !e.Up):
		return suspect, e.Name
	case podLink(e.Name) && e.Toggled:
		return restored, e.Name
	case podLink(e.Name):
		return nothing, ""
	case limitLink(e.Name) && (e.Gone || e.Toggled && !e.Up):
		return suspect, podLinkOf(e.Name)
	case k.devices[was] && was != e.Name: // renamed
		return fault, ""
	}
	// A link that was down and is up again has lost its routes.
	return only(k.devices[e.Name] && (e.Gone || e.Toggled || e.Made)), ""
}

// allMulticast is what each link with IPv6 has a route to.
var allMulticast = netip.MustParsePrefix("ff00::/8")

func (k known) judgeRoute(e events.Event) (concern, string) {
	addr, single := e.Addr()
	ours := isOurs(e)
	switch name := k.links[e.Link]; {
	case k.without6 && e.Prefix == allMulticast && !e.Gone && podLink(name):
		// Where pods have no IPv6 their links have it switched off. That it is on is not
		// announced, but what it brings, and this route comes first.
		return suspect, name
	case ours && !e.Gone && single && e.Table == netconf.MainTable:
		return fault, "" // by an earlier release's plugin: pods of other ENIs don't look there any more
	case ours && !e.Gone && single:
		return restored, addr.String()
	case ours && !e.Gone:
		return nothing, ""
	case single && (ours || e.Replaced):
		return suspect, addr.String()
	case ours:
		return fault, ""
	case netconf.IsOurTable(e.Table):
		// Others come into a table of ours, or make room for what they kept out of it.
		return only(k.tables[e.Table]), ""
	}
	// ENI 0 leaves by the default route that somebody else made.
	return only(!e.Prefix.IsValid() && e.Table == netconf.MainTable && e.Unicast), ""
}

func judgeRule(e events.Event) (concern, string) {
	addr, single := e.Addr()
	switch {
	case !isOurs(e):
		// One up to the kernel's own to the main table may divert all pods: behind ours those of ENI 0
		// and what is SNATed. Those about a single address, of which other plugins have one for each
		// pod, are left to the next comparison.
		return only(e.Priority <= netconf.PriorityMain && !single && !(e.To.IsValid() && e.To.IsSingleIP())), ""
	case e.Priority == netconf.PrioritySource && single && e.Gone:
		return suspect, addr.String()
	case e.Priority == netconf.PrioritySource && single:
		return restored, addr.String()
	}
	return only(e.Gone), ""
}

func (k known) judgeNeighbour(e events.Event) (concern, string) {
	addr, _ := e.Addr()
	switch {
	case !podLink(k.links[e.Link]):
		return nothing, ""
	case e.Gone:
		return suspect, addr.String()
	case e.Permanent:
		return restored, addr.String()
	}
	return nothing, ""
}

func (k known) judgeSetting(e events.Event) (concern, string) {
	name := k.links[e.Link]
	switch {
	case e.Gone:
		return nothing, ""
	case e.Link == events.AllLinks:
		return only(e.Forwarding == 0 || e.RPFilter != events.Unknown), ""
	case e.IPv6: // it forwards by the setting for all links
		return nothing, ""
	case k.devices[name]:
		return only(e.Forwarding == 0 || e.RPFilter != events.Unknown && e.RPFilter != 2), ""
	case podLink(name) && (e.Forwarding == 0 || e.RPFilter == 0):
		return suspect, name
	case podLink(name) && e.RPFilter != events.Unknown:
		return restored, name
	}
	return nothing, ""
}

// judgeQueue looks at what makes up the limits of a pod: others have other queues, and
// the kernel tells of the one without a limit that goes when one with a limit comes.
func (k known) judgeQueue(e events.Event) (concern, string) {
	name := k.links[e.Link]
	switch {
	case !e.Gone || !slices.Contains([]string{"tbf", "clsact", "ingress", "u32"}, e.Type): // ingress: of an earlier release
		return nothing, ""
	case podLink(name):
		return suspect, name
	case limitLink(name):
		return suspect, podLinkOf(name)
	}
	return nothing, ""
}

// judgeNftables looks at our own tables and, with iptables on nftables, at our chains
// and what jumps to them in the tables of all.
func judgeNftables(e events.Event) concern {
	switch {
	case !netconf.IsNftTable(e.NftTable):
		return only(slices.ContainsFunc(netconf.IptPrefixes(), func(prefix string) bool { return namesOurChain(e.Text, prefix) }))
	case netconf.NftHoldsPorts(e.NftSet):
		return nothing
	}
	return fault
}

// namesOurChain looks for chains that only the agent writes. Those in lower case the
// plugin writes for pods that come and go.
func namesOurChain(text []byte, prefix string) bool {
	for {
		_, rest, found := bytes.Cut(text, []byte(prefix))
		if !found {
			return false
		}
		if len(rest) > 0 && rest[0] >= 'A' && rest[0] <= 'Z' {
			return true
		}
		text = rest
	}
}

func isOurs(e events.Event) bool {
	return e.Protocol == netconf.Protocol || e.Protocol == netconf.PodsProtocol
}

// only is fault where the condition holds.
func only(is bool) concern {
	if is {
		return fault
	}
	return nothing
}
