package host

import (
	"fmt"
	"slices"

	"github.com/enipool/enipool/pkg/netconf"
)

// CheckPod compares the kernel with p and returns a line for everything that is
// missing or different. What others added is fine: addresses, routes, and ours
// moved to another table by a chained plugin.
func (h *Host) CheckPod(ns *Netns, p netconf.Pod) ([]string, error) {
	link, err := h.findLink(p.HostDev)
	if err != nil {
		return h.CheckInside(ns, p)
	}
	var wrong []string
	if !link.up {
		wrong = []string{fmt.Sprintf("link %s is down", p.HostDev)}
	}
	node, err := h.checkNode(p, link)
	if err != nil {
		return nil, err
	}
	inside, err := h.CheckInside(ns, p)
	return slices.Concat(wrong, node, inside), err
}

// CheckInside is CheckPod without what the node holds for the pod beside its link:
// that is put back where it is missing, and the rest is not.
func (h *Host) CheckInside(ns *Netns, p netconf.Pod) ([]string, error) {
	link, err := h.findLink(p.HostDev)
	if notFound(err) {
		return []string{"link " + p.HostDev + " is missing on the node"}, nil
	}
	if err != nil {
		return nil, err
	}
	pod, err := ns.open()
	if err != nil {
		return nil, err
	}
	defer pod.Close()
	inner, err := pod.findLink(p.Dev)
	if notFound(err) {
		return []string{"link " + p.Dev + " is missing in the pod"}, nil
	}
	if err != nil {
		return nil, err
	}
	inside, err := checkInside(pod, p, inner)
	return append(checkEnds(p, link, inner), inside...), err
}

func checkEnds(p netconf.Pod, link, inner linkState) []string {
	var wrong []string
	bad := func(format string, a ...any) { wrong = append(wrong, fmt.Sprintf(format, a...)) }
	if link.kind != "veth" || link.peer != inner.index {
		bad("link %s in the pod is not the peer of %s", p.Dev, p.HostDev)
	}
	if !inner.up {
		bad("link %s in the pod is down", p.Dev)
	}
	if got := link.mac.String(); got != p.HostMAC.String() {
		bad("link %s has address %s, want %s", p.HostDev, got, p.HostMAC)
	}
	if got := inner.mac.String(); got != p.MAC.String() {
		bad("link %s in the pod has address %s, want %s", p.Dev, got, p.MAC)
	}
	return wrong
}

func (h *Host) checkNode(p netconf.Pod, link linkState) ([]string, error) {
	var wrong []string
	names := map[int]string{link.index: p.HostDev}
	for _, v6 := range []bool{false, true} {
		routes, err := readRoutes(h, v6, true, names)
		if err != nil {
			return nil, err
		}
		wrong = append(wrong, missing("route ", of(p.HostRoutes, v6, routeIsV6), routes)...)
		rules := of(p.HostRules, v6, func(r netconf.Rule) bool { return r.IPv6 })
		if len(rules) == 0 {
			continue
		}
		have, err := readRules(h.h, v6)
		if err != nil {
			return nil, err
		}
		wrong = append(wrong, missing("rule ", rules, have)...)
	}
	neighs, err := readNeighs(h, names)
	if err != nil {
		return nil, err
	}
	return append(wrong, missing("neighbour ", p.HostNeighs, neighs)...), nil
}

func checkInside(pod *Host, p netconf.Pod, link linkState) ([]string, error) {
	names := map[int]string{link.index: p.Dev}
	addrs, err := readAddrs(pod, names)
	if err != nil {
		return nil, err
	}
	neighs, err := readNeighs(pod, names)
	if err != nil {
		return nil, err
	}
	var routes []netconf.Route
	for _, v6 := range []bool{false, true} {
		list, err := readRoutes(pod, v6, false, names)
		if err != nil {
			return nil, err
		}
		for _, r := range list {
			r.Table = netconf.MainTable // wherever a chained plugin moved it
			routes = append(routes, r)
		}
	}
	behind, err := checkBeside(pod, p, link.index)
	if err != nil {
		return nil, err
	}
	return slices.Concat(missing("pod address ", p.Addrs, addrs), missing("pod route ", p.Routes, routes),
		missing("pod neighbour ", p.Neighs, neighs), behind), nil
}

// missing returns a line for each wanted item that is not there.
func missing[T interface {
	comparable
	fmt.Stringer
}](what string, want, have []T) []string {
	var lines []string
	for _, w := range want {
		if !slices.Contains(have, w) {
			lines = append(lines, what+w.String()+" is missing")
		}
	}
	return lines
}

func of[T any](items []T, v6 bool, is6 func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(items), func(i T) bool { return is6(i) != v6 })
}

func routeIsV6(r netconf.Route) bool { return r.Dst.Addr().Is6() }
