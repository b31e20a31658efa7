package host

import (
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/netconf"
)

// DelPodUnknown is DelPod for a link that no record tells the addresses of: they
// are read off the routes to it.
func (h *Host) DelPodUnknown(k eni.Key) error {
	hostDev := netconf.HostDevice(k)
	link, err := h.findLink(hostDev)
	if notFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	var rules []netconf.Rule
	for _, v6 := range []bool{false, true} {
		routes, err := readRoutes(h, v6, true, map[int]string{link.index: hostDev})
		if err != nil {
			return err
		}
		for _, r := range routes {
			if r.Dev == hostDev { // twice where a release moved it from table to table
				rules = append(rules, netconf.Rule{Priority: netconf.PrioritySource, IPv6: v6, From: r.Dst})
			}
		}
	}
	return h.DelPod(k, rules)
}

// PodLink is the node's end of a pod's veth pair as the kernel shows it.
type PodLink struct {
	Dev   string
	Index int       // which no link made later has
	Owner eni.Owner // from the alias; no namespace
	Addrs []netip.Addr
}

// PodLinks returns the veth links of ours that carry their owner's name, with
// the addresses that are routed to them.
func (h *Host) PodLinks() ([]PodLink, error) {
	list, names, err := h.links()
	if err != nil {
		return nil, err
	}
	routed := map[string][]netip.Addr{}
	for _, v6 := range []bool{false, true} {
		routes, err := readRoutes(h, v6, true, names)
		if err != nil {
			return nil, err
		}
		for _, r := range routes {
			if r.Dst.IsSingleIP() && !slices.Contains(routed[r.Dev], r.Dst.Addr()) { // in the main table too, by an earlier release
				routed[r.Dev] = append(routed[r.Dev], r.Dst.Addr())
			}
		}
	}
	var pods []PodLink
	for _, l := range list {
		owner, ok := netconf.ParseAlias(l.alias)
		if l.kind == "veth" && ok && l.name == netconf.HostDevice(owner.Key) {
			pods = append(pods, PodLink{Dev: l.name, Index: l.index, Owner: owner, Addrs: routed[l.name]})
		}
	}
	return pods, nil
}

// PodDevices returns the names of the node's ends of pods' veth pairs.
func (h *Host) PodDevices() ([]string, error) {
	list, _, err := h.links()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, l := range list {
		if owner, ok := netconf.ParseAlias(l.alias); ok && l.kind == "veth" && l.name == netconf.HostDevice(owner.Key) {
			names = append(names, l.name)
		}
	}
	return names, nil
}
