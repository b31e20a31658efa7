package host

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Occupancy reads what the kernel holds for single addresses, whoever's it is. now is
// the time since boot. Of pods that known tells to have an address the other end of
// the link is not read; a nil known knows none.
func (h *Host) Occupancy(now time.Duration, known func(eni.Key) bool) (netconf.Occupancy, error) {
	o := netconf.Occupancy{At: now}
	list, names, err := h.links()
	if err != nil {
		return o, err
	}
	o.Links = make(map[string]bool, len(list))
	for _, l := range list {
		o.Links[l.name] = true
	}
	for _, v6 := range []bool{false, true} {
		if err := h.readHostRoutes(&o, v6, names); err != nil {
			return o, err
		}
		if err := h.readHostRules(&o, v6); err != nil {
			return o, err
		}
	}
	if err := h.readAllAddrs(&o, names); err != nil {
		return o, err
	}
	o.Neighs, err = readAllNeighs(h, names)
	if err != nil {
		return o, err
	}
	o.Pods, err = h.podEnds(list, &o, known)
	return o, err
}

// routeTypes are ip(8)'s names of the types of routes that it names.
var routeTypes = map[int]string{unix.RTN_UNICAST: "", unix.RTN_LOCAL: "local", unix.RTN_BLACKHOLE: "blackhole",
	unix.RTN_UNREACHABLE: "unreachable", unix.RTN_PROHIBIT: "prohibit", unix.RTN_THROW: "throw"}

func (h *Host) readHostRoutes(o *netconf.Occupancy, v6 bool, names map[int]string) error {
	list, err := h.conn.routes(v6)
	if err != nil {
		return err
	}
	for _, r := range list {
		if _, plain := routeTypes[r.kind]; plain && r.dst.IsSingleIP() {
			o.Routes = append(o.Routes, r.hostRoute(names[r.link]))
		}
	}
	return nil
}

func (r kernelRoute) hostRoute(dev string) netconf.HostRoute {
	return netconf.HostRoute{Dst: r.dst.Addr(), Gateway: r.gateway, Dev: dev, Type: routeTypes[r.kind], Table: r.table, Protocol: r.protocol}
}

func (h *Host) readHostRules(o *netconf.Occupancy, v6 bool) error {
	list, err := dump(func() ([]netlink.Rule, error) { return h.h.RuleList(netlinkFamily(v6)) })
	if noFamily(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list rules: %w", err)
	}
	for _, r := range list {
		hr := netconf.HostRule{Priority: r.Priority, Table: r.Table, Protocol: int(r.Protocol)}
		if p, ok := prefix(r.Src); ok && p.IsSingleIP() {
			hr.Addr = p.Addr()
			o.Rules = append(o.Rules, hr)
		}
		if p, ok := prefix(r.Dst); ok && p.IsSingleIP() {
			hr.Addr, hr.To = p.Addr(), true
			o.Rules = append(o.Rules, hr)
		}
	}
	return nil
}

func (h *Host) readAllAddrs(o *netconf.Occupancy, names map[int]string) error {
	list, err := h.conn.addrs()
	if err != nil {
		return err
	}
	for _, a := range list {
		o.Addrs = append(o.Addrs, netconf.Addr{Prefix: a.prefix, Dev: names[a.link]})
	}
	return nil
}

// podEnds returns the links that are pods' by their name, ours and those of plugins
// that call theirs the same, with the addresses routed to them and, where nobody is
// known to have one, those on the other end. Where that can't be read the neighbours
// on the link tell them, which no daemon removes.
func (h *Host) podEnds(list []linkState, o *netconf.Occupancy, known func(eni.Key) bool) ([]netconf.PodEnd, error) {
	routed, neighbours := map[string][]netip.Addr{}, map[string][]netip.Addr{}
	for _, r := range o.Routes {
		if r.Type == "" {
			routed[r.Dev] = append(routed[r.Dev], r.Dst)
		}
	}
	for _, n := range o.Neighs {
		neighbours[n.Dev] = append(neighbours[n.Dev], n.Addr)
	}
	var peers *peerReader
	defer func() { peers.close() }()
	var ends []netconf.PodEnd
	for _, l := range list {
		name := l.name
		if l.kind != "veth" || !strings.HasPrefix(name, netconf.VethPrefix) {
			continue
		}
		end := netconf.PodEnd{Dev: name, Routed: routed[name]}
		if owner, ok := netconf.ParseAlias(l.alias); ok && name == netconf.HostDevice(owner.Key) {
			end.Owner = owner
			end.Known = known != nil && known(owner.Key)
		}
		if needsInner(end) {
			var err error
			if peers == nil {
				if peers, err = newPeerReader(); err != nil {
					return nil, err
				}
			}
			addrs, err := peers.read(l)
			if err != nil {
				// A link that goes this moment holds nothing any more.
				if there, _ := h.HasLink(name); there {
					end.Unread = err.Error()
					addrs = neighbours[name]
				}
			}
			end.Inner = addrs
		}
		ends = append(ends, end)
	}
	return ends, nil
}

// needsInner tells whether the other end of the link says more than the node does: whose addresses
// they are where the owner is not known to have any, and which they are where no route tells.
func needsInner(end netconf.PodEnd) bool {
	if ours := end.Owner != (eni.Owner{}); ours {
		return !end.Known
	}
	return len(end.Routed) == 0
}

// readAllNeighs returns the permanent neighbours of all links.
func readAllNeighs(h *Host, names map[int]string) ([]netconf.Neigh, error) {
	list, err := h.conn.neighs()
	if err != nil {
		return nil, err
	}
	var neighs []netconf.Neigh
	for _, n := range list {
		if n.state == unix.NUD_PERMANENT && len(n.mac) == len(netconf.MAC{}) {
			neighs = append(neighs, netconf.Neigh{Addr: n.addr, MAC: netconf.MAC(n.mac), Dev: names[n.link]})
		}
	}
	return neighs, nil
}
