package host

import (
	"errors"
	"fmt"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/isolate"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// ErrLinkExists is returned by AddPod when the pod already has a link of the
// wanted name that is not ours to replace.
var ErrLinkExists = errors.New("link already exists in the pod")

// AddPod makes the pod's veth pair and all that hangs on it. What an earlier
// life of the address left on the node is replaced. On failure it leaves what it
// made: the caller runs DelPod, which it needs for a crash anyway.
func (h *Host) AddPod(ns *Netns, p netconf.Pod) error {
	pod, err := ns.handle()
	if err != nil {
		return err
	}
	defer pod.Close()
	link, err := h.addVeth(ns, p)
	if err != nil {
		return err
	}
	// The peer's index is known from our end; asking the pod would be a call more.
	hostLink, podLink := link.Attrs().Index, link.Attrs().ParentIndex
	if err := h.h.LinkSetAlias(link, p.Alias); err != nil {
		return fmt.Errorf("set alias of %s: %w", p.HostDev, err)
	}
	for _, s := range p.HostSysctls {
		if err := writeLinkSysctl(s); err != nil {
			return err
		}
	}
	if err := h.h.LinkSetUp(link); err != nil {
		return fmt.Errorf("set %s up: %w", p.HostDev, err)
	}
	if err := fillPod(ns, pod, p, podLink); err != nil {
		return err
	}
	if err := h.fillNode(p, hostLink); err != nil {
		return err
	}
	h.settle(pod, p, hostLink)
	return nil
}

// settle returns when the kernel has done what it does in the background for a
// new link, normally at once: until then the pod's first packets get lost. Where
// it takes longer than a moment the pod is none the worse than without waiting.
func (h *Host) settle(pod *netlink.Handle, p netconf.Pod, hostLink int) {
	// The end that was up before the other drops what it should send until its
	// carrier is noticed. Kernels since 6.8 notice it when they are asked.
	await(func() bool {
		link, err := h.h.LinkByIndex(hostLink)
		return err != nil || link.Attrs().OperState == netlink.OperUp
	})
	for _, a := range p.Addrs {
		if a.Prefix.Addr().Is6() {
			// An IPv6 address takes packets once it has its local route.
			await(func() bool {
				routes, err := pod.RouteGet(a.Prefix.Addr().AsSlice())
				return err == nil && len(routes) == 1 && routes[0].Type == unix.RTN_LOCAL
			})
		}
	}
}

// await asks, for a tenth of a second at most, until done.
func await(done func() bool) {
	for range 500 {
		if done() {
			return
		}
		time.Sleep(200 * time.Microsecond)
	}
}

// addVeth makes the pair in one message: the pod's end born in the pod under its
// final name, both with the addresses they keep. The node's end stays down until
// it has its settings: the pod must not reach a link that trusts it.
func (h *Host) addVeth(ns *Netns, p netconf.Pod) (netlink.Link, error) {
	// One queue is what a veth uses unless told otherwise; the kernel would make one
	// for each possible CPU, at both ends, which costs time and memory a pod.
	v := netlink.NewVeth(netlink.LinkAttrs{Name: p.HostDev, MTU: p.MTU, TxQLen: -1, NumTxQueues: 1, NumRxQueues: 1,
		HardwareAddr: p.HostMAC[:]})
	v.PeerName, v.PeerHardwareAddr, v.PeerMTU = p.Dev, p.MAC[:], uint32(p.MTU)
	v.PeerNamespace = netlink.NsFd(ns.file.Fd())
	err := h.h.LinkAdd(v)
	if errors.Is(err, unix.EEXIST) {
		var stale bool
		if stale, err = h.delVeth(p.HostDev, p.HostMAC); err == nil && !stale {
			return nil, fmt.Errorf("%w: %s in %s", ErrLinkExists, p.Dev, ns.Path)
		}
		if err == nil {
			err = h.h.LinkAdd(v)
		}
		if errors.Is(err, unix.EEXIST) {
			return nil, fmt.Errorf("%w: %s in %s", ErrLinkExists, p.Dev, ns.Path)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("create veth %s: %w", p.HostDev, err)
	}
	link, err := h.h.LinkByName(p.HostDev)
	if err != nil {
		return nil, fmt.Errorf("look up veth %s: %w", p.HostDev, err)
	}
	return link, nil
}

func fillPod(ns *Netns, pod *netlink.Handle, p netconf.Pod, index int) error {
	link := &netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: index, Name: p.Dev}}
	if err := pod.LinkSetUp(link); err != nil {
		return fmt.Errorf("set %s up in the pod: %w", p.Dev, err)
	}
	for _, a := range p.Addrs {
		if err := addAddr(ns, pod, link, a); err != nil {
			return fmt.Errorf("add address %s in the pod: %w", a, err)
		}
	}
	for _, n := range p.Neighs {
		if err := pod.NeighSet(neigh(n, index)); err != nil {
			return fmt.Errorf("set neighbour %s in the pod: %w", n, err)
		}
	}
	for _, r := range p.Routes {
		if err := pod.RouteReplace(route(r, index)); err != nil {
			return fmt.Errorf("add route %s in the pod: %w", r, err)
		}
	}
	return nil
}

