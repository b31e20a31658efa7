package e2e

import (
	"net"
	"testing"
	"time"
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
