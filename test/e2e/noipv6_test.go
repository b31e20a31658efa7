package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// withoutIPv6 builds the program that runs others as on a kernel without IPv6; its
// comment says how far that goes.
var withoutIPv6 = sync.OnceValues(func() (string, error) { return helper("noipv6") })

// wrapWithoutIPv6 lets agent and plugin of the site run without IPv6.
func (s *site) wrapWithoutIPv6() {
	s.t.Helper()
	program, err := withoutIPv6()
	s.must(err)
	s.wrap = []string{program}
	if out, err := s.try6(); err == nil || !strings.Contains(out, "not supported") {
		s.t.Skipf("IPv6 can't be hidden here: %s", out)
	}
}

// try6 asks for the rules of IPv6, as a program without IPv6 would.
func (s *site) try6() (out string, err error) {
	cmd := s.command("ip", "-6", "rule")
	err = s.node.Do(func() error {
		text, err := cmd.CombinedOutput()
		out = string(text)
		return err
	})
	return out, err
}

// ctl runs enipoolctl on the node and returns what it says.
func (s *site) ctl(args ...string) (said string, err error) {
	cmd := s.command(filepath.Join(binDir(s.t), "enipoolctl"), append(args, "--cache", s.cache.Path)...)
	err = s.node.Do(func() error {
		text, err := cmd.CombinedOutput()
		said = string(text)
		return err
	})
	return said, err
}

// A node that was booted with ipv6.disable=1 is a node like any other, though the
// cloud gives its ENIs IPv6 addresses.
func TestANodeWithoutIPv6(t *testing.T) {
	t.Parallel()
	for name, conf := range map[string][]string{
		"map":      {"snat: true"},
		"rule":     {"snat: true", "routing: rule"},
		"iptables": {"routing: rule", "firewall: iptables"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, plan{name: "nov6-" + name[:3], limits: tiny})
			s.wrapWithoutIPv6()
			s.configure(append(conf, "pool.batch: 2", "resync: 300ms")...)
			agent := s.start()
			s.poolOf(2)
			ids := names("pod", 3) // the last one is on ENI 1
			s.add(ids...)
			s.poolOf(4)
			s.ready()
			s.tickAfter()
			s.reach(internet4, ids...)
			was := s.kernel()
			s.node.Run(t, "ip", "route", "flush", "table", "100")
			s.sameKernel(was)
			if said, err := s.ctl("pool", "check"); err != nil {
				t.Errorf("pool check: %v\n%s", err, said)
			}
			s.del(ids...)
			for line := range strings.Lines(agent.said()) {
				if strings.Contains(line, "level=ERROR") || strings.Contains(line, "level=WARN") {
					t.Errorf("the agent says %s", line)
				}
			}
			agent.terminate()
			s.configure("families: [ipv4, ipv6]")
			if said, code := s.once("--once"); code == 0 || !strings.Contains(said, "this kernel has no IPv6") {
				t.Errorf("asked for IPv6: exit %d\n%s", code, said)
			}
			s.configure(conf...)
		})
	}
}

// Without an agent the pool is loaded from an inventory.
func TestAPoolIsLoadedOnANodeWithoutIPv6(t *testing.T) {
	t.Parallel()
	s := newSite(t, plan{name: "nov6-load"})
	s.wrapWithoutIPv6()
	inventory := filepath.Join(s.dir, "inventory.yaml")
	s.must(os.WriteFile(inventory, []byte(`
vpcCIDRs: [10.0.0.0/16]
coolDown: 0s
enis: [{id: eni-a, device: eth0, primary: 10.0.1.2/24, gateway: 10.0.1.1, addresses: [10.0.1.3]}]
`), 0o600))
	for _, want := range []string{"add cache address 10.0.1.3", "nothing to change"} {
		if said, err := s.ctl("pool", "load", "-f", inventory); err != nil || !strings.Contains(said, want) {
			t.Errorf("pool load: %v, want %q\n%s", err, want, said)
		}
	}
	s.add("web")
	if out, err := s.node.Try("ping", "-c", "1", "-W", "2", "10.0.1.3"); err != nil {
		t.Errorf("node -> web: %s", out)
	}
	if said, err := s.ctl("pool", "check"); err != nil {
		t.Errorf("pool check: %v\n%s", err, said)
	}
	s.del("web")
}
