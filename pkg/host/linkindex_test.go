package host

import (
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nettest"
)

// A link that was made since for the same owner has the same name and another index.
func TestOnlyTheLinkThatWasSeenIsRemoved(t *testing.T) {
	onNode(t, func(ns nettest.Netns, h *Host) {
		k := eni.Key{Network: "pods", Container: "web", IfName: "eth0"}
		dev := netconf.HostDevice(k)
		index := func() int {
			t.Helper()
			i, err := h.LinkIndex(k)
			if err != nil {
				t.Fatal(err)
			}
			return i
		}
		if got := index(); got != 0 {
			t.Errorf("index %d without a link", got)
		}
		add := func() {
			ns.Run(t, "ip", "link", "add", dev, "address", netconf.HostMAC(k).String(), "type", "veth", "peer", "name", "far")
		}
		add()
		seen := index()
		ns.Run(t, "ip", "link", "del", dev)
		add()
		now := index()
		for _, old := range []int{0, seen} {
			if err := h.DelPodAt(k, old, nil); err != nil || index() != now {
				t.Errorf("by index %d: %v, the new link's index is %d, was %d", old, err, index(), now)
			}
		}
		if err := h.DelPodAt(k, now, nil); err != nil || index() != 0 {
			t.Errorf("%v, index %d", err, index())
		}
	})
}

// A sweep removes it by the index that it read before: the MAC says whose it is.
func TestALinkThatSomebodyRenamedIsRemovedByItsIndex(t *testing.T) {
	onNode(t, func(ns nettest.Netns, h *Host) {
		k := eni.Key{Network: "pods", Container: "web", IfName: "eth0"}
		ns.Run(t, "ip", "link", "add", "other", "address", netconf.HostMAC(k).String(), "type", "veth", "peer", "name", "far")
		index, err := h.LinkIndex(k)
		if err != nil || index == 0 {
			t.Fatalf("index %d, %v of a link that is called otherwise", index, err)
		}
		if err := h.DelPodAt(k, index, nil); err != nil {
			t.Fatal(err)
		}
		if there, err := h.HasLink("other"); err != nil || there {
			t.Errorf("it is still there, %v", err)
		}
		ns.Run(t, "ip", "link", "add", "others", "type", "veth", "peer", "name", "far")
		others, err := h.findLink("others")
		if err != nil {
			t.Fatal(err)
		}
		if err := h.DelPodAt(k, others.index, nil); err != nil {
			t.Fatal(err)
		}
		if there, err := h.HasLink("others"); err != nil || !there {
			t.Errorf("a link of others is gone, %v", err)
		}
	})
}
