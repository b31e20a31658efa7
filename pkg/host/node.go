package host

import (
	"errors"
	"fmt"
	"slices"

	"github.com/enipool/enipool/pkg/netconf"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// ReadNode returns what the kernel holds of the kind that want names: the values
// of its sysctls, its links that are up, the addresses on them, and of routes
// and rules all that are ours plus the main table's default routes, whoever's, and what
// of others is in the way of ours.
// Links of want that do not exist are an error that names them; those of obsolete
// and of pods may be gone.
func (h *Host) ReadNode(want, obsolete netconf.Node) (netconf.Node, error) {
	var have netconf.Node
	list, names, err := h.links()
	if err != nil {
		return have, err
	}
	links := make(map[string]linkState, len(list))
	for _, l := range list {
		links[l.name] = l
	}
	enis := map[int]string{}
	for _, dev := range slices.Concat(want.Links, obsolete.Links) {
		link, there := links[dev]
		if !there && slices.Contains(want.Links, dev) {
			return have, fmt.Errorf("look up ENI link %s: %w", dev, ErrNoLink)
		}
		if !there || enis[link.index] != "" {
			continue
		}
		enis[link.index] = dev
		if link.up {
			have.Links = append(have.Links, dev)
		}
	}
	if have.Addrs, err = readAddrs(h, enis); err != nil {
		return have, err
	}
	for _, s := range want.Sysctls {
		dev, _ := s.Link()
		value, told := links[dev].sysctl(s.Key)
		if !told {
			if value, err = readSysctl(s.Key); err != nil {
				return have, fmt.Errorf("read sysctl %s: %w", s.Key, err)
			}
		}
		have.Sysctls = append(have.Sysctls, netconf.Sysctl{Key: s.Key, Value: value})
	}
	if err := h.readPods(&have, want.Pods, links); err != nil {
		return have, err
	}
	for _, v6 := range []bool{false, true} {
		if err := h.readRouting(&have, v6, names); err != nil {
			return have, err
		}
	}
	return have, nil
}

// readRouting reads the routes and rules of one family.
func (h *Host) readRouting(have *netconf.Node, v6 bool, names map[int]string) error {
	list, err := h.conn.routes(v6)
	if err != nil {
		return err
	}
	have.Routes = append(have.Routes, pickRoutes(list, names, func(r *netconf.Route, ours bool) bool {
		// The system's default route counts as well as ours: with it there, ours goes.
		nodes := r.IsDefault() && r.Table == netconf.MainTable
		r.IfNone = ours && nodes
		return ours || nodes
	})...)
	have.Others = append(have.Others, pickOthers(list, names)...)
	rules, err := readRules(h.h, v6)
	have.Rules = append(have.Rules, rules...)
	return err
}

// readPods reads what the node holds for the pods whose links exist.
func (h *Host) readPods(have *netconf.Node, pods []netconf.Pod, links map[string]linkState) error {
	if len(pods) == 0 {
		return nil
	}
	names := make(map[int]string, len(pods))
	for _, p := range pods {
		link := links[p.HostDev]
		if link.kind != "veth" {
			continue // not there, or not ours
		}
		have.PodLinks = append(have.PodLinks, p.HostDev)
		names[link.index] = p.HostDev
		if link.up {
			have.Links = append(have.Links, p.HostDev)
		}
		for _, s := range p.HostSysctls {
			value, told := link.sysctl(s.Key)
			if !told {
				var err error
				if value, err = readSysctl(s.Key); errors.Is(err, unix.ENOENT) {
					// The link goes this moment, or the kernel has no IPv6. There is nothing
					// to set, so it counts as set.
					value, err = s.Value, nil
				}
				if err != nil {
					return fmt.Errorf("read sysctl %s: %w", s.Key, err)
				}
			}
			have.Sysctls = append(have.Sysctls, netconf.Sysctl{Key: s.Key, Value: value})
		}
	}
	neighs, err := readNeighs(h, names)
	have.Neighs = append(have.Neighs, neighs...)
	return err
}

// ApplyNode adds, then removes; see netconf.Diff. An error in one object does
// not keep the others from being done. What can't be added on a link is a netconf.LinkError.
func (h *Host) ApplyNode(add, remove netconf.Node) error {
	var f failures
	for _, s := range add.Sysctls {
		if err := writeSysctl(s); err != nil && !h.isOfLostPod(s, err) {
			dev, _ := s.Link()
			if dev == "all" || dev == "default" {
				dev = "" // it is every link's
			}
			f.note(dev, err)
		}
	}
	for _, dev := range add.Links {
		if err := gone(h.on(dev, h.h.LinkSetUp)); err != nil {
			f.note(dev, fmt.Errorf("set link %s up: %w", dev, err))
		}
	}
	for _, a := range add.Addrs {
		f.noteAdd(a.Dev, h.on(a.Dev, func(l netlink.Link) error { return h.putAddr(l, a) }), "add address", a)
	}
	for _, n := range add.Neighs {
		f.noteAdd(n.Dev, gone(h.on(n.Dev, func(l netlink.Link) error { return h.h.NeighSet(neigh(n, l.Attrs().Index)) })), "set neighbour", n)
	}
	for _, r := range add.Routes {
		if r.Table == netconf.PodsTable {
			// The pod may be gone, with its link and all that is on it.
			f.noteAdd(r.Dev, gone(h.on(r.Dev, func(l netlink.Link) error { return h.claimRoute(r, l.Attrs().Index) })), "add route", r)
			continue
		}
		f.noteAdd(r.Dev, h.on(r.Dev, func(l netlink.Link) error { return h.putRoute(r, l.Attrs().Index) }), "add route", r)
	}
	for _, r := range add.Rules {
		if err := h.h.RuleAdd(netlinkRule(r)); !errors.Is(err, unix.EEXIST) {
			f.noteAdd("", err, "add rule", r)
		}
	}
	return errors.Join(f.join(), h.removeAll(remove))
}

// removeAll removes what is there of it.
func (h *Host) removeAll(remove netconf.Node) error {
	var f failures
	for _, r := range remove.Rules {
		f.noteAdd("", gone(h.h.RuleDel(netlinkRule(r))), "remove rule", r)
	}
	for _, r := range remove.Routes {
		f.noteAdd("", gone(h.on(r.Dev, func(l netlink.Link) error { return h.h.RouteDel(netlinkRoute(r, l.Attrs().Index)) })), "remove route", r)
	}
	for _, a := range remove.Addrs {
		f.noteAdd("", gone(h.on(a.Dev, func(l netlink.Link) error { return h.h.AddrDel(l, address(a)) })), "remove address", a)
	}
	return f.join()
}

// putRoute adds the route, or replaces one of ours to the same destination. One of others stays:
// what they added since the kernel was read, the next reading finds.
func (h *Host) putRoute(r netconf.Route, link int) error {
	b := &batch{}
	put := b.addRoute(r, link)
	err := h.conn.send(b)
	if !put.failed(unix.EEXIST) {
		return err
	}
	list, err := h.conn.routes(r.Dst.Addr().Is6())
	if err != nil {
		return err
	}
	for _, there := range list {
		// Of several with one metric the kernel lists, and would replace, this one first.
		if there.dst == r.Dst && there.table == r.Table && there.isInPlaceOf(r) {
			if !netconf.IsOurs(there.protocol) {
				return fmt.Errorf("table %d has another program's route to it: %w", r.Table, unix.EEXIST)
			}
			return h.h.RouteReplace(netlinkRoute(r, link))
		}
	}
	return put.err
}

// isOfLostPod tells whether a setting could not be written because the pod's link has
// gone since it was read.
func (h *Host) isOfLostPod(s netconf.Sysctl, err error) bool {
	dev, ofLink := s.Link()
	if !ofLink || !errors.Is(err, unix.ENOENT) {
		return false
	}
	_, err = h.findLink(dev)
	return notFound(err)
}

// putAddr adds the address. One that is to have no connected route is removed first: it may be
// there without that flag, and the kernel can't add the flag. Routes may go with it: read
// and apply again.
func (h *Host) putAddr(l netlink.Link, a netconf.Addr) error {
	if a.NoPrefixRoute {
		if err := gone(h.h.AddrDel(l, address(a))); err != nil {
			return err
		}
	}
	return h.h.AddrReplace(l, address(a))
}

func (h *Host) on(dev string, do func(netlink.Link) error) error {
	link, err := h.h.LinkByName(dev)
	if err != nil {
		return err
	}
	return do(link)
}

// gone makes a removal succeed if there was nothing to remove.
func gone(err error) error {
	if notFound(err) {
		return nil
	}
	return err
}

// MTU returns the MTU of an ENI's link in bytes, and an error where the node has no such link.
func (h *Host) MTU(dev string) (int, error) {
	link, err := h.findLink(dev)
	if err != nil {
		return 0, fmt.Errorf("read the MTU of an ENI link: %w", err)
	}
	return link.mtu, nil
}
