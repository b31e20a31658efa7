package host

import (
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/netconf"
)

// HasAddressedPodLink tells whether the node's end of any pod's link has an IPv4 address.
// enipool gives it none.
func (h *Host) HasAddressedPodLink() (bool, error) {
	links, _, err := h.links()
	if err != nil {
		return false, err
	}
	pods := map[int]bool{}
	for _, l := range links {
		if l.kind == "veth" && strings.HasPrefix(l.name, netconf.VethPrefix) {
			pods[l.index] = true
		}
	}
	if len(pods) == 0 {
		return false, nil
	}
	addrs, err := h.conn.addrs()
	return slices.ContainsFunc(addrs, func(a kernelAddr) bool { return pods[a.link] && a.prefix.Addr().Is4() }), err
}
