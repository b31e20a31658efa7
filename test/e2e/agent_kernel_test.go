package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// kernelWords print what there is of routing, addresses and packet filter, without
// counters. ip complains of names of namespaces that other tests are just making
// ("Peer netns reference is invalid"), which is no part of the node's kernel.
const kernelWords = `
exec 2>/dev/null
ip rule; ip -6 rule
for f in -4 -6; do ip $f route show table all | grep -e "proto 69" -e "proto 70" -e ^default; done
ip -o addr show scope global | tr -s " \\\\"
for t in enipool enipool-pods; do nft -s list table inet $t; done
for save in iptables-save ip6tables-save; do $save | grep -e ^-A -e ENIPOOL -e ENIPODS; done
sysctl net.ipv4.ip_forward
ip neigh show nud permanent
for dev in $(ip -br link | sed -n "s/^\\(eni[^@ ]*\\).*/\\1/p"); do
	ip -br link show $dev | sed "s/ *<.*//"
	(cd /proc/sys/net; grep -H . ipv4/conf/$dev/rp_filter ipv6/conf/$dev/disable_ipv6 ipv6/conf/$dev/accept_ra)
done`

// eachPodLink runs a command for every pod's link.
func eachPodLink(command string) string {
	return "for dev in $(ip -br link | sed -n 's/^\\(eni[^@ ]*\\).*/\\1/p'); do " + command + "; done"
}

// kernel is what the node's kernel holds, as text.
func (s *site) kernel() string {
	s.t.Helper()
	lines := slices.Sorted(strings.Lines(s.node.Run(s.t, "sh", "-c", kernelWords)))
	return strings.Join(lines, "")
}

// sameKernel waits until the kernel is as it was.
func (s *site) sameKernel(was string) {
	s.t.Helper()
	s.eventually("the kernel is as before", func() error {
		if diff := cmp.Diff(was, s.kernel()); diff != "" {
			return errors.New("-was +is:\n" + diff)
		}
		return nil
	})
}

// What others remove from the kernel is back within a resync, just as it was, and
// the log names it. Pods that ran before have traffic again.
func TestTheAgentPutsBackWhatOthersRemoveFromTheKernel(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		conf   []string
		remove []string // commands
		named  []string // expressions that the log matches
	}{
		"map": {
			conf: []string{"snat: true"},
			remove: []string{
				"nft flush ruleset", "nft delete table inet enipool", "nft delete table inet enipool-pods", "nft flush chain inet enipool marks",
				"nft flush map inet enipool source4", "nft add rule inet enipool marks drop",
				"ip rule del priority 512", "ip rule del priority 1536", "ip rule del priority 1537",
				"ip route flush table 101", "ip route del default table 101",
				"ip addr flush dev eth1", "ip link set eth1 down", "sysctl -q -w net.ipv4.ip_forward=0",
				"ip route flush table 100", "ip route del 10.0.1.3 table 100",
				eachPodLink("ip link set $dev down"), eachPodLink("ip neigh flush dev $dev nud permanent"),
				eachPodLink("echo 0 >/proc/sys/net/ipv4/conf/$dev/rp_filter"), eachPodLink("echo 0 >/proc/sys/net/ipv6/conf/$dev/disable_ipv6"),
			},
			named: []string{"nftables: create table inet enipool", "rule 512: from all lookup 100", "rule 1536: ", "route default via 10.0.1.1 dev eth1 table 101",
				"route 10.0.1.3 dev eni[0-9a-f]+ table 100 ", "link eni[0-9a-f]+ up", "neigh 10.0.1.3 lladdr", "sysctl net/ipv4/conf/eni[0-9a-f]+/rp_filter=1"},
		},
		"rule": {
			conf: []string{"routing: rule", "snat: true"},
			remove: []string{
				"nft flush ruleset", "for p in 512 1536 1536 1537 1538; do ip rule del priority $p; done", "ip rule del priority 1538",
			},
			named: []string{"rule 1538: from 10.0.1.6 to 10.0.0.0/16 lookup 101"},
		},
		"iptables": {
			conf: []string{"routing: rule", "firewall: iptables", "snat: true"},
			remove: []string{
				"iptables -t nat -F", "iptables -t mangle -F",
				"for t in nat mangle; do iptables -t $t -F; iptables -t $t -X; done",
			},
			named: []string{"iptables"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, plan{name: "flush-" + name, limits: tiny})
			s.configure(append(c.conf, "pool.batch: 2", "resync: 300ms")...)
			agent := s.start()
			s.poolOf(2)
			ids := names("pod", 3) // the last one is on ENI 1
			s.add(ids...)
			s.poolOf(4)
			s.tickAfter()
			for _, remove := range c.remove {
				want := s.kernel()
				s.node.Run(t, "sh", "-c", remove)
				s.sameKernel(want)
				s.reach(internet4, ids...)
			}
			for _, line := range c.named {
				agent.says(`msg="kernel repaired" change="[^"]*` + line)
			}
			for line := range strings.Lines(agent.said()) {
				// An agent that is woken by the first of several commands meets the rest
				// half-way; what iptables refuses then is tried again.
				if strings.Contains(line, "level=ERROR") && !strings.Contains(line, "iptables -t ") {
					t.Errorf("an error in the log: %s", line)
				}
			}
		})
	}
}

// slow tells whether a call of the plugin took so long that an agent may take what it has half
// done for a fault: a busy machine stopped it between two of its changes.
func slow(call func()) bool {
	began := time.Now()
	call()
	return time.Since(began) > 80*time.Millisecond
}

// Pods that come and go while the agent compares the kernel with the cache are no
// fault that it repairs.
func TestPodsThatComeAndGoAreNoFaultOfTheKernel(t *testing.T) {
	t.Parallel()
	for _, routing := range []string{"rule", "map"} {
		t.Run(routing, func(t *testing.T) {
			s := newSite(t, plan{name: "churn-" + routing, limits: tiny})
			s.configure("pool.batch: 2", "pool.minPool: 4", "resync: 100ms", "routing: "+routing)
			agent := s.start()
			s.poolOf(4)
			s.add("a", "b") // all others are on ENI 1
			s.tickAfter()
			repairs := func() int { return strings.Count(agent.said(), "kernel repaired") }
			before, late := repairs(), false
			for i, quick := 0, 0; quick < 60 && i < 120; i++ {
				id := fmt.Sprintf("pod%d", i%2)
				was := late
				late = slow(func() { s.must(s.try("ADD", id, 5*time.Second)) })
				s.reach(internet4, id)
				late = slow(func() { s.must(s.try("DEL", id, 0)) }) || late
				if was || late {
					before = repairs()
				} else {
					quick++
				}
				if n := repairs() - before; n > 0 {
					t.Fatalf("%d repairs in round %d", n, i)
				}
			}
			s.tickAfter()
			if n := repairs() - before; n > 0 && !late {
				t.Errorf("%d repairs after the last round", n)
			}
		})
	}
}
