package host

import (
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nettest"
)

// The kernel calls it "permission denied", which sends root looking for rights.
func TestAnAddressWhereIPv6IsOffSaysSo(t *testing.T) {
	onNode(t, func(ns nettest.Netns, h *Host) {
		ns.Run(t, "sysctl", "-q", "net.ipv6.conf.all.disable_ipv6=1")
		want := netconf.NewNode(nodeState(ipam.Map))
		want.Sysctls = nil
		err := h.ApplyNode(want, netconf.Node{})
		if err == nil || !strings.Contains(err.Error(), "disable_ipv6") || strings.Contains(err.Error(), "permission denied") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v", err)
		}
	})
}
