package netconf

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// TableRoute is a route of others in a routing table of ours. The numbers of routing
// tables are nobody's: cloud-init and scripts of images use 100 and up too. Such a
// route is never replaced and never removed.
type TableRoute struct {
	Dst      netip.Prefix
	Gateway  netip.Addr
	Dev      string // "" for a route that leads nowhere, or several ways
	Type     string // as ip(8) calls it: local, unreachable; "" for unicast
	Table    int
	Protocol int
	Metric   int
}

// String returns the route as `ip route` shows it, without its table.
func (r TableRoute) String() string {
	var text strings.Builder
	if r.Type != "" {
		text.WriteString(r.Type + " ")
	}
	text.WriteString(destinationText(r.Dst))
	if r.Gateway.IsValid() {
		fmt.Fprintf(&text, " via %s", r.Gateway)
	}
	if r.Dev != "" {
		fmt.Fprintf(&text, " dev %s", r.Dev)
	}
	if r.namedMetric() != 0 {
		fmt.Fprintf(&text, " metric %d", r.Metric)
	}
	return text.String()
}

// Removal returns the command that removes it.
func (r TableRoute) Removal() string {
	ip := "ip"
	if r.Dst.Addr().Is6() {
		ip = "ip -6"
	}
	return fmt.Sprintf("%s route del %s table %d", ip, r, r.Table)
}

// namedMetric is what tells the route from others to the same destination, 0 where nobody
// named one.
func (r TableRoute) namedMetric() int {
	if r.Dst.Addr().Is6() && r.Metric == ipv6Metric {
		return 0
	}
	return r.Metric
}

// doesSameAs tells whether the route does just what the wanted one would do.
func (r TableRoute) doesSameAs(w Route) bool {
	return r.Type == "" && r.Dst == w.Dst && r.Gateway == w.Gateway && r.Dev == w.Dev && r.Table == w.Table && r.namedMetric() == w.Metric
}

// keepsOut tells whether the kernel refuses the wanted route beside this one.
func (r TableRoute) keepsOut(w Route) bool {
	return r.Dst == w.Dst && r.Table == w.Table && r.namedMetric() == w.Metric
}

// takenByOthers tells whether a wanted route can't be added, or need not be, because of what
// others have there.
func takenByOthers(w Route, others []TableRoute) bool {
	return slices.ContainsFunc(others, func(o TableRoute) bool { return o.keepsOut(w) })
}

// Misrouted returns a line for each route of others that packets of the wanted node's
// pods take instead of ours, with what becomes of the packets and what to do. A route
// that does what ours would do, or that is only looked at after ours, is none.
func Misrouted(others []TableRoute, want Node) []string {
	var lines []string
	for _, o := range others {
		if effect := o.effectText(want.Routes); effect != "" {
			lines = append(lines, fmt.Sprintf("routing table %d holds a route that is not enipool's, %s: %s; %s", o.Table, o, effect, o.Remedy()))
		}
	}
	return lines
}

// Remedy says what a person can do about the route.
func (r TableRoute) Remedy() string {
	return fmt.Sprintf("remove it (%s) and have what made it use a table below %d or above %d: enipool's tables have fixed numbers",
		r.Removal(), PodsTable, lastTable)
}

// effectText says what becomes of packets by the route, "" if nothing that matters. Of
// PodsTable only host routes count, see podsRule.
func (r TableRoute) effectText(want []Route) string {
	if r.Table == PodsTable {
		if !r.Dst.IsSingleIP() {
			return ""
		}
		return fmt.Sprintf("what the node and its pods send to %s %s", r.Dst.Addr(), r.fateText())
	}
	i := slices.IndexFunc(want, func(w Route) bool {
		return w.Table == r.Table && w.Gateway.IsValid() && w.Dst.Addr().Is6() == r.Dst.Addr().Is6()
	})
	switch {
	case i < 0 || slices.ContainsFunc(want, r.doesSameAs):
		return ""
	case r.Dst == want[i].Dst && r.namedMetric() > want[i].Metric:
		return "" // ours comes first
	case r.Dst == want[i].Dst:
		return fmt.Sprintf("what pods of the ENI %s send out of the node %s, and enipool's own (via %s) is not there", want[i].Dev, r.fateText(), want[i].Gateway)
	}
	return fmt.Sprintf("what pods of the ENI %s send to %s %s", want[i].Dev, destinationText(r.Dst), r.fateText())
}

// fateText says where a packet goes.
func (r TableRoute) fateText() string {
	if r.Type == "" {
		return "leaves by it"
	}
	return "ends there"
}

// TableRule is a rule of others that leads to a routing table of ours.
type TableRule Rule

// String returns the rule as `ip rule` prints it.
func (r TableRule) String() string {
	text, _, _ := strings.Cut(Rule(r).String(), " proto ")
	return text
}

// destinationText is the destination as ip(8) has it.
func destinationText(p netip.Prefix) string {
	switch {
	case p.Bits() == 0:
		return "default"
	case p.IsSingleIP():
		return p.Addr().String()
	}
	return p.String()
}
