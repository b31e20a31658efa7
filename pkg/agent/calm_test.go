package agent

import (
	"testing"
	"testing/synctest"
	"time"
)

// hearing is a node whose kernel announces what others change.
func hearing(resync time.Duration) func(*testNode) {
	return func(n *testNode) { n.hears, n.conf.Resync, n.conf.Cloud.Describe = true, resync, time.Hour }
}

// comparisons returns how many there are in the time.
func (n *testNode) comparisons(d time.Duration) int {
	before := n.compared()
	sleep(d)
	return n.compared() - before
}

func TestACalmNodeComparesSeldom(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*testNode)
		want   int // in 20 minutes
	}{
		{"where changes are announced", hearing(time.Minute), 5},
		{"where they are not", func(n *testNode) { hearing(time.Minute)(n); n.hears = false }, 20},
		{"where others cut pods off", func(n *testNode) { hearing(time.Minute)(n); n.misrouted = []string{"a route"} }, 20},
		{"where something is to be put right each time", func(n *testNode) { hearing(time.Minute)(n); n.undone = []string{"a route"} }, 20},
		{"where comparisons are wanted more often", hearing(30 * time.Second), 40},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, n := one(t, large, tt.change)
				defer n.stop()
				sleep(10 * time.Minute)
				if got := n.comparisons(20 * time.Minute); got != tt.want {
					t.Errorf("%d comparisons in 20 minutes, want %d", got, tt.want)
				}
			})
		})
	}
}

func TestACalmNodeOnWhichSomethingHappensComparesAsUsual(t *testing.T) {
	for name, happens := range map[string]func(*testing.T, *testNode){
		"others change the kernel":   func(_ *testing.T, n *testNode) { n.disturb <- struct{}{} },
		"a pod comes":                func(t *testing.T, n *testNode) { must(t, n.add()); n.wake() },
		"its configuration is given": func(_ *testing.T, n *testNode) { n.life.agent.Reload(n.conf); n.wake() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, n := one(t, large, hearing(time.Minute))
				defer n.stop()
				sleep(10 * time.Minute)
				happens(t, n)
				sleep(time.Second)
				if got := n.comparisons(65 * time.Second); got != 1 {
					t.Errorf("%d comparisons in the next minute, want 1", got)
				}
			})
		})
	}
}
