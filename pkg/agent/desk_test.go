package agent

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
)

// All pods of a node go at once, and each ENI takes half a minute to be detached. Pods that come while
// as many go as may go at once don't wait for one of them.
func TestENIsThatGoHoldUpNoPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{Latency: map[string]sim.Latency{"": {Base: 300 * time.Millisecond}}}, subnet("subnet-a", "10.0.0.0/22"))
		n := w.addNode(testConfig("n1"), sim.NodeSpec{Limits: eni.Limits{ENIs: 15, V4: 5}, Subnet: "subnet-a"})
		n.start(-1, false)
		defer n.stop()
		sleep(30 * time.Second)
		for range 50 {
			_ = n.add()
		}
		n.all(t, 3*time.Minute)
		sleep(10 * time.Minute)
		w.account.SetTimes(0, 0, 30*time.Second)
		for _, k := range n.keys()[4:] {
			n.del(k)
		}
		deletions := func() int { return w.account.Calls()[sim.ActDetach] }
		before := deletions()
		for range 6000 {
			if deletions() > before {
				break
			}
			sleep(100 * time.Millisecond)
		}
		sleep(2 * time.Second)
		if deletions() < before+2 {
			t.Fatalf("%d ENIs are being detached", deletions()-before)
		}
		for range 44 {
			_ = n.add()
		}
		began, left := w.now(), 1
		for left > 0 && w.now()-began < 5*time.Minute {
			sleep(200 * time.Millisecond)
			left = n.retry()
		}
		if waited := w.now() - began; waited > 15*time.Second {
			t.Errorf("pods waited %s for addresses, as long as ENIs take to go", waited)
		}
		sleep(time.Hour)
		for _, k := range n.keys()[4:] {
			n.del(k)
		}
		sleep(time.Hour)
		if err := w.check(); err != nil || len(n.attached()) > 5 {
			t.Errorf("%d ENIs are left, %v", len(n.attached()), err)
		}
	})
}

// With few calls at once releases go on, one by one.
func TestReleasesHaveAPlace(t *testing.T) {
	of := func(ops ...string) desk {
		d := desk{calls: map[object]*call{}}
		for i, op := range ops {
			d.calls[eniKey(string(rune('a'+i)))] = &call{op: op}
		}
		return d
	}
	for _, tt := range []struct {
		under []string
		most  int
		gives bool
		grows bool
	}{
		{nil, 1, true, true},
		{[]string{"DeleteInterface"}, 1, false, false},
		{[]string{"DeleteInterface"}, 2, false, true},
		{[]string{"AssignAddresses"}, 2, true, true},
		{[]string{"AssignAddresses", "Describe"}, 2, false, false},
		{[]string{"DeleteInterface", "UnassignAddresses"}, 5, true, true},
		{[]string{"DeleteInterface", "DeleteInterface", "UnassignAddresses"}, 5, false, true},
		{[]string{"DeleteInterface", "DeleteInterface", "UnassignAddresses", "Describe", "AssignAddresses"}, 5, false, false},
	} {
		d := of(tt.under...)
		if give, grow := d.hasPlace(gives, tt.most), d.hasPlace(grows, tt.most); give != tt.gives || grow != tt.grows {
			t.Errorf("%v of %d: a release may begin %t, an assignment %t", tt.under, tt.most, give, grow)
		}
	}
}
