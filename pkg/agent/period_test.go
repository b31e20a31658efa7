package agent

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
)

// describer is a node of an account that does nothing but describe.
type describer struct {
	period
	at time.Duration
}

// describeTogether lets that many idle nodes share an account that lets 20 requests a second pass, and
// returns the share of that which they ask for in the last hour of a day, and which part is refused.
func describeTogether(nodes int, seed uint64) (share, refused float64, longest time.Duration) {
	const rate, burst, hours, span = 20.0, 100.0, 24, time.Second
	const usual, most = 5 * time.Minute, 10 * time.Minute
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
		r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		for _, d := range list {
			last := now >= (hours-1)*time.Hour
			requests := 1.0
			if r.IntN(4) == 0 {
				requests++ // what is attached nowhere, too
			}
			if last {
				asked += int(requests)
			}
			if tokens < requests {
				if last {
					failed += int(requests)
				}
				d.refused(now + time.Hour)
				next(d, now, describer{}.draw(now+time.Hour, usual, most, r))
				continue
			}
			tokens -= requests
			d.answered(true)
			longest = max(longest, d.length(now+time.Hour, usual, most))
			next(d, now, d.draw(now+time.Hour, usual, most, r))
		}
	}
	return float64(asked) / rate / 3600, float64(failed) / float64(max(asked, 1)), longest
}

func TestIdleNodesLeaveTheAccountsDescribesToOthers(t *testing.T) {
	for _, tt := range []struct {
		nodes          int
		share, refused float64 // at most
	}{
		{100, 0.02, 0}, {1000, 0.12, 0}, {5000, 0.6, 0}, {8000, 0.9, 0.01}, {20000, 1.3, 0.25}, {40000, 1.35, 0.3},
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
// longestPeriod, longer with each refusal, and that of a quiet node again when none came for a time
// that is in proportion to how long they came. A busy node is never without a describe for long.
func TestPeriodsOfDescribes(t *testing.T) {
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 2))
		usual := time.Duration(1+r.IntN(7200)) * time.Second
		most := time.Duration(r.IntN(7200)) * time.Second
		var p period
		now := time.Hour
		for range 50 {
			now += time.Duration(r.IntN(1200)) * time.Second
			was := p.length(now, usual, most)
			switch r.IntN(3) {
			case 0:
				if p.refused(now); p.length(now, usual, most) < was {
					t.Fatalf("seed %d: %s became %s by a refusal", seed, was, p.length(now, usual, most))
				}
			case 1:
				p.answered(true)
			case 2:
				if p.answered(false); p.length(now, usual, most) > was {
					t.Fatalf("seed %d: %s became %s by news", seed, was, p.length(now, usual, most))
				}
			}
			is := p.length(now, usual, most)
			if is < usual || is > slices.Max([]time.Duration{usual, most, longestPeriod}) || p.quiet == 0 && is > max(usual, spareLook) {
				t.Fatalf("seed %d: %s, usual %s, quiet %s", seed, is, usual, most)
			}
		}
		for range 20 {
			p.answered(true)
		}
		if now += recallFactor * max(p.last-p.from, leastShortage); p.length(now, usual, most) != max(usual, most) {
			t.Fatalf("seed %d: %s in the end, usual %s, quiet %s", seed, p.length(now, usual, most), usual, most)
		}
	}
}

// shortage refuses the describes that begin within it for their rate.
type shortage struct {
	driver.Driver
	mu      sync.Mutex // of all below: calls have goroutines of their own
	until   time.Time
	refused int
	passed  []time.Time
}

func (d *shortage) Interfaces(ctx context.Context, f driver.Filter) ([]driver.Interface, error) {
	if d.refuses() {
		return nil, &driver.Error{Kind: cloud.ErrThrottled, Detail: "RequestLimitExceeded"}
	}
	return d.Driver.Interfaces(ctx, f)
}

// refuses notes a describe, and tells whether it is refused.
func (d *shortage) refuses() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	if now.Before(d.until) {
		d.refused++
		return true
	}
	d.passed = append(d.passed, now)
	return false
}

// count returns how many describes were refused.
func (d *shortage) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.refused
}

// lasts lets describes be refused until then.
func (d *shortage) lasts(until time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.until = until
}

// apart is the longest time between two describes that passed after some time.
func (d *shortage) apart(after time.Time) (longest time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	last := after
	for _, at := range d.passed {
		if at.After(after) {
			longest, last = max(longest, at.Sub(last)), at
		}
	}
	return max(longest, time.Since(last))
}

