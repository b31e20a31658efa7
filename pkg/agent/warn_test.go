package agent

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestEachPodWhoseADDFailedIsWarnedOnceATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := one(t, large, inCluster)
		defer n.stop()
		_ = w.account.SetUnmanaged("subnet-a", 1000)
		n.crowd(17)
		late := n.bind("late")
		sleep(2 * time.Second)
		if list := n.warnings(); len(list) > 0 {
			t.Errorf("warned of ADDs that wait: %v", list)
		}
		_ = n.sandbox(late)
		n.giveUp()
		sleep(2 * time.Second)
		list := n.warnings()
		if len(list) != 2 || !slices.Contains(list, "SubnetExhausted default/late") {
			t.Errorf("warned: %v, want both pods", list)
		}
		for _, part := range []string{"no free ipv4 address: 16 addresses on 1 ENIs, 16 used, 0 cooling; the agent: target", "no addresses left in subnet subnet-a"} {
			if !strings.Contains(n.api.message, part) {
				t.Errorf("message lacks %q: %s", part, n.api.message)
			}
		}
		for range 20 { // the kubelet tries again and again
			n.forget()
			sleep(10 * time.Second)
			_ = n.sandbox(late)
			sleep(5 * time.Second)
			n.giveUp()
		}
		if list := n.warnings(); len(list) > 0 {
			t.Errorf("warned again: %v", list)
		}
		_ = w.account.SetUnmanaged("subnet-a", 0)
		for range 600 {
			time.Sleep(time.Second)
			n.retry()
		}
		_ = w.account.SetUnmanaged("subnet-a", 1000)
		n.crowd(100)
		_ = n.sandbox(late) // one more, after the first has its address
		sleep(5 * time.Second)
		n.giveUp()
		sleep(2 * time.Second)
		if list := n.warnings(); len(list) < 50 || !slices.Contains(list, "SubnetExhausted default/late") {
			t.Errorf("warned of %d pods the next time: %v", len(list), list)
		}
	})
}
