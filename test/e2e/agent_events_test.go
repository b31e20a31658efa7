package e2e

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// rarely is longer than any test: what happens before was no periodic comparison.
const rarely = "resync: 10m"

// podWords print what the node holds for its pods beside routes and rules, and the
// settings of ENIs.
const podWords = `
exec 2>/dev/null
ip -o link show | grep -oE "(eth[0-9]|eni[0-9a-f]{11})@.*[<,]UP[,>]" | grep -oE "^[a-z0-9]+" | sort
ip neigh show nud permanent | sort
sysctl -a | grep -E "net.ipv4.conf.(eth[0-9]|eni[0-9a-f]{11}).(rp_filter|forwarding)" | sort`

// wholeKernel is what the node's kernel holds, with that.
func (s *site) wholeKernel() string {
	s.t.Helper()
	return s.kernel() + s.node.Run(s.t, "sh", "-c", podWords)
}

// comparisons is how often the agent compared the kernel with the node cache, for the
// causes or for any.
func (s *site) comparisons(causes ...string) int {
	s.t.Helper()
	_, page, err := s.get("/metrics")
	s.must(err)
	if len(causes) == 0 {
		causes = []string{"[a-z]+"}
	}
	sum := 0
	for _, cause := range causes {
		for _, m := range regexp.MustCompile(`enipool_kernel_comparisons_total\{cause="`+cause+`"\} (\d+)`).FindAllStringSubmatch(page, -1) {
			n, err := strconv.Atoi(m[1])
			s.must(err)
			sum += n
		}
	}
	return sum
}

// cpuSeconds is what the agent has used of the processors.
func (s *site) cpuSeconds() float64 {
	s.t.Helper()
	_, page, err := s.get("/metrics")
	s.must(err)
	used := 0.0
	for line := range strings.Lines(page) {
		if value, found := strings.CutPrefix(line, "process_cpu_seconds_total "); found {
			used, err = strconv.ParseFloat(strings.TrimSpace(value), 64)
			s.must(err)
		}
	}
	return used
}

// rested waits until the agent has nothing more to compare.
func (s *site) rested() {
	s.t.Helper()
	last, since := s.comparisons(), time.Now()
	s.eventually("the agent rests", func() error {
		if n := s.comparisons(); n != last {
			last, since = n, time.Now()
		}
		if time.Since(since) < time.Second {
			return fmt.Errorf("%d comparisons so far", last)
		}
		return nil
	})
}

