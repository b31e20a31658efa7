package host

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/netconf"
	"golang.org/x/sys/unix"
)

// Inside is what a link that another plugin made in a pod should carry. Routes
// with IfNone yield to what is already there.
type Inside struct {
	Dev    string
	Addrs  []netconf.Addr
	Routes []netconf.Route
}

// Link is what ReadLink tells of a pod's link.
type Link struct {
	MAC    string
	MTU    int
	Parent string // the node's link below a macvlan, ipvlan or vlan; "" for none
}

// ReadLink looks at a link in the pod. It returns an error that tells if the
// link is missing.
func (h *Host) ReadLink(ns *Netns, dev string) (Link, error) {
	pod, err := ns.open()
	if err != nil {
		return Link{}, err
	}
	defer pod.Close()
	link, err := pod.findLink(dev)
	if err != nil {
		return Link{}, err
	}
	l := Link{MAC: link.mac.String(), MTU: link.mtu}
	if link.hasParent() {
		// The index is the parent's in the namespace it is in, which is ours
		// unless somebody nests pods.
		l.Parent = h.linkName(link.peer)
	}
	return l, nil
}

// FillLink puts addresses and routes on a link that is there already.
func (h *Host) FillLink(ns *Netns, in Inside) error {
	pod, err := ns.open()
	if err != nil {
		return err
	}
	defer pod.Close()
	link, err := pod.findLink(in.Dev)
	if err != nil {
		return err
	}
	b := inPod()
	b.setUp(link.index, in.Dev)
	for _, a := range in.Addrs {
		b.addAddr(a, link.index)
	}
	if err := sendInPod(ns, pod.conn, b, in.Dev); err != nil {
		return err
	}
	for _, r := range in.Routes {
		b := inPod()
		added := b.addRoute(r, link.index)
		if r.IfNone {
			added.tolerating(unix.EEXIST)
		}
		if err := pod.conn.send(b); err != nil {
			return err
		}
	}
	return nil
}

// ClearLink takes addresses off a link in the pod; the kernel drops the routes
// with them. Missing ones are fine. That the link carries the address is the
// proof that the namespace is still the owner's.
func (h *Host) ClearLink(ns *Netns, in Inside) error {
	pod, err := ns.open()
	if err != nil {
		return err
	}
	defer pod.Close()
	link, err := pod.findLink(in.Dev)
	if notFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	b := inPod()
	for _, a := range in.Addrs {
		b.delAddr(a, link.index).tolerating(absent...).tolerating(unix.EADDRNOTAVAIL)
	}
	return pod.conn.send(b)
}

// CheckAddrs returns a line for each address that is not on the pod's link,
// whatever its mask there.
func (h *Host) CheckAddrs(ns *Netns, dev string, want []netip.Addr) ([]string, error) {
	pod, err := ns.open()
	if err != nil {
		return nil, err
	}
	defer pod.Close()
	link, err := pod.findLink(dev)
	if notFound(err) {
		return []string{"link " + dev + " is missing in the pod"}, nil
	}
	if err != nil {
		return nil, err
	}
	have, err := readAddrs(pod, map[int]string{link.index: link.name})
	if err != nil {
		return nil, err
	}
	var wrong []string
	for _, w := range want {
		if !slices.ContainsFunc(have, func(a netconf.Addr) bool { return a.Prefix.Addr() == w }) {
			wrong = append(wrong, fmt.Sprintf("address %s is missing on %s in the pod", w, dev))
		}
	}
	return wrong, nil
}
