package host

import (
	"fmt"

	"github.com/enipool/enipool/pkg/netconf"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// What the kernel shows, in netconf's words, so that it can be compared with
// what should be.

// readRoutes returns the unicast routes of one family in all tables; ours only,
// or everybody's. Names maps link indexes to names.
func readRoutes(h *Host, v6, oursOnly bool, names map[int]string) ([]netconf.Route, error) {
	list, err := h.conn.routes(v6)
	return pickRoutes(list, names, func(_ *netconf.Route, ours bool) bool { return ours || !oursOnly }), err
}

// pickRoutes returns the unicast routes that keep picks, which is told whether they are
// ours.
func pickRoutes(list []kernelRoute, names map[int]string, keep func(r *netconf.Route, ours bool) bool) []netconf.Route {
	var routes []netconf.Route
	for _, r := range list {
		route := netconf.Route{Dst: r.dst, Gateway: r.gateway, Dev: names[r.link], Table: r.table}
		if r.kind == unix.RTN_UNICAST && keep(&route, r.protocol == route.Protocol()) {
			routes = append(routes, route)
		}
	}
	return routes
}

// OthersRoutes returns the routes of others in tables of ours.
func (h *Host) OthersRoutes() ([]netconf.TableRoute, error) {
	_, names, err := h.links()
	if err != nil {
		return nil, err
	}
	var others []netconf.TableRoute
	for _, v6 := range []bool{false, true} {
		list, err := h.conn.routes(v6)
		if err != nil {
			return nil, err
		}
		others = append(others, pickOthers(list, names)...)
	}
	return others, nil
}

// pickOthers returns the routes of others in tables of ours.
func pickOthers(list []kernelRoute, names map[int]string) []netconf.TableRoute {
	var others []netconf.TableRoute
	for _, r := range list {
		if netconf.IsOurTable(r.table) && !netconf.IsOurs(r.protocol) {
			others = append(others, r.tableRoute(names))
		}
	}
	return others
}

func (r kernelRoute) tableRoute(names map[int]string) netconf.TableRoute {
	return netconf.TableRoute{Dst: r.dst, Gateway: r.gateway, Dev: names[r.link], Type: routeTypes[r.kind],
		Table: r.table, Protocol: r.protocol, Metric: r.metric}
}

// readRules returns our rules of one family.
func readRules(h *netlink.Handle, v6 bool) ([]netconf.Rule, error) {
	ours, _, err := readAllRules(h, v6)
	return ours, err
}

// readAllRules returns our rules of one family, and those of others.
func readAllRules(h *netlink.Handle, v6 bool) (ours, others []netconf.Rule, err error) {
	list, err := dump(func() ([]netlink.Rule, error) { return h.RuleList(netlinkFamily(v6)) })
	if noFamily(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("list rules: %w", err)
	}
	for _, r := range list {
		nr := netconf.Rule{Priority: r.Priority, IPv6: v6, Mark: r.Mark, Table: r.Table, HostOnly: r.SuppressPrefixlen >= 0}
		nr.From, _ = prefix(r.Src)
		nr.To, _ = prefix(r.Dst)
		if r.Mask != nil {
			nr.Mask = *r.Mask
		}
		if !netconf.IsOurs(int(r.Protocol)) {
			others = append(others, nr)
			continue
		}
		nr.Earlier = nr.Priority == netconf.PriorityMark && r.Protocol == netconf.Protocol
		if int(r.Protocol) == nr.Protocol() {
			ours = append(ours, nr)
		}
	}
	return ours, others, nil
}

// OthersRules returns the rules of others that lead to tables of ours.
func (h *Host) OthersRules() ([]netconf.TableRule, error) {
	var others []netconf.TableRule
	for _, v6 := range []bool{false, true} {
		_, list, err := readAllRules(h.h, v6)
		if err != nil {
			return nil, err
		}
		for _, r := range list {
			if netconf.IsOurTable(r.Table) {
				others = append(others, netconf.TableRule(r))
			}
		}
	}
	return others, nil
}

// readAddrs returns the addresses of the named links.
func readAddrs(h *Host, names map[int]string) ([]netconf.Addr, error) {
	list, err := h.conn.addrs()
	if err != nil {
		return nil, err
	}
	var addrs []netconf.Addr
	for _, a := range list {
		if dev := names[a.link]; dev != "" {
			addrs = append(addrs, netconf.Addr{Prefix: a.prefix, Dev: dev, NoPrefixRoute: a.flags&unix.IFA_F_NOPREFIXROUTE != 0})
		}
	}
	return addrs, nil
}

// readNeighs returns the permanent neighbours of the named links.
func readNeighs(h *Host, names map[int]string) ([]netconf.Neigh, error) {
	list, err := h.conn.neighs()
	if err != nil {
		return nil, err
	}
	var neighs []netconf.Neigh
	for _, n := range list {
		dev := names[n.link]
		if dev != "" && n.state == unix.NUD_PERMANENT && len(n.mac) == len(netconf.MAC{}) {
			neighs = append(neighs, netconf.Neigh{Addr: n.addr, MAC: netconf.MAC(n.mac), Dev: dev})
		}
	}
	return neighs, nil
}
