package host

import (
	"net/netip"

	"github.com/enipool/enipool/pkg/netconf"
)

// Exits returns what names the link by which a packet of a pod leaves the node, from the
// pod's address to the destination: "" where it is lost, or there is no such pod.
func (h *Host) Exits() (func(from, to netip.Addr) string, error) {
	pods, err := h.PodLinks()
	if err != nil {
		return nil, err
	}
	_, names, err := h.links()
	if err != nil {
		return nil, err
	}
	links := map[netip.Addr]int{}
	for _, p := range pods {
		for _, a := range p.Addrs {
			links[a] = p.Index
		}
	}
	known := map[[2]netip.Addr]string{} // a pod may have many flows to one destination
	return func(from, to netip.Addr) string {
		in, pod := links[from]
		if !pod {
			return ""
		}
		key := [2]netip.Addr{from, to}
		dev, asked := known[key]
		if !asked {
			b := &batch{}
			r := b.askWay(netconf.Packet{From: from, To: to}, in)
			if err := h.conn.send(b); err == nil || r.err != nil {
				dev = r.way(names).Dev
			}
			known[key] = dev
		}
		return dev
	}, nil
}
