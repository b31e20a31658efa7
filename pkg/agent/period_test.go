package agent

import (
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// describer is a node of an account that does nothing but describe.
type describer struct {
	period
	at time.Duration
}

// describeTogether lets that many idle nodes share an account that lets 20 requests a second pass, and
// returns the share of that which they ask for in the last hour of eight, and which part is refused.
func describeTogether(nodes int, seed uint64) (share, refused float64, longest time.Duration) {
	const rate, burst, hours, span = 20.0, 100.0, 8, time.Second
	r := rand.New(rand.NewPCG(seed, 1))
	due := make(map[time.Duration][]*describer)
	next := func(d *describer, now, in time.Duration) {
		d.at = max(now+in, now+span).Truncate(span)
		due[d.at] = append(due[d.at], d)
	}
	for range nodes {
		next(&describer{}, 0, time.Duration(r.Int64N(int64(5*time.Minute))))
	}
	tokens, asked, failed := burst, 0, 0
	for now := time.Duration(0); now < hours*time.Hour; now += span {
		tokens = min(tokens+rate, burst)
		list := due[now]
		delete(due, now)
		for _, d := range list {
			last := now >= (hours-1)*time.Hour
			requests := 1.0
			if r.IntN(2) == 0 {
				requests++ // what is attached nowhere, too
			}
			if last {
				asked += int(requests)
			}
			if tokens < requests {
				if last {
					failed += int(requests)
				}
				d.refused()
				next(d, now, 3*time.Second+time.Duration(r.Int64N(int64(time.Minute))))
				continue
			}
			tokens -= requests
			d.answered(true)
			length := d.length(5*time.Minute, 20*time.Minute)
			longest = max(longest, length)
			next(d, now, length*time.Duration(50+r.IntN(100))/100)
		}
	}
	return float64(asked) / rate / 3600, float64(failed) / float64(max(asked, 1)), longest
}

func TestIdleNodesLeaveTheAccountsDescribesToOthers(t *testing.T) {
	for _, tt := range []struct {
		nodes          int
		share, refused float64 // at most
	}{
		{100, 0.02, 0}, {1000, 0.1, 0}, {5000, 0.35, 0}, {8000, 0.5, 0}, {20000, 0.8, 0.02}, {40000, 1.1, 0.05},
	} {
		share, refused, longest := describeTogether(tt.nodes, uint64(tt.nodes))
		t.Logf("%d nodes: %.3f of the rate, %.3f refused, %s at most", tt.nodes, share, refused, longest)
		if share > tt.share || refused > tt.refused {
			t.Errorf("%d nodes: %.3f of the rate, %.3f refused, want %.2f and %.2f at most", tt.nodes, share, refused, tt.share, tt.refused)
		}
		if longest > longestPeriod {
			t.Errorf("%d nodes: one was without a describe for %s", tt.nodes, longest)
		}
	}
}

// A period is that of a busy node or longer, never longer than both the quiet one and
// longestPeriod, longer with each refusal, and that of a quiet node again when no more come.
func TestPeriodsOfDescribes(t *testing.T) {
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 2))
		usual := time.Duration(1+r.IntN(7200)) * time.Second
		most := time.Duration(r.IntN(7200)) * time.Second
		var p period
		for range 50 {
			was := p.length(usual, most)
			switch r.IntN(3) {
			case 0:
				if p.refused(); p.length(usual, most) < was {
					t.Fatalf("seed %d: %s became %s by a refusal", seed, was, p.length(usual, most))
				}
			case 1:
				p.answered(true)
			case 2:
				if p.answered(false); p.length(usual, most) > was {
					t.Fatalf("seed %d: %s became %s by news", seed, was, p.length(usual, most))
				}
			}
			if now := p.length(usual, most); now < usual || now > slices.Max([]time.Duration{usual, most, longestPeriod}) {
				t.Fatalf("seed %d: %s, usual %s, quiet %s", seed, now, usual, most)
			}
		}
		for range 80 {
			p.answered(true)
		}
		if now := p.length(usual, most); now != max(usual, most) {
			t.Fatalf("seed %d: %s in the end, usual %s, quiet %s", seed, now, usual, most)
		}
	}
}

// Who names a shorter time between describes gets it, however far apart they were.
func TestAReloadEndsStretchedDescribes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, n := one(t, large, func(n *testNode) { n.conf.Cloud.Describe = 5 * time.Minute })
		n.stop()
		a := n.life.agent
		a.period = period{short: mostShort}
		next := a.conf
		next.Cloud.Describe = time.Minute
		a.Reload(next)
		for range 100 {
			if d := a.describeEvery(); d > 66*time.Second {
				t.Fatalf("the next describe comes after %s", d)
			}
		}
	})
}

// However short the account is.
func TestNoNodeIsWithoutADescribeForLongerThanTheLongestPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, n := one(t, large, func(n *testNode) { n.conf.Cloud.Describe = 5 * time.Minute })
		n.stop()
		a := n.life.agent
		a.period = period{short: mostShort, quiet: 9}
		for range 100 {
			if d := a.describeEvery(); d > longestPeriod {
				t.Fatalf("the next describe comes after %s", d)
			}
		}
	})
}

// A node whose pods come and go within what its pool has asks the cloud for nothing. It is no quiet one:
// each of its pods gets an address that somebody may have taken away since the last describe.
func TestANodeWhosePodsComeAndGoIsNotQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := one(t, large, func(n *testNode) { n.conf.Cloud.Describe = 5 * time.Minute })
		defer n.stop()
		for range 4 {
			_ = n.add()
		}
		sleep(2 * time.Hour)
		looks := func(during func()) int {
			before := w.calls()["Interfaces"]
			for range 5 * 60 {
				sleep(time.Minute)
				during()
			}
			return w.calls()["Interfaces"] - before
		}
		idle, churning := looks(func() {}), looks(func() {
			n.del(n.keys()[0])
			_ = n.add()
		})
		if idle > 25 || churning < 50 {
			t.Errorf("in five hours it describes %d times, and %d times while a pod is replaced each minute", idle, churning)
		}
	})
}

// A subnet that was full once is no reason to describe often for ever.
func TestANodeIsQuietAgainWhenItsSubnetHasRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := one(t, large, func(n *testNode) { n.conf.Cloud.Describe = 5 * time.Minute })
		defer n.stop()
		_ = w.account.SetForeign("subnet-a", 1000)
		for range 20 {
			_ = n.add()
		}
		sleep(20 * time.Minute)
		if n.status().Exhausted == "" {
			t.Fatalf("the subnet is not known to be full: %+v", n.status())
		}
		_ = w.account.SetForeign("subnet-a", 0)
		n.all(t, 40*time.Minute)
		sleep(3 * time.Hour)
		before := w.calls()["Interfaces"]
		sleep(5 * time.Hour)
		if looks := w.calls()["Interfaces"] - before; looks > 25 {
			t.Errorf("in five hours it describes %d times, status %+v", looks, n.status())
		}
	})
}