// The account is short of describes for a quarter of an hour. A quiet node is back at its period
// after a few times that, and one whose pods come and go is never without a describe for much longer than
// ten minutes once some pass.
func TestAShortageOfDescribesIsForgottenInProportion(t *testing.T) {
	for name, churns := range map[string]bool{"quiet": false, "busy": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &shortage{}
				_, n := one(t, large, func(n *testNode) {
					n.conf.Cloud.Describe = 5 * time.Minute
					n.over = func(inner driver.Driver) driver.Driver { d.Driver = inner; return d }
				})
				defer n.stop()
				_ = n.add()
				pass := func(minutes int) {
					for range minutes {
						sleep(time.Minute)
						if churns {
							n.del(n.keys()[0])
							_ = n.add()
						}
					}
				}
				pass(120)
				const short = 15 * time.Minute
				until := time.Now().Add(short)
				d.lasts(until)
				pass(15)
				until = until.Add(short)
				for d.lasts(until); d.count() < 4 && time.Now().Before(until); { // four at least
					pass(1)
				}
				d.lasts(time.Time{})
				ended := time.Now()
				if pass(10); !churns {
					pass(110)
					ended = time.Now()
				}
				if pass(240); d.count() < 4 || d.apart(ended) > 12*time.Minute {
					t.Errorf("after %d refusals in 15 to 30 minutes the node describes each %s", d.count(), d.apart(ended))
				}
			})
		})
	}
}

// An idle node sees within about ten minutes that somebody has taken an address from it.
func TestAnIdleNodeNoticesWithinTenMinutesWhatOthersTookAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, n := one(t, large, func(n *testNode) { n.conf.Cloud.Describe = 5 * time.Minute })
		defer n.stop()
		sleep(5 * time.Hour)
		for range 10 {
			gone, began := n.takeAwayFree(t), time.Now()
			for n.stateOf(gone) == eni.Free {
				if sleep(time.Second); time.Since(began) > 11*time.Minute {
					t.Fatalf("%s was taken away 11 minutes ago and is still handed out", gone)
				}
			}
			sleep(time.Hour)
		}
	})
}

// stateOf returns what the node cache says of an address.
func (n *testNode) stateOf(addr netip.Addr) eni.State {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, line := range n.cached.Addresses {
		if line.Addr == addr {
			return line.State
		}
	}
	return eni.Releasing
}

// Who names a shorter time between describes gets it, however far apart they were.
func TestAReloadEndsStretchedDescribes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, n := one(t, large, func(n *testNode) { n.conf.Cloud.Describe = 5 * time.Minute })
		n.stop()
		a := n.life.agent
		a.period = period{from: 1, last: a.Now(), doublings: mostDoublings}
		next := a.conf
		next.Cloud.Describe = time.Minute
		a.Reload(next)
		for range 100 {
			if d := a.describeEvery(a.Now()); d > 66*time.Second {
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
		a.period = period{from: 1, last: a.Now(), doublings: mostDoublings, quiet: 9}
		for range 100 {
			if d := a.describeEvery(a.Now()); d > longestPeriod {
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
		if idle > 33 || churning < 50 {
			t.Errorf("in five hours it describes %d times, and %d times while a pod is replaced each minute", idle, churning)
		}
	})
}

// A subnet that was full once is no reason to describe often for ever.
func TestANodeIsQuietAgainWhenItsSubnetHasRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := one(t, large, func(n *testNode) { n.conf.Cloud.Describe = 5 * time.Minute })
		defer n.stop()
		_ = w.account.SetUnmanaged("subnet-a", 1000)
		for range 20 {
			_ = n.add()
		}
		sleep(20 * time.Minute)
		if n.status().Exhausted == "" {
			t.Fatalf("the subnet is not known to be full: %+v", n.status())
		}
		_ = w.account.SetUnmanaged("subnet-a", 0)
		n.all(t, 40*time.Minute)
		sleep(3 * time.Hour)
		before := w.calls()["Interfaces"]
		sleep(5 * time.Hour)
		if looks := w.calls()["Interfaces"] - before; looks > 33 {
			t.Errorf("in five hours it describes %d times, status %+v", looks, n.status())
		}
	})
}

// What a subnet lacks is no reason for nodes to describe often that have nothing there.
func TestANodeIsQuietBesideASubnetWhereItHasNothing(t *testing.T) {
	for name, foreign := range map[string]int{"few addresses left": 220, "none left": 1000} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, sim.Options{}, subnet("subnet-a", "10.0.0.0/22"), subnet("subnet-b", "10.0.8.0/24"))
				n := w.addNode(testConfig("n"), sim.NodeSpec{Limits: large, Subnet: "subnet-a"})
				n.conf.Cloud.Describe = 5 * time.Minute
				n.start(-1, false)
				defer n.stop()
				sleep(time.Minute)
				for range 4 {
					if err := n.add(); err != nil {
						t.Fatal(err)
					}
				}
				if err := w.account.SetUnmanaged("subnet-b", foreign); err != nil {
					t.Fatal(err)
				}
				sleep(3 * time.Hour)
				if n.in("subnet-a") == 0 || n.in("subnet-b") > 0 {
					t.Fatalf("%d addresses in subnet-a, %d in subnet-b", n.in("subnet-a"), n.in("subnet-b"))
				}
				before := w.calls()["Interfaces"]
				sleep(5 * time.Hour)
				if looks := w.calls()["Interfaces"] - before; looks > 33 {
					t.Errorf("in five hours it describes %d times, status %+v", looks, n.status())
				}
			})
		})
	}
}
