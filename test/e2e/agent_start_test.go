package e2e

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"testing"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/status"
)

// The agent starts before it can reach its cloud: it says so, and is well.
func TestACloudThatIsAwayAtTheStartIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := newSite(t, plan{name: "away", away: true})
	agent := s.start()
	s.eventually("it is not ready and says why", func() error {
		code, body, err := s.get("/readyz")
		if err == nil && (code != 503 || !regexp.MustCompile(`cloud unavailable: .*/vpc.sock: connect: no such file or directory`).MatchString(body)) {
			err = fmt.Errorf("%d %s", code, body)
		}
		return err
	})
	if code, body, err := s.get("/healthz"); err != nil || code != 200 {
		t.Errorf("healthz: %d %s %v", code, body, err)
	}
	if err := s.try("ADD", "early", 0); err == nil {
		t.Error("a pod got an address")
	}
	agent.says(`level=WARN msg="cloud call failed" .*cloud unavailable`)
	s.account.Refuse(cloud.ErrUnavailable)
	s.serve()
	s.eventually("the cloud's own refusal", func() error {
		if _, body, err := s.get("/readyz"); err != nil || !regexp.MustCompile(`cloud unavailable: a simulated fault`).MatchString(body) {
			return fmt.Errorf("%s, %v", body, err)
		}
		return nil
	})
	s.account.Refuse(nil)
	s.ready()
	s.poolOf(16)
	if st, err := s.status(); err != nil || st.Problem != "" {
		t.Errorf("problem %q, %v", st.Problem, err)
	}
	s.add("early")
}

// After a reboot nothing of before is true: the pool is built without owners.
func TestAfterARebootTheAgentStartsAnew(t *testing.T) {
	s := newSite(t, plan{name: "reboot"})
	agent := s.start()
	s.poolOf(16)
	s.add("old")
	agent.kill()
	s.must(s.pods["old"].Remove())
	delete(s.pods, "old")
	s.eventually("no link of a pod", func() error {
		if links := s.node.Run(t, "ip", "-br", "link"); regexp.MustCompile("(?m)^eni").MatchString(links) {
			return errors.New(links)
		}
		return nil
	})
	s.node.Run(t, "sh", "-c", "nft flush ruleset; ip rule del priority 512")
	t.Run("rebooted", func(t *testing.T) {
		rebooted(t)
		if err := s.try("ADD", "early", 0); err == nil {
			t.Error("an address of the old boot was given out")
		}
		agent := s.start()
		s.eventually("a pool without owners", func() error {
			c, err := s.count()
			if err == nil && (c.Total != 16 || c.Used != 0) {
				err = fmt.Errorf("%+v", c)
			}
			return err
		})
		s.add("new")
		s.reach(internet4, "new")
		s.del("new", "early")
		agent.terminate()
	})
	s.must(os.Remove(s.cache.Path)) // now it is the stranger
	s.start()
	s.poolOf(16)
}

// A cloud that does not know the node is asked again after a while, and the reason
// is told.
func TestANodeThatTheCloudDoesNotKnowIsToldAndNotAskedForWithoutAPause(t *testing.T) {
	t.Parallel()
	s := newSite(t, plan{name: "unknown"})
	s.configure("node: stranger")
	s.start()
	s.eventually("it is not ready and says why", func() error {
		code, body, err := s.get("/readyz")
		if err == nil && (code != 503 || !regexp.MustCompile("no ENI of instance stranger").MatchString(body)) {
			err = fmt.Errorf("%d %s", code, body)
		}
		return err
	})
	calls := s.account.Calls()[sim.ActDescribe]
	s.tickAfter()
	if more := s.account.Calls()[sim.ActDescribe] - calls; more > 6 { // two a look
		t.Errorf("%d calls within two ticks", more)
	}
}

// The agent's memory is of use but not needed.
func TestAnAgentWhoseMemoryIsDamagedStartsWithout(t *testing.T) {
	t.Parallel()
	s := newSite(t, plan{name: "memory"})
	agent := s.start()
	s.poolOf(16)
	s.add("web")
	agent.terminate()
	overwrite(t, s.state(), "{", "x")
	before := s.kernel()
	agent = s.start()
	agent.says(`level=WARN msg="agent's memory can't be read; starting without" error="read .*/agent.json: invalid character`)
	s.ready()
	s.tickAfter()
	s.sameKernel(before)
	s.poolOf(16)
	s.reach(internet4, "web")
}

// A default that changes is no reason to change a node's mode, even after a crash.
func TestANodeKeepsItsModeAfterACrash(t *testing.T) {
	t.Parallel()
	s := newSite(t, plan{name: "mode"})
	s.configure("pool.maxAboveWatermark: 2", "pool.preAllocate: 3")
	agent := s.start()
	mode := func(want string) {
		t.Helper()
		s.ready()
		if st, err := s.status(); err != nil || st.Mode != want {
			t.Errorf("mode %s, %v; want %s", st.Mode, err, want)
		}
	}
	mode("besteffort")
	agent.kill()
	s.configure("pool.preAllocate: 3")
	agent = s.start()
	mode("besteffort")
	agent.says("node keeps its mode; name pool.mode to change it")
	s.configure("pool.mode: batch")
	s.told("mode batch", func(st status.Status) bool { return st.Mode == "batch" })
}
