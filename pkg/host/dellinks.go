package host

import (
	"fmt"
	"slices"

	"github.com/enipool/enipool/pkg/netconf"
	"golang.org/x/sys/unix"
)

// limitGroup is the group of the two links of a pod with an egress limit, by which they
// can be removed together. It holds the index of the pod's link, so no two pods share it.
// Others give links groups as they like: see onlyThese.
func limitGroup(podLink int) uint32 { return 0x70000000 | uint32(podLink) }

// delPodLinks removes a pod's link, with the routes and neighbours on it, and that of its
// egress limit. It tells whether the pod's was there, by whatever name. A link that has the name
// and is not ours is an error, which comes after the limit's link is removed.
func (h *Host) delPodLinks(hostDev string, mac netconf.MAC) (found bool, err error) {
	b := &batch{}
	first := b.getLink(hostDev).tolerating(unix.ENODEV)
	second := b.getLink(netconf.LimitDeviceBeside(hostDev)).tolerating(unix.ENODEV)
	if err := h.conn.send(b); err != nil {
		return false, err
	}
	veth, limit := parseLink(first.answer), parseLink(second.answer)
	limited := limit.kind == "ifb"
	if found = first.done(); found {
		err = veth.checkOurs(mac)
	} else {
		veth.index, err = h.findRenamed(mac)
		found = veth.index != 0
	}
	ours := found && err == nil
	b = &batch{}
	if group := limitGroup(veth.index); ours && limited && h.onlyThese(group, veth.index, limit.index) {
		// The kernel needs as long for one link as for both.
		b.delGroup(group, hostDev+" and "+limit.name).tolerating(unix.ENODEV)
	} else {
		if limited {
			b.delLink(limit.index, limit.name).tolerating(unix.ENODEV)
		}
		if ours {
			b.delLink(veth.index, hostDev).tolerating(unix.ENODEV)
		}
	}
	if sent := h.conn.send(b); sent != nil {
		return found, sent
	}
	return found, err
}

// findRenamed returns the index of the veth link with the MAC, 0 if there is none: that of a
// pod whose link somebody gave another name has it still.
func (h *Host) findRenamed(mac netconf.MAC) (int, error) {
	list, _, err := h.links()
	for i := range list {
		if l := &list[i]; string(l.mac) == string(mac[:]) && l.kind == "veth" {
			return l.index, nil
		}
	}
	return 0, err
}

// checkOurs returns why a link with the name of a pod's is not to be removed.
func (l linkState) checkOurs(mac netconf.MAC) error {
	switch {
	case l.kind != "veth":
		return fmt.Errorf("remove veth %s: it is a %s link of somebody else's", l.name, l.kind)
	case !l.isOurs(l.name, mac):
		return fmt.Errorf("remove veth %s: %w", l.name, errNotOurs)
	}
	return nil
}

// onlyThese tells whether exactly these links have the group. What can't be told is false.
func (h *Host) onlyThese(group uint32, a, b int) bool {
	list, _, err := h.links()
	list = slices.DeleteFunc(list, func(l linkState) bool { return l.group != group })
	return err == nil && len(list) == 2 && !slices.ContainsFunc(list, func(l linkState) bool { return l.index != a && l.index != b })
}

// delGroup removes all links of the group.
func (b *batch) delGroup(group uint32, names string) *request {
	m := newMessage(unix.RTM_DELLINK, 0, linkPart(0, 0, 0)...)
	m.number(unix.IFLA_GROUP, group)
	return b.add(m, "remove %s", names)
}
