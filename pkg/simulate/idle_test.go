package simulate

import (
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/config/agentconf"
)

// 250 nodes on a twentieth of what EC2 lets pass are as 5,000 on all of it.
func TestIdleNodesUseLessThanHalfOfEC2sDescribes(t *testing.T) {
	l, err := Generate("steady", Shape{Nodes: 250, Pods: 10, Duration: 3 * time.Hour, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	s := Setting{Name: "batch", Config: agentconf.Default()}
	s.Config.Cloud.Describe = agentconf.SpareDescribe
	w := sharedAccount(false)
	w.Describing.Burst *= 4 // chance does not shrink with the nodes: a small bucket is empty sooner
	r := mustRun(t, w, l, s)
	if r.Waits.Waited > 0 || len(r.Usage) == 0 {
		t.Errorf("%d pods waited, usage %v", r.Waits.Waited, r.Usage)
	}
	for _, u := range r.Usage {
		t.Logf("%s: %.2f a second, %.1f%%", u.Name, u.PerSecond, 100*u.Share())
		if u.Share() >= 0.5 || 100*u.Refused > u.Passed {
			t.Errorf("%s: %.2f a second of %.2f, %d refused", u.Name, u.PerSecond, u.Limit, u.Refused)
		}
	}
}
