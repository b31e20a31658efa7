package host

import (
	"fmt"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/netconf"
	"golang.org/x/sys/unix"
)

// Limit is a pod's link with the limits on its traffic.
type Limit struct {
	HostDev string // the node's end of the pod's veth pair
	Dev     string // what the pod sends waits on it, see netconf.LimitDevice
	Alias   string // of Dev
	netconf.Limits
}

// SetLimits limits what the pod receives by a token bucket on the node's end of
// its link. What the pod sends comes in there, where nothing can wait, so it takes
// the way out of a link of its own that has such a bucket.
func (h *Host) SetLimits(l Limit) error {
	link, err := h.findLink(l.HostDev)
	if err != nil {
		return err
	}
	b := &batch{}
	if l.Ingress != (netconf.Limit{}) {
		b.addBucket(link.index, l.Ingress.Bucket(), "limit what goes to %s", l.HostDev)
	}
	if l.Egress == (netconf.Limit{}) {
		return h.conn.send(b)
	}
	group := limitGroup(link.index)
	b.addWaiting(l.Dev, uint32(link.mtu), group)
	made := b.getLink(l.Dev)
	if err := h.conn.send(b); err != nil {
		return err
	}
	wait := parseLink(made.answer).index
	b = &batch{}
	b.setLink(wait, l.Dev, l.Alias, nil)
	// A link that is up would have to be quiet while it gets another queue, for which
	// the kernel waits longer than for all the rest.
	b.addBucket(wait, l.Egress.Bucket(), "limit what goes out of %s", l.Dev)
	b.setUp(wait, l.Dev)
	b.setGroup(link.index, l.HostDev, group)
	b.addRedirect(link.index, wait, "lead what comes in by %s to "+l.Dev, l.HostDev)
	return h.conn.send(b)
}

// addWaiting makes a link of type ifb: what is led to it waits in its queue and goes on
// where it came from.
func (b *batch) addWaiting(name string, mtu, group uint32) *request {
	m := newMessage(unix.RTM_NEWLINK, unix.NLM_F_CREATE|unix.NLM_F_EXCL, linkPart(0, 0, 0)...)
	m.text(unix.IFLA_IFNAME, name)
	m.number(unix.IFLA_MTU, mtu)
	m.number(unix.IFLA_TXQLEN, 0)
	m.number(unix.IFLA_NUM_TX_QUEUES, 1)
	m.number(unix.IFLA_NUM_RX_QUEUES, 1)
	m.number(unix.IFLA_GROUP, group)
	m.nest(unix.IFLA_LINKINFO, nil, func() { m.text(unix.IFLA_INFO_KIND, "ifb") })
	return b.add(m, "create link %s", name)
}

// ClearLimits removes the link of an egress limit. A limit on the pod's link goes with
// that link.
func (h *Host) ClearLimits(dev string) error {
	link, err := h.findLink(dev)
	if notFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if link.kind != "ifb" {
		return fmt.Errorf("remove link %s: it is a %s link of somebody else's", link.name, link.kind)
	}
	b := &batch{}
	b.delLink(link.index, "link "+dev)
	return gone(h.conn.send(b))
}

// LimitKeys returns whose egress limits there are.
func (h *Host) LimitKeys() ([]eni.Key, error) {
	list, _, err := h.links()
	var keys []eni.Key
	for _, l := range list {
		owner, ok := netconf.ParseAlias(l.alias)
		if ok && l.kind == "ifb" && l.name == netconf.LimitDevice(owner.Key) {
			keys = append(keys, owner.Key)
		}
	}
	return keys, err
}

// CheckLimits returns a line for each limit that is not there as wanted.
func (h *Host) CheckLimits(l Limit) ([]string, error) {
	var lines []string
	for _, part := range []struct {
		dev   string
		limit netconf.Limit
	}{{l.HostDev, l.Ingress}, {l.Dev, l.Egress}} {
		if part.limit == (netconf.Limit{}) {
			continue
		}
		wrong, err := h.checkBucket(part.dev, part.limit.Bucket())
		if err != nil {
			return lines, err
		}
		lines = append(lines, wrong...)
	}
	if l.Egress == (netconf.Limit{}) {
		return lines, nil
	}
	link, err := h.findLink(l.HostDev)
	if err != nil {
		return lines, gone(err) // told by whoever checks the link
	}
	wait, err := h.findLink(l.Dev)
	if err != nil {
		return lines, gone(err) // told above
	}
	if !wait.up {
		lines = append(lines, fmt.Sprintf("link %s is down, so nothing that comes in by %s passes", l.Dev, l.HostDev))
	}
	leads, err := h.conn.leads(link.index, wait.index)
	if err == nil && !leads {
		lines = append(lines, fmt.Sprintf("what comes in by %s is not led to %s", l.HostDev, l.Dev))
	}
	return lines, err
}

func (h *Host) checkBucket(dev string, want netconf.Bucket) ([]string, error) {
	link, err := h.findLink(dev)
	if notFound(err) {
		return []string{"link " + dev + " is missing: " + want.String()}, nil
	}
	if err != nil {
		return nil, err
	}
	have, found, err := h.conn.readBucket(link.index)
	if err != nil {
		return nil, fmt.Errorf("read qdisc of %s: %w", dev, err)
	}
	have.Burst = want.Burst // the kernel tells it in ticks, and limit holds it too
	if !found || have != want {
		return []string{fmt.Sprintf("link %s lacks %s", dev, want)}, nil
	}
	return nil, nil
}
