package host

import (
	"net/netip"

	"github.com/enipool/enipool/pkg/netconf"
	"golang.org/x/sys/unix"
)

// exits names the links by which packets of pods leave the node.
type exits struct {
	h     *Host
	names map[int]string
	pods  map[netip.Addr]int       // the index of the link that leads to the address, 0 for none
	known map[[2]netip.Addr]string // a pod may have many flows to one destination
}

// Exits returns what names the link by which a packet of a pod leaves the node, from the
// pod's address to the destination: "" where it is lost, or there is no such pod.
func (h *Host) Exits() (func(from, to netip.Addr) string, error) {
	pods, err := h.PodLinks()
	if err != nil {
		return nil, err
	}
	e := exits{h: h, pods: map[netip.Addr]int{}, known: map[[2]netip.Addr]string{}}
	if _, e.names, err = h.links(); err != nil {
		return nil, err
	}
	for _, p := range pods {
		for _, a := range p.Addrs {
			e.pods[a] = p.Index
		}
	}
	return e.find, nil
}

func (e exits) find(from, to netip.Addr) string {
	in, asked := e.pods[from]
	if !asked {
		// A pod of another main plugin, which has only its address of enipool: by the link
		// that leads to it comes what it sends.
		in = e.h.linkTo(from)
		e.pods[from] = in
	}
	if in == 0 {
		return ""
	}
	key := [2]netip.Addr{from, to}
	dev, asked := e.known[key]
	if !asked {
		b := &batch{}
		r := b.askWay(netconf.Packet{From: from, To: to}, in)
		if err := e.h.conn.send(b); err == nil || r.err != nil {
			dev = r.way(e.names).Dev
		}
		e.known[key] = dev
	}
	return dev
}

// linkTo returns the index of the link by which the node sends to the address, 0 where it
// has no way or is the address's own.
func (h *Host) linkTo(addr netip.Addr) int {
	b := &batch{}
	r := b.askWay(netconf.Packet{To: addr}, 0)
	if err := h.conn.send(b); err != nil || len(r.answer) < unix.SizeofRtMsg {
		return 0
	}
	route := parseRoute(r.answer)
	if route.kind != unix.RTN_UNICAST {
		return 0
	}
	return route.link
}
