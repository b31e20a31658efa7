package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/status"
)

func TestTheAgentOnceMakesTheNodeRightAndPodsReachTheWorld(t *testing.T) {
	t.Parallel()
	s := newSite(t, plan{name: "once"})
	if said, code := s.once("--once"); code != 0 {
		t.Fatalf("exit %d\n%s", code, said)
	}
	s.poolOf(16)
	cached, err := s.view()
	s.must(err)
	if len(cached.ENIs) != 1 || cached.ENIs[0].Index != 0 || cached.ENIs[0].Device != "eth0" {
		t.Errorf("ENIs %+v, want the node's own", cached.ENIs)
	}
	if rules := s.node.Run(t, "ip", "rule"); !strings.Contains(rules, "512:\tfrom all lookup 100") {
		t.Errorf("rules:\n%s", rules)
	}
	s.add("web")
	s.reach(internet4, "web")
	before, calls := s.kernel(), fmt.Sprint(s.mutations())
	if said, code := s.once("--once"); code != 0 || strings.Contains(said, "repaired") {
		t.Errorf("a second time: exit %d\n%s", code, said)
	}
	if after := s.kernel(); after != before {
		t.Errorf("a second time changed the kernel from\n%s\nto\n%s", before, after)
	}
	if again := fmt.Sprint(s.mutations()); again != calls {
		t.Errorf("calls %s before, %s after a second time", calls, again)
	}
}

// mutations are the requests so far that change something, by action.
func (s *site) mutations() map[string]int {
	calls := s.account.Calls()
	for action := range calls {
		if strings.HasPrefix(action, "Describe") {
			delete(calls, action)
		}
	}
	return calls
}

func names(prefix string, n int) []string {
	var ids []string
	for i := range n {
		ids = append(ids, fmt.Sprintf("%s%d", prefix, i))
	}
	return ids
}

func TestThirtySixPodsWaitWhileTheAgentMakesENIsAndNoneFails(t *testing.T) {
	t.Parallel()
	s := newSite(t, plan{name: "burst"})
	s.start()
	s.poolOf(16)
	s.add("pod0")
	ids := names("pod", 36)
	if err := s.addAll(ids[1:], 20*time.Second); err != nil {
		t.Error(err)
	}
	s.poolOf(48)
	s.told("a target of 48", func(st status.Status) bool { return st.Demand == 36 && st.Target == 48 && st.PendingADDs == 0 })
	if c, err := s.count(); err != nil || c.Used != 36 {
		t.Errorf("%+v, %v; want 36 used", c, err)
	}
	if calls := s.mutations(); calls[sim.ActCreate] != 2 || calls[sim.ActAssign] != 1 {
		t.Errorf("calls %v, want an assign for the first ENI and one creation each for two more", calls)
	}
	s.reach(internet4, ids...)
	s.del(ids[1:]...)
	s.poolOf(16)
	s.reach(internet4, "pod0")
}
