package host

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/netconf"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// A pod may have several interfaces, of networks of ours and of others, and they may
// be added at the same time. The kernel decides which one's the default route is.

// claim is the attempt of an interface to have the pod's default route.
type claim []*request

// claimDefault adds the routes of one family where no other interface has them.
func (b *batch) claimDefault(routes []netconf.Route, index int) (c claim) {
	for _, r := range routes {
		// A gateway is out of reach if the route to it is another interface's.
		c = append(c, b.addRoute(r, index).tolerating(unix.EEXIST, unix.ENETUNREACH, unix.EHOSTUNREACH))
	}
	return c
}

// lost tells whether another interface has one of the routes.
func (c claim) lost() bool {
	return slices.ContainsFunc(c, func(r *request) bool { return r.failed(unix.EEXIST) })
}

// failure returns the first error of the routes.
func (c claim) failure() error {
	for _, r := range c {
		if err := r.failure(); err != nil {
			return err
		}
	}
	return nil
}

// settleBeside gives the interface its place beside the one that has the default
// route.
func (c *conn) settleBeside(p netconf.Pod, a netconf.Addr, index int) error {
	routes, rule := p.Beside(a, index)
	b := inPod()
	for _, r := range routes {
		b.addRoute(r, index)
	}
	removed := b.replaceRules([]netconf.Rule{rule})
	if err := c.send(b); err != nil {
		return err
	}
	return c.removeMore(removed, []netconf.Rule{rule})
}

// LeavePod removes the rules that the pod has for the addresses if their interface was
// not the one with the default route. What is missing is fine.
func (n *Netns) LeavePod(addrs []netip.Prefix) error {
	pod, err := n.dial()
	if err != nil {
		return err
	}
	defer pod.Close()
	var rules []netconf.Rule
	for _, a := range addrs {
		rules = append(rules, netconf.BesideRule(a, 0)) // whatever the link's index was
	}
	return pod.delRules(rules)
}

// checkBeside returns a line for each address whose packets leave by another interface
// of ours, because the rule that keeps them here is missing. Any rule from the address
// will do: chained plugins make their own.
func checkBeside(pod *Host, p netconf.Pod, index int) ([]string, error) {
	var wrong []string
	for _, a := range p.Addrs {
		rule := netconf.BesideRule(a.Prefix, index)
		behind, err := isBehind(pod, rule.IPv6, index)
		if err != nil {
			return nil, err
		}
		if !behind {
			continue
		}
		rules, err := dump(func() ([]netlink.Rule, error) { return pod.h.RuleList(netlinkFamily(rule.IPv6)) })
		if err != nil {
			return nil, fmt.Errorf("list rules in the pod: %w", err)
		}
		if !slices.ContainsFunc(rules, func(r netlink.Rule) bool { from, ok := prefix(r.Src); return ok && from == rule.From }) {
			wrong = append(wrong, "pod rule "+rule.String()+" is missing")
		}
	}
	return wrong, nil
}

// isBehind tells whether the pod's default route is that of another interface of ours.
func isBehind(pod *Host, v6 bool, index int) (bool, error) {
	routes, err := pod.conn.routes(v6)
	if err != nil {
		return false, fmt.Errorf("look for the pod's default route: %w", err)
	}
	var best *kernelRoute
	for i, r := range routes {
		ours := r.table == netconf.MainTable && r.protocol == netconf.Protocol
		if ours && r.dst.Bits() == 0 && (best == nil || r.metric < best.metric) {
			best = &routes[i]
		}
	}
	return best != nil && best.link != index, nil
}
