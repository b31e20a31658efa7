package host

import (
	"net/netip"

	"github.com/enipool/enipool/pkg/netconf"
)

// Services returns the addresses of services that stand on links of the node;
// see netconf.IsServiceLink.
func (h *Host) Services() ([]netip.Addr, error) {
	links, _, err := h.links()
	if err != nil {
		return nil, err
	}
	forServices := map[int]bool{}
	for _, l := range links {
		if netconf.IsServiceLink(l.name, l.kind) {
			forServices[l.index] = true
		}
	}
	if len(forServices) == 0 {
		return nil, nil
	}
	addrs, err := h.conn.addrs()
	var list []netip.Addr
	for _, a := range addrs {
		if at := a.prefix.Addr(); forServices[a.link] && (at.Is4() || !at.IsLinkLocalUnicast()) {
			list = append(list, at)
		}
	}
	return list, err
}
