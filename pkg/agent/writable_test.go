package agent

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/health"
)

// writable is why the node cache can't be written.
func (n *testNode) writable() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.readOnly
}

func (n *testNode) setReadOnly(err error) {
	n.mu.Lock()
	n.readOnly = err
	n.mu.Unlock()
	n.wake()
	sleep(2 * time.Minute)
}

// A cache that can be read and not written serves no pod: the node is not ready, and the
// cluster hears why, until it can be written again.
func TestANodeWhoseCacheCanNotBeWrittenIsNotReadyAndSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, n := one(t, large, func(n *testNode) {})
		defer n.stop()
		sleep(5 * time.Second)
		if s := n.life.agent.Status(); !s.Ready {
			t.Fatalf("at the start: %+v", s)
		}
		n.setReadOnly(errors.New("read-only file system tmpfs at /run"))
		s := n.life.agent.Status()
		if s.Ready || !strings.Contains(s.Problem, "read-only file system tmpfs at /run") || !s.Health.Faulty || s.Health.Reason != health.CacheUnusable {
			t.Errorf("ready %t, problem %q, health %+v", s.Ready, s.Problem, s.Health)
		}
		n.setReadOnly(nil)
		if s := n.life.agent.Status(); !s.Ready || s.Problem != "" || s.Health.Faulty {
			t.Errorf("written again: ready %t, problem %q, health %+v", s.Ready, s.Problem, s.Health)
		}
	})
}
