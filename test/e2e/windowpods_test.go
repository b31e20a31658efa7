package e2e

import (
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
)

// A pod of another main plugin has an address of enipool's and no link of enipool's.
func TestAFlowOfAPodOfPtpThatBeganWhileTheRulesetWasFlushedGetsTheNodesAddress(t *testing.T) {
	for name, s := range windowVariants(true) {
		t.Run(name, func(t *testing.T) {
			v := newVPC(t, s)
			v.plugin("DEL", "a")
			v.must(v.newAttachment(`{"cniVersion":"1.0.0","name":"pods","plugins":[{"cniVersion":"1.0.0","name":"pods","type":"ptp",`+
				`"ipam":{"type":"enipool","cachePath":"`+v.n.Cache.Path+`","waitForAddress":"0s"}}]}`, "a", nil).add())
			heard := udpSocket(t, v.internet, internet4+":5000", "")
			v.flushRuleset("ct state new udp dport 5000")
			flow := udpSocket(t, v.pods["a"], "10.0.0.11:4000", internet4+":5000")
			until(t, "the pod begins to send", func() bool { _, _ = flow.Write([]byte("?")); return v.counted() > 0 })
			v.reload()
			until(t, "the pod has the node's address", func() bool { return comesFrom(t, flow, heard, "10.0.0.10") })
		})
	}
}

// Somebody empties the set of the addresses that are translated, and the pool grows before
// anybody puts them back: what it lacked is not what is new.
func TestAFlowThatBeganWhileTheSetWasEmptyGetsTheNodesAddressWhereThePoolGrewToo(t *testing.T) {
	v := newVPC(t, windowVariants(true)["nftables"])
	heard := udpSocket(t, v.internet, internet4+":5000", "")
	v.flushRuleset("ct state new udp dport 5000")
	v.reload()
	v.node.Run(t, "nft", "flush set inet enipool pool4")
	flow := udpSocket(t, v.pods["a"], "10.0.0.11:4000", internet4+":5000")
	until(t, "the pod begins to send", func() bool { _, _ = flow.Write([]byte("?")); return v.counted() > 0 })
	grown := v.inv
	grown.Addresses = append(slices.Clone(grown.Addresses), eni.Address{Addr: netip.MustParseAddr("10.0.0.77"), ENI: 1})
	v.load(grown)
	until(t, "the pod has the node's address", func() bool { return comesFrom(t, flow, heard, "10.0.0.10") })
}

// comesFrom sends a datagram and tells whether one that is heard is from the address.
func comesFrom(t *testing.T, flow, heard *net.UDPConn, addr string) bool {
	t.Helper()
	_, _ = flow.Write([]byte("?"))
	if err := heard.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	_, sender, err := heard.ReadFromUDPAddrPort(make([]byte, 10))
	return err == nil && sender.Addr().Unmap().String() == addr
}

// A pod can't answer to itself, nor to the node's loopback address: what comes from there is
// given the node's, by a rule of its own that somebody takes away with `iptables -t nat -F
// POSTROUTING`, to set another masquerade.
func TestAFlowToAHostPortOfThePodItselfOrByTheLoopbackGoesOnAfterItsReturnRuleWasFlushed(t *testing.T) {
	flush := map[string]string{"nftables": "nft flush chain inet enipool-pods hairpin", "iptables": "iptables -t nat -F POSTROUTING"}
	for name, s := range windowVariants(true) {
		t.Run(name, func(t *testing.T) {
			v := newVPC(t, s)
			v.replacePod(v.builtIn(), "a", map[string]any{"portMappings": []port{udp(8080, 80)}})
			answerAll(t, v.pods["a"], "80")
			v.node.Run(t, "sh", "-c", flush[name])
			flows := map[string]*net.UDPConn{
				"itself":       udpSocket(t, v.pods["a"], "10.0.0.11:4000", "10.0.0.10:8080"),
				"the loopback": udpSocket(t, v.node, "127.0.0.1:4000", "127.0.0.1:8080"),
			}
			for from, flow := range flows {
				if answered(flow) {
					t.Fatalf("from %s: an answer without the rule", from)
				}
			}
			v.reload()
			for from, flow := range flows {
				until(t, "an answer to "+from, func() bool { return answered(flow) })
			}
		})
	}
}
