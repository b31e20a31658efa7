package host

import (
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nettest"
)

// The tag is the link's: the next link of the same name has none, and another plugin's is
// nobody's.
func TestATagTellsWhichLinkIsOfAPodWithPorts(t *testing.T) {
	onNode(t, func(ns nettest.Netns, h *Host) {
		k := eni.Key{Network: "pods", Container: "web", IfName: "eth0"}
		dev := netconf.HostDevice(k)
		is := func(when string, wantLinked, wantTagged bool) {
			t.Helper()
			if linked, tagged, err := h.PortTag(k); err != nil || linked != wantLinked || tagged != wantTagged {
				t.Errorf("%s: linked %v, tagged %v, %v", when, linked, tagged, err)
			}
		}
		add := func(mac string) {
			ns.Run(t, "ip", "link", "add", dev, "address", mac, "type", "veth", "peer", "name", "far")
		}
		ours := netconf.HostMAC(k).String()
		is("without a link", false, false)
		if h.TagPorts(k) == nil {
			t.Error("a link that is not there is tagged")
		}
		add(ours)
		is("a new link", true, false)
		if err := h.TagPorts(k); err != nil {
			t.Fatal(err)
		}
		is("tagged", true, true)
		ns.Run(t, "ip", "link", "set", dev, "up")
		ns.Run(t, "ip", "link", "set", dev, "down", "mtu", "1400")
		is("tagged, down", true, true)
		ns.Run(t, "ip", "link", "del", dev)
		add(ours)
		is("the next link", true, false)
		ns.Run(t, "ip", "link", "del", dev)
		add("02:00:00:00:00:01")
		is("another plugin's", false, false)
	})
}
