package host

import (
	"fmt"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/netconf"
)

// LinkIndex returns the index of the owner's link, 0 if there is none. No link that is
// made later has it.
func (h *Host) LinkIndex(k eni.Key) (int, error) {
	link, err := h.h.LinkByName(netconf.HostDevice(k))
	if notFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("look up %s: %w", netconf.HostDevice(k), err)
	}
	return link.Attrs().Index, nil
}

// DelPodAt is DelPod for a link that was there before: one of the same name that was made
// since, for the same owner, stays.
func (h *Host) DelPodAt(k eni.Key, index int, rules []netconf.Rule) error {
	if err := h.delRules(rules); err != nil || index == 0 {
		return err
	}
	link, err := h.h.LinkByIndex(index)
	if err == nil && (link.Attrs().Name != netconf.HostDevice(k) || link.Type() != "veth" || !isOurs(link, netconf.HostMAC(k))) {
		return nil
	}
	if err == nil {
		err = h.h.LinkDel(link)
	}
	if err != nil && !notFound(err) {
		return fmt.Errorf("remove veth %s: %w", netconf.HostDevice(k), err)
	}
	return nil
}
