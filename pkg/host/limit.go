package host

import (
	"fmt"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Limit is a pod's link with the limits on its traffic.
type Limit struct {
	HostDev string // the node's end of the pod's veth pair
	Dev     string // what the pod sends waits on it, see netconf.LimitDevice
	Alias   string // of Dev
	netconf.Limits
}

// limitGroup marks the two links of a pod with an egress limit, so that they can
// be removed together. The other bits are the index of the pod's link, so no two
// pods share a group.
const limitGroup = 0x70000000

// SetLimits limits what the pod receives by a token bucket on the node's end of
// its link. What the pod sends comes in there, where nothing can wait, so it takes
// the way out of a link of its own that has such a bucket.
func (h *Host) SetLimits(l Limit) error {
	link, err := h.findLink(l.HostDev)
	if err != nil {
		return err
	}
	if l.Ingress != (netconf.Limit{}) {
		if err := addBucket(link.index, l.Ingress.Bucket()); err != nil {
			return fmt.Errorf("limit what goes to %s: %w", l.HostDev, err)
		}
	}
	if l.Egress == (netconf.Limit{}) {
		return nil
	}
	return h.limitEgress(link, l)
}

func (h *Host) limitEgress(link linkState, l Limit) error {
	index := link.index
	group := limitGroup | uint32(index)
	if err := addWaiting(l.Dev, uint32(link.mtu), group); err != nil {
		return fmt.Errorf("create link %s: %w", l.Dev, err)
	}
	wait, err := h.findLink(l.Dev)
	if err != nil {
		return err
	}
	b := &batch{}
	b.setLink(wait.index, l.Dev, l.Alias, nil)
	if err := h.conn.send(b); err != nil {
		return err
	}
	if err := addBucket(wait.index, l.Egress.Bucket()); err != nil {
		return fmt.Errorf("limit what goes out of %s: %w", l.Dev, err)
	}
	b = &batch{}
	b.setGroup(index, l.HostDev, group)
	if err := h.conn.send(b); err != nil {
		return err
	}
	if err := addRedirect(index, wait.index); err != nil {
		return fmt.Errorf("lead what comes in by %s to %s: %w", l.HostDev, l.Dev, err)
	}
	return nil
}

// addWaiting makes a link of type ifb that is up: what is led to it waits in its
// queue and goes on where it came from.
func addWaiting(name string, mtu, group uint32) error {
	r := nl.NewNetlinkRequest(unix.RTM_NEWLINK, unix.NLM_F_CREATE|unix.NLM_F_EXCL|unix.NLM_F_ACK)
	head := nl.NewIfInfomsg(unix.AF_UNSPEC)
	head.Flags, head.Change = unix.IFF_UP, unix.IFF_UP
	r.AddData(head)
	r.AddData(nl.NewRtAttr(unix.IFLA_IFNAME, zeroEnded(name)))
	for kind, value := range map[int]uint32{unix.IFLA_MTU: mtu, unix.IFLA_TXQLEN: 0, unix.IFLA_NUM_TX_QUEUES: 1, unix.IFLA_NUM_RX_QUEUES: 1, unix.IFLA_GROUP: group} {
		r.AddData(nl.NewRtAttr(kind, u32s(value)))
	}
	info := nl.NewRtAttr(unix.IFLA_LINKINFO, nil)
	info.AddRtAttr(unix.IFLA_INFO_KIND, zeroEnded("ifb"))
	r.AddData(info)
	_, err := r.Execute(unix.NETLINK_ROUTE, 0)
	return err
}

// ClearLimits removes the link of an egress limit, and the pod's link with it:
// the kernel needs as long for one as for both. A limit on the pod's link goes
// with that link.
func (h *Host) ClearLimits(dev string) error {
	link, err := h.findLink(dev)
	if notFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if link.kind != "ifb" {
		return fmt.Errorf("remove link %s: it is a %s link of somebody else's", dev, link.kind)
	}
	if group := link.group; group&limitGroup == limitGroup {
		r := nl.NewNetlinkRequest(unix.RTM_DELLINK, unix.NLM_F_ACK)
		r.AddData(nl.NewIfInfomsg(unix.AF_UNSPEC))
		r.AddData(nl.NewRtAttr(unix.IFLA_GROUP, u32s(group)))
		_, err = r.Execute(unix.NETLINK_ROUTE, 0)
	} else {
		b := &batch{}
		b.delLink(link.index, dev)
		err = h.conn.send(b)
	}
	if gone(err) != nil {
		return fmt.Errorf("remove link %s: %w", dev, err)
	}
	return nil
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
	leads, err := redirects(link.index)
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
	have, found, err := readBucket(link.index)
	if err != nil {
		return nil, fmt.Errorf("read qdisc of %s: %w", dev, err)
	}
	have.Burst = want.Burst // the kernel tells it in ticks, and limit holds it too
	if !found || have != want {
		return []string{fmt.Sprintf("link %s lacks %s", dev, want)}, nil
	}
	return nil, nil
}