// What others remove from the kernel is announced, and back long before the next
// periodic comparison, just as it was. The log says what was heard.
func TestTheAgentHearsWhatOthersRemoveAndPutsItBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		conf   []string
		remove map[string]string // by what the log gives as reason
	}{
		"map": {remove: map[string]string{
			"nft flush ruleset":                              `nftables table enipool`,
			"nft flush chain inet enipool marks":             `nftables table enipool`,
			"nft flush map inet enipool source4":             `nftables table enipool set source4`,
			"nft add rule inet enipool marks drop":           `nftables table enipool`,
			"ip link set eth1 down; ip link set eth1 up":     `link eth1 set down`,
			"ip link set eth1 down":                          `link eth1 set down`,
			"ip addr flush dev eth1":                         `address 10.0.1.[0-9]+ removed`,
			"ip rule del priority 512":                       `rule 512: from all lookup 100 removed`,
			"ip rule del priority 1536":                      `rule 1536: from all lookup [0-9]+ removed`,
			"ip rule del priority 1537":                      `rule 1537: from 10.0.1.[0-9]+/32 lookup 101 removed`,
			"ip route del default table 101":                 `route default table 101 removed`,
			"ip route flush table 101":                       `route .* table 101 removed`,
			"ip route flush table 100":                       `route 10.0.1.[0-9]+/32 table 100 removed`,
			"ip route del POD table 100":                     `route POD/32 table 100 removed`,
			"ip link set LINK down":                          `(link LINK set down|neighbour [0-9.]+ removed)`,
			"nft delete table inet enipool":                  `nftables table enipool`,
			"ip neigh del POD dev LINK":                      `neighbour POD removed`,
			"sysctl -q -w net.ipv4.conf.LINK.rp_filter=0":    `sysctl rp_filter=0 of link`,
			"sysctl -q -w net.ipv6.conf.LINK.disable_ipv6=0": `route ff00::/8 table 255 added`,
			"sysctl -q -w net.ipv4.ip_forward=0":             `sysctl .*forwarding=0 of all links`,
			"sysctl -q -w net.ipv4.conf.eth1.rp_filter=1":    `sysctl rp_filter=1 of link`,
			"sysctl -q -w net.ipv4.conf.LINK.forwarding=0":   `sysctl forwarding=0 of link`,
			"sysctl -q -w net.ipv4.conf.eth1.forwarding=0":   `sysctl forwarding=0 of link`,
		}},
		"rule": {conf: []string{"routing: rule"}, remove: map[string]string{
			"nft flush ruleset":         `nftables table enipool`,
			"ip rule del priority 1538": `rule 1538: from 10.0.1.[0-9]+/32 to 10.0.0.0/16 lookup [0-9]+ removed`,
		}},
		"iptables": {conf: []string{"routing: rule", "firewall: iptables"}, remove: map[string]string{
			"iptables -t nat -F":    `nftables table nat removed`,
			"iptables -t mangle -F": `nftables table mangle removed`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, plan{name: "heard-" + name, limits: tiny})
			s.configure(append(c.conf, "snat: true", "pool.batch: 2", rarely)...)
			agent := s.start()
			s.poolOf(2)
			ids := names("pod", 3) // the last one is on ENI 1
			s.add(ids...)
			s.poolOf(4)
			s.rested()
			pod, link := s.addressOf("pod2"), s.linkTo(s.addressOf("pod2"))
			for remove, reason := range c.remove {
				subject := strings.NewReplacer("POD", pod, "LINK", link)
				remove, reason = subject.Replace(remove), subject.Replace(reason)
				s.rested() // what the repair before set is announced as well
				want, heard := s.wholeKernel(), strings.Count(agent.said(), "kernel repaired")
				s.node.Run(t, "sh", "-c", remove)
				removed := time.Now()
				s.eventually("after "+remove+" the kernel is as before", func() error {
					if diff := cmp.Diff(want, s.wholeKernel()); diff != "" {
						return errors.New("-was +is\n" + diff)
					}
					if strings.Count(agent.said(), "kernel repaired") == heard {
						return errors.New("nothing is repaired yet")
					}
					return nil
				})
				t.Logf("%s: repaired after %s at most", remove, time.Since(removed).Round(time.Millisecond))
				s.reach(internet4, ids...)
				agent.says(`msg="kernel repaired" .*reason="` + reason)
			}
			if n := s.comparisons("resync"); n > 1 {
				t.Errorf("%d periodic comparisons, want only the first", n)
			}
			if n := strings.Count(agent.said(), "level=ERROR"); n > 0 {
				t.Errorf("%d errors in the log", n)
			}
		})
	}
}

// A route that others put into an ENI's routing table stays: what is not ours is not
// replaced. It is told while it is there, and ours is back when it goes.
func TestARouteOfOthersInAnENIsTableIsToldAndOursComesBackAfterIt(t *testing.T) {
	t.Parallel()
	s := newSite(t, plan{name: "misrouted", limits: tiny})
	s.configure("snat: false", "pool.batch: 2", rarely)
	agent := s.start()
	s.poolOf(2)
	ids := names("pod", 3) // the last one is on ENI 1
	s.add(ids...)
	s.poolOf(4)
	s.rested()
	was := s.wholeKernel()
	s.node.Run(t, "ip", "route", "replace", "default", "dev", "eth0", "table", "101")
	told := "routing table 101 holds a route that is not enipool's, default dev eth0: what pods of the ENI eth1 send out of the node leaves by it"
	s.eventually("the agent tells of the route", func() error {
		st, err := s.status()
		if err != nil || len(st.Misrouted) != 1 || !strings.HasPrefix(st.Problem, told) {
			return fmt.Errorf("misrouted %q, problem %q, %v", st.Misrouted, st.Problem, err)
		}
		return nil
	})
	s.rested()
	if table := s.node.Run(t, "ip", "route", "show", "table", "101"); !strings.Contains(table, "default dev eth0") {
		t.Errorf("the route of others is replaced:\n%s", table)
	}
	agent.says(`level=WARN msg="` + told)
	s.node.Run(t, "ip", "route", "del", "default", "table", "101")
	s.eventually("the kernel is as before, and nothing is told", func() error {
		if diff := cmp.Diff(was, s.wholeKernel()); diff != "" {
			return errors.New("-was +is\n" + diff)
		}
		st, err := s.status()
		if err != nil || len(st.Misrouted) > 0 || st.Problem != "" {
			return fmt.Errorf("misrouted %q, problem %q, %v", st.Misrouted, st.Problem, err)
		}
		return nil
	})
	s.reach(internet4, ids...)
}

