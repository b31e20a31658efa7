package host

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/enipool/enipool/pkg/netconf"
	"golang.org/x/sys/unix"
)

// ipv4Setting returns the kernel's number and the value of a setting that can be
// made with the link's other properties, without a file.
func ipv4Setting(s netconf.Sysctl) (number uint16, value uint32, ok bool) {
	if !strings.HasPrefix(s.Key, "net/ipv4/conf/") {
		return 0, 0, false
	}
	n, err := strconv.ParseUint(s.Value, 10, 32)
	switch {
	case strings.HasSuffix(s.Key, "/rp_filter"):
		return atRPFilter + 1, uint32(n), err == nil
	case strings.HasSuffix(s.Key, "/forwarding"):
		return atForwarding + 1, uint32(n), err == nil
	}
	return 0, 0, false
}

// errNotOurs is returned for a veth pair of another plugin.
var errNotOurs = errors.New("it is not enipool's: its alias or its MAC is another's; remove it or give it another name")

// isOurs tells whether a veth link with the name of an owner's link is that owner's: the name
// alone does not say it, because aws-vpc-cni makes such names too. The MAC that was derived
// from the owner says it, and so does the alias. Programs that manage all links, such as
// systemd-networkd, may change one of the two, not both.
func (l linkState) isOurs(name string, mac netconf.MAC) bool {
	if string(l.mac) == string(mac[:]) {
		return true
	}
	owner, named := netconf.ParseAlias(l.alias)
	return named && netconf.HostDevice(owner.Key) == name
}

// findLink returns the node's link of the name. If there is none the error says so,
// see notFound.
func (h *Host) findLink(name string) (linkState, error) {
	b := &batch{where: h.where}
	r := b.getLink(name)
	if err := h.conn.send(b); err != nil {
		return linkState{}, err
	}
	return parseLink(r.answer), nil
}

// findLinkAt is findLink by the index.
func (h *Host) findLinkAt(index int) (linkState, error) {
	b := &batch{where: h.where}
	m := newMessage(unix.RTM_GETLINK, 0, linkPart(index, 0, 0)...)
	m.number(unix.IFLA_EXT_MASK, skipStats)
	r := b.add(m, "look up link %d", index)
	r.get = true
	if err := h.conn.send(b); err != nil {
		return linkState{}, err
	}
	return parseLink(r.answer), nil
}

// linkName returns the name of the link with the index, "" if there is none.
func (h *Host) linkName(index int) string {
	l, _ := h.findLinkAt(index)
	return l.name
}

// HasLink tells whether the node has a link of the name.
func (h *Host) HasLink(name string) (bool, error) {
	_, err := h.findLink(name)
	if notFound(err) {
		return false, nil
	}
	return err == nil, err
}

// addVeth makes the pair: the pod's end born in the pod under its final name, both
// with the addresses they keep. The node's end stays down until it has its settings:
// the pod must not reach a link that trusts it.
func (h *Host) addVeth(ns *Netns, p netconf.Pod) (linkState, error) {
	for second := false; ; second = true {
		b := &batch{}
		made := b.addVeth(p, ns.fd).tolerating(unix.EEXIST)
		// It tells both ends' indexes. Without the pair there need not be such a link.
		found := b.getLink(p.HostDev).tolerating(unix.ENODEV)
		if err := h.conn.send(b); err != nil {
			return linkState{}, err
		}
		if made.err == nil && found.err == nil {
			return parseLink(found.answer), nil
		}
		if made.err == nil {
			return linkState{}, fmt.Errorf("create veth %s: it was removed at once", p.HostDev)
		}
		// What an earlier life of the attachment left is replaced, once.
		stale := false
		if !second {
			var err error
			if stale, err = h.delPodLinks(p.HostDev, p.HostMAC); err != nil {
				return linkState{}, fmt.Errorf("create veth %s: %w", p.HostDev, err)
			}
		}
		if !stale {
			return linkState{}, fmt.Errorf("%w: %s in %s", ErrLinkExists, p.Dev, ns.Path)
		}
	}
}
