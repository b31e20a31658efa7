package agent

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/eni"
)

// Where the cloud's limits say that the primary ENI gets no addresses for pods, none are
// put there whatever firstENI says, and the node's numbers leave it out.
func TestAPrimaryENIThatGetsNoneIsLeftOut(t *testing.T) {
	for first := range 2 {
		synctest.Test(t, func(t *testing.T) {
			w, n := one(t, eni.Limits{ENIs: 3, V4: 9, V6: 9, NoPrimary: true}, func(n *testNode) { n.conf.Pool.FirstENI = first })
			defer n.stop()
			for range 20 {
				_ = n.add()
			}
			for range 30 {
				sleep(time.Second)
				n.retry()
			}
			nics := n.attached()
			if len(nics) != 3 || len(nics[0].Addresses) > 0 || len(nics[1].Addresses) != 8 || len(nics[2].Addresses) != 8 {
				t.Errorf("ENIs %+v, want 8 addresses on each but the primary", nics)
			}
			if s := n.status(); s.Most != 16 || len(s.TargetCauses) == 0 || !strings.Contains(s.TargetCauses[0], "2 ENIs for pods with 8 slots each") {
				t.Errorf("status tells of at most %d, blocked by %q", s.Most, s.TargetCauses)
			}
			if left := n.retry(); left != 4 {
				t.Errorf("%d of 20 pods wait, want 4", left)
			}
			if err := w.check(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestANodeWithAPrimaryENIAloneThatGetsNoneSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, n := one(t, eni.Limits{ENIs: 1, V4: 9, V6: 9, NoPrimary: true}, nil)
		defer n.stop()
		_ = n.add()
		sleep(10 * time.Second)
		const want = "its primary ENI gets no addresses for them"
		if p := n.status().Problem; !strings.Contains(p, want) {
			t.Errorf("problem %q, want %q", p, want)
		}
	})
}
