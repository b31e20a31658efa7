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
