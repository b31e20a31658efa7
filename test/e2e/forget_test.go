package e2e

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/nettest"
)

// A pod's session with a service behind a tunnel, which nobody answers, as to a log server:
// it has the pod's address for good. Forgotten, it would move to another endpoint.
func TestASessionByATunnelOutlivesARepairOfTheRules(t *testing.T) {
	for name, s := range windowVariants(true) {
		t.Run(name, func(t *testing.T) {
			v := newVPC(t, s)
			v.node.Run(t, "sh", "-c", `ip link add tun0 type ifb; ip link set tun0 arp off up; ip route add 192.168.0.0/16 dev tun0
				nft 'add table ip svc; add counter ip svc one; add counter ip svc two; add chain ip svc p { type nat hook prerouting priority -100; }
				add rule ip svc p ip daddr 10.96.0.50 udp dport 514 dnat to numgen inc mod 2 map { 0 : 192.168.1.1, 1 : 192.168.1.2 }
				add chain ip svc f { type filter hook forward priority 0; }
				add rule ip svc f ip daddr 192.168.1.1 counter name one; add rule ip svc f ip daddr 192.168.1.2 counter name two'`)
			t.Cleanup(func() { v.node.Run(t, "sh", "-c", "nft delete table ip svc; ip link del tun0") })
			session := udpSocket(t, v.pods["a"], "10.0.0.11:4000", "10.96.0.50:514")
			endpoints := func() (used []string) {
				for _, counter := range []string{"one", "two"} {
					if !strings.Contains(v.node.Run(t, "nft", "list", "counter", "ip", "svc", counter), "packets 0 ") {
						used = append(used, counter)
					}
				}
				return used
			}
			log := func(times int) {
				for range times {
					_, err := session.Write([]byte("log"))
					v.must(err)
				}
			}
			until(t, "a datagram comes by", func() bool { log(1); return len(endpoints()) > 0 })
			was := endpoints()
			v.node.Run(t, "sh", "-c", "nft delete table inet enipool || iptables -t nat -F POSTROUTING")
			v.reload()
			log(5)
			if is := endpoints(); !slices.Equal(was, is) {
				t.Errorf("the session went to %q, and goes to %q after the repair", was, is)
			}
		})
	}
}

// With many thousands of connections it takes seconds to look through them, while pods wait
// for addresses. A pool that grows translates what it did.
func TestOnlyARepairLooksForFlowsWithoutTranslation(t *testing.T) {
	v := newVPC(t, windowVariants(true)["nftables"])
	heard := udpSocket(t, v.internet, internet4+":5000", "")
	rules := filepath.Join(t.TempDir(), "rules")
	v.must(os.WriteFile(rules, []byte(v.node.Run(t, "nft", "list", "ruleset")), 0o600))
	v.flushRuleset("ct state new udp dport 5000")
	flow := udpSocket(t, v.pods["a"], "10.0.0.11:4000", internet4+":5000")
	until(t, "pod a begins to send", func() bool { _, _ = flow.Write([]byte("?")); return v.counted() > 0 })
	v.node.Run(t, "nft", "-f", rules) // by somebody who forgets nothing
	grown := v.inv
	grown.Addresses = append(slices.Clone(grown.Addresses), eni.Address{Addr: netip.MustParseAddr("10.0.0.77"), ENI: 1})
	forgets := func(line string) bool { return strings.HasPrefix(line, "forget") }
	if lines := v.load(grown); slices.ContainsFunc(lines, forgets) || !slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, "pool4 right: add 10.0.0.77") }) {
		t.Errorf("growth: %q", lines)
	}
	v.node.Run(t, "nft", "flush", "set", "inet", "enipool", "pool4")
	v.reload()
	until(t, "pod a has the node's address", func() bool {
		_, _ = flow.Write([]byte("?"))
		v.must(heard.SetReadDeadline(time.Now().Add(100 * time.Millisecond)))
		_, sender, err := heard.ReadFromUDPAddrPort(make([]byte, 10))
		return err == nil && sender.Addr().Unmap().String() == "10.0.0.10"
	})
}

// The mark of a connection names the ENI that it came in by. That ENI may be gone, with all
// of the same or a higher index.
func TestAConnectionOfAnENIThatIsGoneIsAnsweredByTheNextOneOfItsAddress(t *testing.T) {
	for name, s := range windowVariants(true) {
		t.Run(name, func(t *testing.T) {
			v := newVPCWith(t, s, 2)
			answerAll(t, v.pods["b"], "80")
			c := udpSocket(t, v.internet, internet4+":4000", "10.0.0.21:80")
			until(t, "an answer by the ENI of index 2", func() bool { return answered(c) })
			v.plugin("DEL", "b")
			without, next := v.inv, v.inv
			without.ENIs, without.Addresses = slices.Clone(v.inv.ENIs[:1]), slices.Clone(v.inv.Addresses[:1])
			v.load(without)
			next.ENIs, next.Addresses = slices.Clone(v.inv.ENIs), slices.Clone(v.inv.Addresses)
			next.ENIs[1].Index, next.Addresses[1].ENI = 1, 1
			v.load(next)
			v.pods["b"] = nettest.NewNetns(t, "pod-b2")
			v.plugin("ADD", "b")
			answerAll(t, v.pods["b"], "80")
			until(t, "an answer by the ENI of index 1", func() bool { return answered(c) })
		})
	}
}
