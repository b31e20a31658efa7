package node

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/host"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
)

// checkOwners checks for each attachment of the node state whether its namespace is alive and
// the kernel holds what it needs.
func (n Node) checkOwners(h *host.Host, s *ipam.State) ([]finding, error) {
	var found []finding
	seen := map[eni.Key]bool{}
	for _, a := range s.Used() {
		if seen[a.Owner.Key] {
			continue
		}
		seen[a.Owner.Key] = true
		wrong, err := n.checkOwner(h, s, a)
		if errors.Is(err, host.ErrNetnsForbidden) {
			found = append(found, finding{what: "inside", subject: a.Addr.String(), since: a.Since, leftOut: true})
			err = nil
		}
		if err != nil {
			return found, fmt.Errorf("%s of %s: %w", a.Addr, a.Owner.PodName(), err)
		}
		for _, line := range wrong {
			line = fmt.Sprintf("%s of %s: %s", a.Addr, a.Owner.PodName(), line)
			found = append(found, finding{line: line, what: line, subject: a.Addr.String(), since: a.Since})
		}
	}
	return found, nil
}

func (n Node) checkOwner(h *host.Host, s *ipam.State, a eni.Address) ([]string, error) {
	o := a.Owner
	if o.Netns == "" {
		return n.checkUnnamed(h, o)
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

// checkUnnamed checks a pod that was found by its link after the node state was lost: the
// link is all that is known of it.
func (n Node) checkUnnamed(h *host.Host, o *eni.Owner) ([]string, error) {
	if o.Kind != eni.Veth {
		return nil, nil
	}
	dev := netconf.HostDevice(o.Key)
	linked, err := h.HasLink(dev)
	if linked || err != nil {
		return nil, err
	}
	return []string{fmt.Sprintf("its link %s is gone, and the node cache does not name its namespace", dev) + n.remedy("`enipoolctl pool reclaim` frees it")}, nil
}

// checkLinks looks for pod links of ours that the node state does not know.
func checkLinks(pods []host.PodLink, s *ipam.State) []finding {
	var found []finding
	known := map[string]bool{}
	for _, a := range s.Used() {
		known[netconf.HostDevice(a.Owner.Key)] = true
	}
	for _, p := range pods {
		if !known[p.Dev] {
			line := fmt.Sprintf("link %s of %s is not in the cache; if the pod is gone: ip link delete %s", p.Dev, p.Owner.PodName(), p.Dev)
			// The next link of the name has another index.
			found = append(found, finding{line: line, what: fmt.Sprintf("%s %d", line, p.Index), subject: p.Dev})
		}
	}
	return found
}
