package e2e

import (
	"fmt"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/status"
)

// In every way to route and filter pods of all ENIs reach the world and each other
// on what the agent has made, and their end leaves nothing.
func TestPodsOnAnAgentsENIsReachEverybody(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		conf []string
	}{
		{"rule", []string{"routing: rule"}},
		{"iptables", []string{"routing: rule", "firewall: iptables", "snat: true"}},
		{"dual", []string{"families: [ipv4, ipv6]", "vpcCIDRs: [10.0.0.0/16, 2001:db8::/48]"}},
		{"dual-rule", []string{"families: [ipv4, ipv6]", "vpcCIDRs: [10.0.0.0/16, 2001:db8::/48]", "routing: rule", "snat: true"}},
		{"six", []string{"families: [ipv6]", "vpcCIDRs: [2001:db8::/48]"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSite(t, plan{name: "way-" + c.name, limits: tiny})
			s.configure(append(c.conf, "pool.batch: 2")...)
			s.start()
			families := 1
			if strings.HasPrefix(c.name, "dual") {
				families = 2
			}
			s.poolOf(2 * families)
			ids := names("pod", 5) // on three ENIs
			s.must(s.addAll(ids, 10*time.Second))
			s.poolOf(6 * families)
			cached, err := s.view()
			s.must(err)
			for _, a := range cached.Used() {
				s.reach(a.Addr.String(), ids...)
			}
			for _, f := range cached.Settings.Families {
				if f == eni.IPv6 {
					s.reach(internet6, ids...)
				} else {
					s.reach(internet4, ids...)
				}
			}
		})
	}
}

// The pages answer on the node's loopback and nowhere else, and agree with the
// cache.
func TestThePagesOfAnAgentTellThePool(t *testing.T) {
	t.Parallel()
	s := newSite(t, plan{name: "pages"})
	s.configure("coolDown: 1h")
	s.start()
	s.poolOf(16)
	s.add("a", "b", "c")
	s.del("a")
	s.told("two used and one cooling", func(st status.Status) bool { return st.Addresses.Used == 2 && st.Addresses.Cooling == 1 })
	for page, want := range map[string]string{"/healthz": "^ok\n$", "/readyz": "^ok\n$", "/status": `"attached": 16`, "/": "/metrics"} {
		if code, body, err := s.get(page); err != nil || code != 200 || !regexp.MustCompile(want).MatchString(body) {
			t.Errorf("%s: %d %q, %v", page, code, body, err)
		}
	}
	_, metrics, err := s.get("/metrics")
	s.must(err)
	sum, states := 0, map[string]int{}
	for _, m := range regexp.MustCompile(`(?m)^enipool_addresses\{state="(\w+)"\} (\d+)$`).FindAllStringSubmatch(metrics, -1) {
		n := 0
		fmt.Sscan(m[2], &n)
		states[m[1]], sum = n, sum+n
	}
	if sum != 16 || states["used"] != 2 || states["cooling"] != 1 || states["free"] != 13 {
		t.Errorf("%v sum up to %d, want 2 used, 1 cooling, 13 free of 16", states, sum)
	}
	for _, line := range []string{`enipool_demand 3`, `enipool_target 16`, `enipool_ready 1`, `enipool_max_pods 110`, `enipool_cloud_calls_total\{op="AssignAddresses",outcome="ok"\} 1`} {
		if !regexp.MustCompile("(?m)^" + line + "$").MatchString(metrics) {
			t.Errorf("no %s in\n%s", line, metrics)
		}
	}
	err = s.far.Do(func() error {
		c, err := net.DialTimeout("tcp4", "10.0.1.2:9809", 5*time.Second)
		if err == nil {
			c.Close()
		}
		return err
	})
	if err == nil {
		t.Error("the pages can be read from outside of the node")
	}
	if code, _, err := s.get("/debug/pprof/"); err != nil || code != 404 {
		t.Errorf("pprof: %d, %v; want it off", code, err)
	}
}
