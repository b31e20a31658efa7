package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/status"
)

// Where a node can't have what its pods need, the failed ADD, the status and `pool
// show` all name the reason, until it is gone.
func TestWhatKeepsAPodFromAnAddressIsNamedUntilItIsGone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		limits eni.Limits
		cloud  sim.Options
		conf   string
		before func(s *site) // the third pod comes
		reason string        // why it gets no address
		cure   func(s *site)
	}{
		{
			name: "instance", limits: eni.Limits{ENIs: 1, V4: 3}, conf: "maxPods: 110", before: func(*site) {},
			reason: `the node holds 2 at most: 1 ENIs for pods with 2 slots each`,
			cure:   func(s *site) { s.del("a") },
		},
		{
			name: "account", limits: tiny, cloud: sim.Options{MaxENIs: 1}, conf: "maxPods: 110", before: func(*site) {},
			reason: `limit reached: interface limit of the account: the account may have 1 ENIs`,
			cure:   func(s *site) { s.del("a") },
		},
		{
			name: "pods", limits: tiny, conf: "maxPods: 2", before: func(*site) {},
			reason: `the node holds 2 at most: the kubelet's maxPods`,
			cure:   func(s *site) { s.configure("pool.batch: 2") },
		},
		{
			name: "subnet", limits: tiny, conf: "maxPods: 110",
			before: func(s *site) { s.must(s.account.SetUnmanaged("subnet-a", 1000)) },
			reason: `no addresses left in subnet subnet-a|subnet-a has 0 addresses left`,
			cure:   func(s *site) { s.must(s.account.SetUnmanaged("subnet-a", 0)) },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSite(t, plan{name: "limit-" + c.name, limits: c.limits, options: c.cloud})
			s.configure("pool.batch: 2", "pool.minFree: 0%", "pool.minPool: 2", c.conf)
			s.start()
			s.poolOf(2)
			s.add("a", "b")
			c.before(s)
			s.eventually("the third pod's error names it", func() error {
				err := s.try("ADD", "c", time.Second)
				if err == nil {
					t.Fatal("the third pod has an address")
				}
				const numbers = `code 11: waited 1s: no free ipv4 address: 2 addresses on 1 ENIs, 2 used, 0 cooling; the agent: target \d+, at most \d+.*`
				if !regexp.MustCompile(numbers + "(" + c.reason + ")").MatchString(err.Error()) {
					return err
				}
				return nil
			})
			waiting := s.call("ADD", "c", time.Minute)
			s.must(s.node.Do(waiting.Start))
			s.told("the status names it", func(st status.Status) bool { return regexp.MustCompile(c.reason).MatchString(st.Problem) })
			if out := s.show(); !regexp.MustCompile(`(?m)^cause: .*(` + c.reason + ")").MatchString(out) {
				t.Errorf("pool show does not name %s:\n%s", c.reason, out)
			}
			if code, body, err := s.get("/readyz"); code != 200 {
				t.Errorf("not ready, though its pods are well: %d %s %v", code, body, err)
			}
			c.cure(s)
			if err := waiting.Wait(); err != nil {
				t.Fatalf("the third pod has no address when the reason is gone: %v", err)
			}
			s.told("no problem", func(st status.Status) bool { return st.Problem == "" })
			s.reach(internet4, "b", "c")
		})
	}
}

// show is what `enipoolctl pool show` prints.
func (s *site) show() string {
	s.t.Helper()
	cmd := exec.Command(filepath.Join(binDir(s.t), "enipoolctl"), "pool", "show", "--cache", s.cache.Path)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Sprintf("%v: %s", err, out)
	}
	return string(out)
}
