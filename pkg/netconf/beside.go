package netconf

import "net/netip"

// besideTables is below the routing tables that interfaces have of their own inside a
// pod, one each by the number of the link. Plugins like sbr count up from 100.
const besideTables = 69000

// ipv6Metric is what the kernel takes for a route of IPv6 without a metric.
const ipv6Metric = 1024

// RoutesOf returns the pod's routes of one family.
func (p Pod) RoutesOf(v6 bool) []Route {
	var routes []Route
	for _, r := range p.Routes {
		if r.Dst.Addr().Is6() == v6 {
			routes = append(routes, r)
		}
	}
	return routes
}

// Beside returns what an address needs in a pod where another interface has the
// default route already, in place of the pod's own routes of its family. What the pod
// sends from the address leaves by its own interface, and if the other one goes the
// pod has a default route all the same. index is that of the link in the pod: no two
// interfaces ask for the same, so that they can be added at the same time.
func (p Pod) Beside(a Addr, index int) ([]Route, Rule) {
	rule := BesideRule(a.Prefix, index)
	var routes []Route
	for _, r := range p.RoutesOf(rule.IPv6) {
		if r.Metric = index; rule.IPv6 {
			r.Metric += ipv6Metric
		}
		routes = append(routes, r)
		if r.Gateway.IsValid() {
			r.Table, r.Metric = rule.Table, 0
			routes = append(routes, r)
		}
	}
	return routes, rule
}

// BesideRule returns the rule of Beside. Unlike the routes it outlives the link.
func BesideRule(from netip.Prefix, index int) Rule {
	return Rule{Priority: PrioritySource, IPv6: from.Addr().Is6(), From: from, Table: besideTables + index}
}