// addAddr adds an address to a link in the pod, switching IPv6 on where the
// pod's namespace was born with it off.
func addAddr(ns *Netns, pod *netlink.Handle, link netlink.Link, a netconf.Addr) error {
	err := pod.AddrAdd(link, address(a))
	if a.Prefix.Addr().Is6() && (errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM)) {
		on := netconf.Sysctl{Key: "net/ipv6/conf/" + link.Attrs().Name + "/disable_ipv6", Value: "0"}
		if err := isolate.In(ns.file, func() error { return writeSysctl(on) }); err != nil {
			return err
		}
		err = pod.AddrAdd(link, address(a))
	}
	return err
}

func (h *Host) fillNode(p netconf.Pod, index int) error {
	for _, n := range p.HostNeighs {
		if err := h.h.NeighSet(neigh(n, index)); err != nil {
			return fmt.Errorf("set neighbour %s: %w", n, err)
		}
	}
	if err := h.delRules(p.HostRules); err != nil {
		return err
	}
	if err := h.addRules(p.HostRules); err != nil {
		return err
	}
	// The route comes last: from here on the node finds the pod.
	for _, r := range p.HostRoutes {
		if err := h.claimRoute(r, index); err != nil {
			return err
		}
	}
	return nil
}

func (h *Host) addRules(rules []netconf.Rule) error {
	for _, r := range rules {
		if err := h.h.RuleAdd(rule(r)); err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("add rule %s: %w", r, err)
		}
	}
	return nil
}

// delRules removes every rule of ours of the same source at the same priority,
// whatever table it leads to: a stale one would send a pod out through the wrong ENI.
// Those of others tell that the address is held, see Occupancy.
func (h *Host) delRules(rules []netconf.Rule) error {
	for _, r := range rules {
		any := rule(netconf.Rule{Priority: r.Priority, IPv6: r.IPv6, From: r.From})
		any.Table = unix.RT_TABLE_UNSPEC
		for {
			err := h.h.RuleDel(any)
			if notFound(err) {
				break
			}
			if err != nil {
				return fmt.Errorf("remove rules %d from %s: %w", r.Priority, r.From, err)
			}
		}
	}
	return nil
}

// AddRules adds source rules of an address that has no link of ours.
func (h *Host) AddRules(rules []netconf.Rule) error {
	if err := h.delRules(rules); err != nil {
		return err
	}
	return h.addRules(rules)
}

// DelPod removes the owner's veth pair with the routes and neighbours on it, and the
// rules of its addresses. What is missing is fine, and the pod's namespace is not
// needed.
func (h *Host) DelPod(k eni.Key, rules []netconf.Rule) error {
	if err := h.delRules(rules); err != nil {
		return err
	}
	_, err := h.delVeth(netconf.HostDevice(k), netconf.HostMAC(k))
	if errors.Is(err, errNotOurs) {
		return nil // what has our link's name is another plugin's: there is none of ours
	}
	return err
}

// errNotOurs is returned for a veth pair of another plugin.
var errNotOurs = errors.New("it is not enipool's: its alias or its MAC is another's; remove it or give it another name")

// isOurs tells whether a veth link with the name of an owner's link is that owner's.
// The alias says so, or, before an ADD has set it, the MAC that was made of the
// owner: aws-vpc-cni calls its links the same.
func isOurs(link netlink.Link, mac netconf.MAC) bool {
	attrs := link.Attrs()
	owner, named := netconf.ParseAlias(attrs.Alias)
	if attrs.Alias == "" {
		return attrs.HardwareAddr.String() == mac.String()
	}
	return named && netconf.HostDevice(owner.Key) == attrs.Name
}

// delVeth removes the link if it is a veth of ours, and tells whether it did.
func (h *Host) delVeth(name string, mac netconf.MAC) (bool, error) {
	link, err := h.h.LinkByName(name)
	if err == nil && link.Type() != "veth" {
		return false, fmt.Errorf("remove veth %s: it is a %s link of somebody else's", name, link.Type())
	}
	if err == nil && !isOurs(link, mac) {
		return false, fmt.Errorf("remove veth %s: %w", name, errNotOurs)
	}
	if err == nil {
		err = h.h.LinkDel(link)
	}
	switch {
	case notFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("remove veth %s: %w", name, err)
	}
	return true, nil
}

// HasLink tells whether the node has a link of the name.
func (h *Host) HasLink(name string) (bool, error) {
	_, err := h.h.LinkByName(name)
	if notFound(err) {
		return false, nil
	}
	return err == nil, err
}
