package host

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/netconf"
	"golang.org/x/sys/unix"
)

// OthersPod is the node's end of a pod's link that another plugin made.
type OthersPod struct {
	Dev    string
	Plugin string // whose links are called so, "" where the name does not tell
	Addrs  []netip.Addr
}

// markers are the names that plugins give their pods' links.
var markers = []struct{ prefix, plugin string }{
	{netconf.VethPrefix, "aws-vpc-cni"},
	{"lxc", "Cilium"},
	{"cali", "Calico"},
	{"azv", "azure-cni"},
	{"gke", "gke-cni"},
}

// notPods are links of plugins that are called like those of pods.
var notPods = []string{"lxc_health"}

// OthersPods returns the veth links that pods of other plugins have: by their names,
// or by a route to a single address over them. Where the node's own way out is a veth,
// as in a container, it has such routes too, as systemd-networkd writes them to a
// gateway; but beside them one by way of that gateway, which no pod's link has.
func (h *Host) OthersPods() ([]OthersPod, error) {
	list, _, err := h.links()
	if err != nil {
		return nil, err
	}
	routed, uplinks := map[int][]netip.Addr{}, map[int]bool{}
	for _, v6 := range []bool{false, true} {
		routes, err := h.conn.routes(v6)
		if err != nil {
			return nil, err
		}
		for _, r := range routes {
			switch {
			case r.gateway.IsValid():
				uplinks[r.link] = true
			case r.kind == unix.RTN_UNICAST && r.dst.IsSingleIP() && !r.hostRoute("").Ours():
				routed[r.link] = append(routed[r.link], r.dst.Addr())
			}
		}
	}
	var pods []OthersPod
	for _, l := range list {
		name := l.name
		owner, named := netconf.ParseAlias(l.alias)
		if l.kind != "veth" || uplinks[l.index] || slices.Contains(notPods, name) || named && netconf.HostDevice(owner.Key) == name {
			continue
		}
		// A pair whose ends are both here is no pod's.
		if pod := (OthersPod{name, pluginOf(name), routed[l.index]}); l.netns >= 0 && (pod.Plugin != "" || len(pod.Addrs) > 0) {
			pods = append(pods, pod)
		}
	}
	return pods, nil
}

func pluginOf(link string) string {
	for _, m := range markers {
		if rest, is := strings.CutPrefix(link, m.prefix); is && len(rest) >= 8 {
			return m.plugin
		}
	}
	return ""
}
