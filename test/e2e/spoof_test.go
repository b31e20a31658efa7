package e2e

import (
	"strings"
	"testing"
)

// systemd-networkd and avahi give links addresses of their own. With one on the node's end of
// a pod's link and the loose rp_filter for all links, the kernel itself lets any source pass.
func TestAPodCannotSendWithAForeignAddressWhereItsLinkHasOne(t *testing.T) {
	for name, s := range windowVariants(true) {
		t.Run(name, func(t *testing.T) {
			v := newVPC(t, s)
			link := v.linkTo("10.0.0.21")
			v.node.Run(t, "nft", "add table inet watch; add chain inet watch forward { type filter hook forward priority 0; };"+
				"add counter inet watch foreign; add rule inet watch forward ip saddr 10.0.77.7 counter name foreign")
			t.Cleanup(func() { v.node.Run(t, "nft", "delete table inet watch") })
			v.pods["b"].Run(t, "ip", "addr", "add", "10.0.77.7/32", "dev", "eth0")
			forwarded := func() bool {
				_, _ = v.pods["b"].Try("ping", "-c", "2", "-i", "0.2", "-W", "0.1", "-I", "10.0.77.7", internet4)
				return !strings.Contains(v.node.Run(t, "nft", "reset", "counters", "table", "inet", "watch"), "packets 0 ")
			}
			v.node.Run(t, "sh", "-c", "ip addr add 169.254.9.9/16 dev "+link+"; echo 2 > /proc/sys/net/ipv4/conf/all/rp_filter")
			if !forwarded() {
				t.Error("before the repair no foreign source passes: this shows nothing")
			}
			if lines := v.checkNode(); !strings.Contains(strings.ToLower(strings.Join(lines, "\n")), "spoof") {
				t.Errorf("check: %q", lines)
			}
			v.reload()
			if forwarded() {
				t.Error("packets with a foreign source were forwarded")
			}
			v.pods["b"].Run(t, "ping", "-c", "1", "-W", "5", internet4)
			v.node.Run(t, "ip", "addr", "flush", "dev", link)
			v.reload()
			if lines := v.checkNode(); len(lines) > 0 || forwarded() {
				t.Errorf("without the address: %q", lines)
			}
		})
	}
}

// linkTo is the link of the node by which it reaches the pod with the address.
func (v *vpc) linkTo(addr string) string {
	v.t.Helper()
	_, dev, _ := strings.Cut(v.node.Run(v.t, "ip", "route", "show", "table", "100", addr), " dev ")
	return strings.Fields(dev)[0]
}
