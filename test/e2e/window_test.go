package e2e

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// Where somebody flushes the ruleset and has NAT chains of his own, a flow that begins
// before ours are back is tracked without translation, for as long as the pod sends.
func TestAFlowThatBeganWhileTheRulesetWasFlushedGetsTheNodesAddress(t *testing.T) {
	for name, s := range windowVariants(true) {
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

// A port of the node that leads to a pod: a client that begins before ours are back is
// tracked as one of the node itself, for as long as it sends.
func TestAFlowToAHostPortThatBeganWhileTheRulesetWasFlushedReachesThePod(t *testing.T) {
	for name, s := range windowVariants(false) {
		t.Run(name, func(t *testing.T) {
			v := newVPC(t, s)
			v.replacePod(v.builtIn(), "a", map[string]any{"portMappings": []port{udp(8080, 80), udp(8081, 80).on("10.0.0.20")}})
			answerAll(t, v.pods["a"], "80")
			clients := map[string]*net.UDPConn{}
			v.flushRuleset("ct state new udp dport { 8080, 8081 }")
			for i, to := range []string{"10.0.0.10:8080", "10.0.0.20:8080", "10.0.0.20:8081"} {
				clients[to] = udpSocket(t, v.internet, fmt.Sprintf("%s:%d", internet4, 4000+i), to)
				until(t, "a flow to "+to+" begins", func() bool {
					_, _ = clients[to].Write([]byte("?"))
					return v.counted() > 0
				})
			}
			v.reload()
			for to, c := range clients {
				until(t, "an answer from "+to, func() bool { return answered(c) })
			}
		})
	}
}

// A connection's answers leave by the ENI that it came in by. One that begins before the
// rules for that are back is answered by a wrong ENI, where the VPC drops the answer; the
// kernel takes it for answered.
func TestAConnectionFromOutsideThatBeganWhileTheRulesetWasFlushedIsAnswered(t *testing.T) {
	nodePorts := []string{"add chain ip other pre { type nat hook prerouting priority -110; }",
		"add rule ip other pre ip daddr 10.0.0.20 meta l4proto { tcp, udp } th dport 30001 dnat to 10.0.0.11:80"}
	for name, s := range windowVariants(true) {
		for what, to := range map[string]string{"pod": "10.0.0.21:80", "NodePort": "10.0.0.20:30001"} {
			t.Run(name+", "+what, func(t *testing.T) {
				v := newVPC(t, s)
				for _, pod := range v.pods {
					answerAll(t, pod, "80")
				}
				v.flushRuleset("ct direction reply udp sport 80", nodePorts...)
				c := udpSocket(t, v.internet, internet4+":4000", to)
				until(t, "the pod's answer by a wrong ENI", func() bool {
					if answered(c) {
						t.Fatal("the flow has an answer while the rules are gone")
					}
					return v.counted() > 0
				})
				v.node.Run(t, "nft", "add rule ip other begun ct direction reply tcp sport 80 counter name begun")
				v.counted()
				dialed := make(chan string, 1)
				go func() { dialed <- queryWithin(time.Minute, v.internet, "tcp", to) }()
				until(t, "the pod's answer to a connection", func() bool { return v.counted() > 0 })
				v.reload()
				until(t, "an answer from "+to, func() bool { return answered(c) })
				if seen := <-dialed; seen != internet4 {
					t.Errorf("the connection: %s", seen)
				}
			})
		}
	}
}

// windowVariants are a node of each packet filter.
func windowVariants(snat bool) map[string]ipam.Settings {
	return map[string]ipam.Settings{
		"nftables": {Routing: ipam.Map, Firewall: ipam.Nftables, SNAT: snat, Families: []eni.Family{eni.IPv4}},
		"iptables": {Routing: ipam.Rule, Firewall: ipam.Iptables, SNAT: snat, Families: []eni.Family{eni.IPv4}},
	}
}

// flushRuleset removes all rules, and puts back others' alone: a NAT chain, which has the
// kernel settle at its first packet how a flow is translated, and a counter of what match
// matches.
func (v *vpc) flushRuleset(match string, more ...string) {
	v.t.Helper()
	rules := append([]string{"flush ruleset; add table ip other; add counter ip other begun",
		"add chain ip other post { type nat hook postrouting priority 90; }",
		"add chain ip other begun { type filter hook prerouting priority -140; }",
		"add rule ip other begun " + match + " counter name begun"}, more...)
	v.node.Run(v.t, "nft", strings.Join(rules, "; "))
	v.t.Cleanup(func() { v.node.Run(v.t, "nft", "delete table ip other") })
}

// counted is how many packets the counter of flushRuleset saw since it was asked last.
func (v *vpc) counted() (packets int) {
	v.t.Helper()
	text := v.node.Run(v.t, "nft", "reset", "counters", "table", "ip", "other")
	_, number, _ := strings.Cut(text, "packets ")
	_, err := fmt.Sscan(number, &packets)
	v.must(err)
	return packets
}

// answered asks once and waits a moment for an answer.
func answered(c *net.UDPConn) bool {
	_, _ = c.Write([]byte("?"))
	_ = c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	n, err := c.Read(make([]byte, 100))
	if err != nil {
		time.Sleep(20 * time.Millisecond) // a refusal comes at once
	}
	return err == nil && n > 0
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
