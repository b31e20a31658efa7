package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// Where somebody flushes the ruleset and has NAT chains of his own, a flow that begins
// before ours are back is tracked without translation, for as long as the pod sends.
func TestAFlowThatBeganWhileTheRulesetWasFlushedGetsTheNodesAddress(t *testing.T) {
	for name, s := range map[string]ipam.Settings{
		"nftables": {Routing: ipam.Map, Firewall: ipam.Nftables, SNAT: true, Families: []eni.Family{eni.IPv4}},
		"iptables": {Routing: ipam.Rule, Firewall: ipam.Iptables, SNAT: true, Families: []eni.Family{eni.IPv4}},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVPC(t, s)
			heard := udpSocket(t, v.internet, internet4+":5000", "")
			for id, from := range map[string]string{"a": "10.0.0.11", "b": "10.0.0.21"} {
				v.node.Run(t, "nft", "flush ruleset; add table ip other; add counter ip other begun;"+
					"add chain ip other post { type nat hook postrouting priority 90; }; add rule ip other post ct state new udp dport 5000 counter name begun")
				c := udpSocket(t, v.pods[id], from+":4000", internet4+":5000")
				until(t, "pod "+id+" begins to send", func() bool {
					_, _ = c.Write([]byte("?"))
					return !strings.Contains(v.node.Run(t, "nft", "list", "counters", "table", "ip", "other"), "packets 0 ")
				})
				v.reload()
				seen := ""
				until(t, "pod "+id+" has the node's address", func() bool {
					_, _ = c.Write([]byte("?"))
					v.must(heard.SetReadDeadline(time.Now().Add(100 * time.Millisecond)))
					_, sender, err := heard.ReadFromUDPAddrPort(make([]byte, 10))
					if err == nil {
						seen = sender.Addr().Unmap().String()
					}
					return seen == "10.0.0.10"
				})
			}
			v.node.Run(t, "nft", "delete table ip other")
		})
	}
}

// until repeats what may fail at first.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !done(); {
		if time.Now().After(end) {
			t.Fatalf("not within 10 seconds: %s", what)
		}
	}
}
