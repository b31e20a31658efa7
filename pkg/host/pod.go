package host

import (
	"errors"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/netconf"
	"golang.org/x/sys/unix"
)

// ErrLinkExists is returned by AddPod when the pod already has a link of the
// wanted name that is not ours to replace.
var ErrLinkExists = errors.New("link already exists in the pod")

// ErrNoLink is returned by ReadNode for an ENI without a link.
var ErrNoLink = errors.New("this node has no such link")

// AddPod makes the pod's veth pair and all that hangs on it, in four exchanges with
// the kernel. Where the pod's default route is another interface's it gets a routing
// table of its own, see netconf.Pod.Beside. On failure it leaves what it made: the
// caller runs DelPod, which it needs for a crash anyway.
func (h *Host) AddPod(ns *Netns, p netconf.Pod) error {
	pod, err := ns.dial()
	if err != nil {
		return err
	}
	defer pod.Close()
	node, err := h.addVeth(ns, p)
	if err != nil {
		return err
	}
	if err := h.setUpLink(p, node.index); err != nil {
		return err
	}
	if err := fillPod(ns, pod, p, node.peer); err != nil {
		return err
	}
	node, err = h.fillNode(p, node.index)
	if err != nil {
		return err
	}
	if err := confirmSettings(p, node); err != nil {
		return err
	}
	h.settle(pod, p, node)
	return nil
}

// setUpLink gives the node's end its name for people and its settings, then sets it
// up.
func (h *Host) setUpLink(p netconf.Pod, index int) error {
	ipv4 := map[uint16]uint32{}
	for _, s := range p.HostSysctls {
		if number, value, ok := ipv4Setting(s); ok {
			ipv4[number] = value
		} else if err := writeLinkSysctl(s); err != nil {
			return err
		}
	}
	b := &batch{}
	b.setLink(index, p.HostDev, p.Alias, ipv4)
	b.setUp(index, p.HostDev)
	return h.conn.send(b)
}

// confirmSettings writes those settings to their files that the link does not show: a kernel
// that takes no settings together with a link passes over them without an error.
func confirmSettings(p netconf.Pod, node linkState) error {
	for _, s := range p.HostSysctls {
		if value, ok := node.sysctl(s.Key); ok && value == s.Value {
			continue
		}
		if err := writeLinkSysctl(s); err != nil {
			return err
		}
	}
	return nil
}

// fillNode adds what the node holds for the pod and returns its link as it is then.
func (h *Host) fillNode(p netconf.Pod, index int) (linkState, error) {
	b := &batch{}
	for _, n := range p.HostNeighs {
		b.setNeigh(n, index)
	}
	removed := b.replaceRules(p.HostRules)
	// The route comes last: from here on the node finds the pod.
	var claims []*request
	for _, r := range p.HostRoutes {
		claims = append(claims, b.addRoute(r, index).tolerating(unix.EEXIST))
	}
	now := b.getLink(p.HostDev)
	if err := h.conn.send(b); err != nil {
		return linkState{}, err
	}
	for i, c := range claims {
		if c.done() {
			continue
		}
		if err := h.checkClaim(p.HostRoutes[i], index); err != nil {
			return linkState{}, err
		}
	}
	return parseLink(now.answer), h.conn.removeMore(removed, p.HostRules)
}

// fillPod adds what the pod holds, the default route of one family after the other. Where
// another interface has that of the first family, this one does not try for the second: of two
// ADDs at once in one pod one gets the default routes of both families, the other one none. Only
// another plugin's interface may split them.
func fillPod(ns *Netns, pod *conn, p netconf.Pod, index int) error {
	b := inPod()
	b.setUp(index, p.Dev)
	for _, a := range p.Addrs {
		b.addAddr(a, index)
	}
	for _, n := range p.Neighs {
		b.setNeigh(n, index)
	}
	for i, a := range p.Addrs {
		v6 := a.Prefix.Addr().Is6()
		claim := b.claimDefault(p.RoutesOf(v6), index)
		if err := sendInPod(ns, pod, b, p.Dev); err != nil {
			return err
		}
		if claim.lost() {
			for _, a := range p.Addrs[i:] {
				if err := pod.settleBeside(p, a, index); err != nil {
					return err
				}
			}
			return nil
		}
		if err := claim.failure(); err != nil {
			return err
		}
		b = inPod()
	}
	return nil
}

func inPod() *batch { return &batch{where: " in the pod"} }

// sendInPod sends, and switches IPv6 on where the pod's namespace was born with it off: the
// kernel refuses addresses of IPv6 with EACCES then, some with EPERM.
func sendInPod(ns *Netns, pod *conn, b *batch, dev string) error {
	err := pod.send(b)
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
		if err := enableIPv6(ns, dev); err != nil {
			return err
		}
		b.retry()
		err = pod.send(b)
	}
	return err
}

func enableIPv6(ns *Netns, dev string) error {
	on := netconf.Sysctl{Key: "net/ipv6/conf/" + dev + "/disable_ipv6", Value: "0"}
	return ns.within(func() error { return writeSysctl(on) })
}

// DelPod removes the owner's veth pair with the routes and neighbours on it, the link
// of an egress limit, and the rules of its addresses. What is missing is fine, and the
// pod's namespace is not needed.
func (h *Host) DelPod(k eni.Key, rules []netconf.Rule) error {
	if err := h.conn.delRules(rules); err != nil {
		return err
	}
	_, err := h.delPodLinks(netconf.HostDevice(k), netconf.HostMAC(k))
	if errors.Is(err, errNotOurs) {
		return nil // what has our link's name is another plugin's: there is none of ours
	}
	return err
}