// addressOf is the IPv4 address of a pod.
func (s *site) addressOf(id string) string {
	s.t.Helper()
	return strings.TrimSpace(s.pods[id].Run(s.t, "sh", "-c", `ip -4 -o addr show dev eth0 | grep -oE "inet [0-9.]+" | cut -d" " -f2`))
}

// linkTo is the node's link to the pod with the address.
func (s *site) linkTo(addr string) string {
	s.t.Helper()
	return strings.TrimSpace(s.node.Run(s.t, "sh", "-c", `ip route get `+addr+` | grep -oE "dev [a-z0-9]+" | cut -d" " -f2`))
}

// halfDone is how long a plugin may be between two changes before the agent takes one
// of them for a fault. On a busy machine that happens.
const halfDone = 500 * time.Millisecond

// The plugin announces to the kernel's listeners all that it does for pods; that is no
// reason to compare anything.
func TestPodsThatComeAndGoCauseNoComparison(t *testing.T) {
	t.Parallel()
	for _, routing := range []string{"rule", "map"} {
		t.Run(routing, func(t *testing.T) {
			s := newSite(t, plan{name: "heed-" + routing, limits: small})
			s.configure("pool.batch: 16", "pool.minPool: 16", "coolDown: 0s", "logLevel: debug", rarely, "routing: "+routing)
			s.asks = map[string]string{"pod1": limited}
			s.start()
			s.poolOf(16)
			s.add("a", "b")
			s.rested()
			before, slow := s.comparisons(), 0
			call := func(do func() error) {
				began := time.Now()
				s.must(do())
				if time.Since(began) >= halfDone {
					slow++
				}
			}
			for i := range 40 {
				id := fmt.Sprintf("pod%d", i%3)
				call(func() error { return s.try("ADD", id, 10*time.Second) })
				call(func() error { return s.try("DEL", id, 0) })
			}
			call(func() error { return s.addAll(names("many", 5), 10*time.Second) })
			for _, id := range names("many", 5) {
				call(func() error { return s.try("DEL", id, 0) })
			}
			time.Sleep(time.Second) // what is suspected is looked at by then
			if n := s.comparisons() - before; n > slow {
				t.Errorf("%d comparisons for pods that came and went, and %d calls took long; %d comparisons by changes since the start",
					n, slow, s.comparisons("change"))
			}
		})
	}
}

// Others may change what they like as often as they like.
func TestAFloodOfForeignChangesCausesFewComparisons(t *testing.T) {
	t.Parallel()
	s := newSite(t, plan{name: "flood", limits: tiny})
	s.configure("pool.batch: 2", rarely)
	s.start()
	s.poolOf(2)
	s.add("pod0", "pod1")
	s.poolOf(4)
	s.rested()
	before, began, cpu := s.comparisons(), time.Now(), s.cpuSeconds()
	s.node.Run(t, "sh", "-c", `for k in $(seq 5); do for op in add del; do for i in $(seq 0 7); do for j in $(seq 0 249); do
		echo route $op 172.16.$i.$j/32 dev eth0 proto bgp; echo route $op 172.$((17 + i)).$j.0/24 dev eth0 proto bgp; done; done; done; done | ip -batch -`)
	s.node.Run(t, "sh", "-c", `for k in $(seq 100); do ip link add far type veth peer name near; ip link set far up; ip link del far; ip rule add from 192.0.2.1 lookup 7; ip rule del from 192.0.2.1; done`)
	s.rested()
	n := s.comparisons() - before // before the clock is read
	took := time.Since(began)
	if n > 1+int(took/time.Second) {
		t.Errorf("%d comparisons in %s for 40,000 routes of others", n, took)
	}
	t.Logf("40,000 routes of others in %s cost the agent %.2f s of CPU", took, s.cpuSeconds()-cpu)

	// Somebody who undoes all that the agent does keeps it no busier than that.
	before, began = s.comparisons(), time.Now()
	s.node.Run(t, "sh", "-c", `for k in $(seq 600); do ip rule del priority 512 2>/dev/null; sleep 0.01; done; true`)
	n = s.comparisons() - before
	took = time.Since(began)
	if n > 12+int(took/time.Second) {
		t.Errorf("%d comparisons in %s for a rule that somebody removes again and again", n, took)
	}
	s.eventually("the rule is there again", func() error {
		if rules := s.node.Run(t, "ip", "rule"); !strings.Contains(rules, "512:") {
			return errors.New(rules)
		}
		return nil
	})
	s.reach(internet4, "pod0", "pod1")
}
