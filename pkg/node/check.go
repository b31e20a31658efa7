package node

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/host"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
)

// Check compares book, kernel and the live namespaces, changes nothing, and
// returns a line for each thing that does not agree, with what to do about it.
func (n Node) Check(ctx context.Context) ([]string, error) {
	h, err := host.New()
	if err != nil {
		return nil, err
	}
	defer h.Close()
	pods, err := h.PodLinks()
	if err != nil {
		return nil, err
	}
	occupied, err := n.Occupancy(ctx)
	if err != nil {
		return nil, err
	}
	add, remove, fw, err := confirmedDiff(ctx, h, n.Cache.View, netconf.Node{})
	if err != nil {
		return nil, err
	}
	lines := suffix(add.Lines("kernel lacks "), n.remedy("`enipoolctl pool load` puts it back"))
	lines = append(lines, suffix(remove.Lines("kernel has a stale "), n.remedy("`enipoolctl pool load` removes it"))...)
	rules, err := n.checkFirewall(ctx, h, fw)
	if err != nil {
		return lines, err
	}
	lines = append(lines, rules...)
	var book ipam.State
	err = n.Cache.View(ctx, func(s *ipam.State) error { book = *s; return nil })
	if err != nil {
		return lines, err
	}
	lines = slices.Concat(n.checkDamaged(&book, len(lines) > 0), lines)
	blocked, err := n.Blocked(ctx)
	if err != nil {
		return lines, err
	}
	misrouted, err := n.Misrouted(ctx)
	if err != nil {
		return lines, err
	}
	held, err := n.checkHeld(ctx, occupied)
	if err != nil {
		return lines, err
	}
	more, err := n.checkOwners(h, &book)
	return slices.Concat(lines, blocked, prefix("must fix: ", misrouted), held, more, checkLinks(pods, &book)), err
}

// checkDamaged returns a line for each address that can't be read in the cache. The
// kernel seems to have too much without it, which nobody should take away: so it is
// told before that.
func (n Node) checkDamaged(book *ipam.State, differs bool) []string {
	var lines []string
	for _, d := range book.Damaged {
		line := "cache " + d.Reason + n.remedy("`enipoolctl pool load` rebuilds it")
		if differs {
			line += "; what of its address differs below is right again then"
		}
		lines = append(lines, line)
	}
	return lines
}

// remedy ends a line of Check: with who does it anyway, or with what there is to do.
func (n Node) remedy(todo string) string {
	if n.Keeper != "" {
		todo = n.Keeper
	}
	return "; " + todo
}

func prefix(p string, lines []string) []string {
	for i := range lines {
		lines[i] = p + lines[i]
	}
	return lines
}

func suffix(lines []string, s string) []string {
	for i := range lines {
		lines[i] += s
	}
	return lines
}

// checkOwners looks at each attachment of the book: is its namespace alive, and
// does the kernel hold what it needs?
func (n Node) checkOwners(h *host.Host, s *ipam.State) ([]string, error) {
	var lines []string
	seen := map[eni.Key]bool{}
	for _, a := range s.Used() {
		if seen[a.Owner.Key] {
			continue
		}
		seen[a.Owner.Key] = true
		wrong, err := n.checkOwner(h, s, a)
		if err != nil {
			return lines, fmt.Errorf("%s of %s: %w", a.Addr, a.Owner.PodName(), err)
		}
		lines = append(lines, prefix(fmt.Sprintf("%s of %s: ", a.Addr, a.Owner.PodName()), wrong)...)
	}
	return lines, nil
}

func (n Node) checkOwner(h *host.Host, s *ipam.State, a eni.Address) ([]string, error) {
	o := a.Owner
	if o.Netns == "" {
		return nil, nil // found by its link after the book was lost: the link is all there is
	}
	if host.NetnsGone(o.Netns, o.NetnsInode) {
		if why, err := lingers(h, *o); why != "" || err != nil {
			return []string{why}, err
		}
		return []string{fmt.Sprintf("its namespace %s is gone", o.Netns) + n.remedy("`enipoolctl pool reclaim` frees it")}, nil
	}
	if host.NetnsUnseen(o.Netns) {
		return []string{fmt.Sprintf("%s is a plain file here: the pod is gone, or its namespace is mounted where this process does not see it; look from the node itself", o.Netns)}, nil
	}
	ns, err := host.OpenNetns(o.Netns)
	if err != nil {
		return []string{err.Error()}, nil
	}
	defer ns.Close()
	if o.Kind != eni.Veth {
		return h.CheckAddrs(ns, o.IfName, []netip.Addr{a.Addr})
	}
	lease := s.LeaseOf(o.Key)
	wrong, err := h.CheckInside(ns, netconf.NewPod(s.Settings, lease, 0))
	return suffix(wrong, "; delete the pod, or `enipoolctl pool reclaim` once it is gone"), err
}

// checkLinks looks for pod links of ours that the book does not know.
func checkLinks(pods []host.PodLink, s *ipam.State) []string {
	var lines []string
	known := map[string]bool{}
	for _, a := range s.Used() {
		known[netconf.HostDevice(a.Owner.Key)] = true
	}
	for _, p := range pods {
		if !known[p.Dev] {
			lines = append(lines, fmt.Sprintf("link %s of %s is not in the cache; if the pod is gone: ip link delete %s", p.Dev, p.Owner.PodName(), p.Dev))
		}
	}
	return lines
}
