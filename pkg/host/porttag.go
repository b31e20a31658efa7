package host

import (
	"strconv"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/netconf"
)

// An address may lead ports of its former pod to the next one. What tells that a pod has
// asked for ports itself is the node's end of its link, which no two pods ever share: it
// is tagged before the first port leads to the pod, and the tag goes with it.

// portTag is the number. The kernel keeps a link's setting "tag" and makes nothing of it.
const portTag = 1886351988 // "port"

// TagPorts notes on the pod's link that it asked for host ports.
func (h *Host) TagPorts(k eni.Key) error {
	return writeSysctl(netconf.Sysctl{Key: "net/ipv4/conf/" + netconf.HostDevice(k) + "/tag", Value: strconv.Itoa(portTag)})
}

// PortTag tells whether the pod's link is there, and whether it is tagged.
func (h *Host) PortTag(k eni.Key) (linked, tagged bool, err error) {
	name := netconf.HostDevice(k)
	l, err := h.findLink(name)
	if notFound(err) || err == nil && !l.isOurs(name, netconf.HostMAC(k)) {
		return false, false, nil
	}
	tag, _ := l.sysctl("net/ipv4/conf/" + name + "/tag")
	return err == nil, tag == strconv.Itoa(portTag), err
}
