package node

import (
	"context"
	"fmt"

	"github.com/enipool/enipool/pkg/host"
	"github.com/enipool/enipool/pkg/host/firewall"
	"github.com/enipool/enipool/pkg/hostport"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/podrecord"
)

// PortConflicts returns a line for each host port of a pod that a rule of others leads
// elsewhere, that a program of the node or a pod of the portmap plugin claims too, or that
// is of an address which the node does not have. Nothing of it is enipool's to change.
func (n Node) PortConflicts(ctx context.Context) ([]string, error) {
	records, err := podrecord.Beside(n.Cache.Path).AllUnlocked()
	if err != nil && !podrecord.Unreadable(err) { // those that can't be read are told by checkFirewall
		return nil, fmt.Errorf("look for host ports that others claim: %w", err)
	}
	held := hostport.HeldOf(records)
	var all []netconf.PodPorts
	for _, r := range records {
		if len(r.Ports) > 0 {
			all = append(all, held[r.Key]...)
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	h, err := host.New()
	if err != nil {
		return nil, err
	}
	defer h.Close()
	claims, err := h.PortClaims(all)
	if err != nil {
		return nil, fmt.Errorf("look for host ports that others claim: %w", err)
	}
	f, err := n.firewallOf(ctx, all)
	if err != nil {
		return nil, err
	}
	others, taken, err := firewall.OthersPorts(ctx, f)
	claims.Taken = taken
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, r := range records {
		ports := held[r.Key]
		more := append(claims.Lines(ports), netconf.Rivals(ports, others)...)
		lines = append(lines, prefixLines(fmt.Sprintf("host port of pod %s: ", r.Pod), more)...)
	}
	return lines, nil
}

// firewallOf returns the node's packet filter with the ports.
func (n Node) firewallOf(ctx context.Context, ports []netconf.PodPorts) (f netconf.Firewall, err error) {
	err = n.Cache.View(ctx, func(s *ipam.State) error { f = netconf.NewFirewall(s); return nil })
	if err != nil {
		return f, fmt.Errorf("look for host ports that others claim: %w", err)
	}
	f.Ports = ports
	return f, nil
}
