package host

import (
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/netconf"
)

// LinkIndex returns the index of the owner's link, whatever its name is by now, 0 if there is
// none. No link that is made later has it.
func (h *Host) LinkIndex(k eni.Key) (int, error) {
	l, err := h.findLink(netconf.HostDevice(k))
	if notFound(err) {
		return h.findRenamed(netconf.HostMAC(k))
	}
	return l.index, err
}

// DelPodAt is DelPod for a link that was there before: one of the same name that was made
// since, for the same owner, stays.
func (h *Host) DelPodAt(k eni.Key, index int, rules []netconf.Rule) error {
	if err := h.conn.delRules(rules); err != nil || index == 0 {
		return err
	}
	l, err := h.findLinkAt(index)
	if err == nil && (l.kind != "veth" || !l.isOurs(netconf.HostDevice(k), netconf.HostMAC(k))) {
		return nil
	}
	if err == nil {
		b := &batch{}
		b.delLink(index, l.name)
		err = h.conn.send(b)
	}
	return gone(err)
}
