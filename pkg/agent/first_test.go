package agent

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/pkg/status"
)

// throttles counts what the account refuses of describes.
type throttles struct {
	driver.Driver
	refused *atomic.Int32
}

func (d throttles) Interfaces(ctx context.Context, f driver.Filter) ([]driver.Interface, error) {
	list, err := d.Driver.Interfaces(ctx, f)
	if errors.Is(err, cloud.ErrThrottled) {
		d.refused.Add(1)
	}
	return list, err
}

// rollout is a cluster on an account with a fifth of what EC2 lets pass, as 500 nodes are on all of it. Each
// has run for a while.
func rollout(t *testing.T, nodes int) (w *world, refused *atomic.Int32) {
	w = newWorld(t, sim.Options{Buckets: map[string]sim.Bucket{sim.ActDescribe: {Burst: 20, Every: 250 * time.Millisecond}},
		Latency: map[string]sim.Latency{"": {Base: 300 * time.Millisecond}}}, subnet("subnet-a", "10.0.0.0/18"))
	refused = new(atomic.Int32)
	for i := range nodes {
		conf := testConfig(fmt.Sprint("n", i))
		conf.Cloud.Describe = 5 * time.Minute
		n := w.addNode(conf, sim.NodeSpec{Limits: eni.Limits{ENIs: 2, V4: 33}, Subnet: "subnet-a"})
		n.over = func(inner driver.Driver) driver.Driver { return throttles{inner, refused} }
		n.seed = uint64(i)
		n.start(-1, false)
		sleep(time.Second)
		for range 3 {
			_ = n.add()
		}
	}
	sleep(30 * time.Minute)
	for _, n := range w.nodes {
		if left := n.retry(); left > 0 {
			t.Fatalf("%d ADDs wait", left)
		}
	}
	return w, refused
}

// The agents of many nodes are restarted at once. They leave the account's describes to those that need some: no ADD
// waits, and a node whose pods need more than it has gets that as soon as always.
func TestAgentsThatAreRestartedTogetherDoNotEmptyTheAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, refused := rollout(t, 100)
		refused.Store(0)
		for i, n := range w.nodes {
			if i%2 == 0 {
				n.stop()
			} else {
				n.kill()
			}
		}
		before := w.calls()["Interfaces"]
		for _, n := range w.nodes {
			n.start(-1, false)
			defer n.stop()
		}
		sleep(5 * time.Second)
		for _, n := range w.nodes {
			if st := n.status(); !st.Ready || st.Problem != "" || st.ENIs != 1 || st.Target != 16 {
				t.Fatalf("%s is not ready: %+v", n.name, st)
			}
		}
		if described := w.calls()["Interfaces"] - before; described > 10 {
			t.Errorf("%d of 100 have described within five seconds", described)
		}
		busy := w.nodes[7]
		for range 20 {
			_ = busy.add()
		}
		for began := w.now(); busy.retry() > 0; sleep(100 * time.Millisecond) {
			if w.now() > began+3*time.Second {
				t.Fatalf("%d ADDs wait on a node that could have more", busy.retry())
			}
		}
		for i := range 15 * 12 {
			n := w.nodes[i*37%len(w.nodes)]
			if err := n.add(); err != nil {
				t.Errorf("%s: an ADD waits beside free addresses: %v", n.name, err)
			}
			n.del(n.keys()[0])
			sleep(5 * time.Second)
		}
		if refused.Load() > 0 {
			t.Errorf("%d describes were refused", refused.Load())
		}
		for _, n := range w.nodes {
			if n.life.sent == 0 {
				t.Errorf("%s has not described", n.name)
			}
		}
		if err := w.check(); err != nil {
			t.Error(err)
		}
	})
}

// A node that needs something does not wait for its first describe.
func TestTheFirstDescribeComesAtOnceWhereItIsNeeded(t *testing.T) {
	for name, change := range map[string]func(n *testNode){
		"nothing is":                 nil,
		"no node cache":              func(n *testNode) { n.cached, n.cacheErr = nil, nodecache.ErrMissing },
		"no memory":                  func(n *testNode) { n.memory = nil },
		"an address on its way back": func(n *testNode) { n.cached.StartRelease(n.inState(eni.Free)[:1], n.w.now()) },
		"a lost address":             func(n *testNode) { n.cached.MarkLost(n.inState(eni.Used)[:1], n.w.now()) },
		"other settings":             func(n *testNode) { n.conf.Settings.SNAT = !n.conf.Settings.SNAT },
		"pods that wait":             func(n *testNode) { n.addMany(20) },
		"more pods":                  func(n *testNode) { n.addMany(1) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, n := one(t, large, func(n *testNode) { n.conf.Cloud.Describe = 5 * time.Minute })
				n.addMany(3)
				sleep(30 * time.Minute)
				n.stop()
				if change != nil {
					change(n)
				}
				before := w.calls()["Interfaces"]
				n.start(-1, false)
				defer n.stop()
				sleep(100 * time.Millisecond)
				if described := w.calls()["Interfaces"] > before; described != (change != nil) {
					t.Errorf("it has described: %t", described)
				}
				if change == nil {
					sleep(10 * time.Minute)
				} else {
					sleep(time.Minute)
				}
				if !n.status().Ready || n.retry() > 0 || w.calls()["Interfaces"] == before {
					t.Errorf("%d ADDs wait, %+v", n.retry(), n.status())
				}
			})
		})
	}
}

// While no agent ran nobody saw what the cloud took away: the next one looks before pods get it, whether the one
// before was stopped or killed.
func TestAnAgentThatWasAwayForLongDescribesAtOnce(t *testing.T) {
	for name, end := range map[string]func(*testNode){"stopped": (*testNode).stop, "killed": (*testNode).kill} {
		for _, away := range []time.Duration{10 * time.Minute, 3 * time.Hour} {
			t.Run(fmt.Sprint(name, " for ", away), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w, n := one(t, large, func(n *testNode) { n.conf.Cloud.Describe = 5 * time.Minute })
					n.addMany(3)
					sleep(5 * time.Hour)
					end(n)
					sleep(away)
					long := away > longestPeriod
					before := w.calls()["Interfaces"]
					if long {
						for _, a := range n.inState(eni.Free) {
							if err := w.account.TakeAway(a); err != nil {
								t.Fatal(err)
							}
						}
					}
					n.start(-1, false)
					defer n.stop()
					sleep(2 * time.Second)
					if described := w.calls()["Interfaces"] > before; described != long {
						t.Errorf("it has described: %t", described)
					}
					n.addMany(5)
					if err := w.check(); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

// The agents of a release, or with a configuration, that can't work with the cloud don't become ready, so that
// the rollout ends with the first of them.
func TestAnAgentOfAnotherReleaseIsNotReadyBeforeTheCloudHasAnsweredIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := one(t, large, func(n *testNode) { n.conf.Cloud.Describe, n.as = 5*time.Minute, "1.0" })
		n.addMany(3)
		sleep(30 * time.Minute)
		restart := func(as string, wait time.Duration) status.Status {
			n.stop()
			n.as = as
			n.start(-1, false)
			sleep(wait)
			return n.status()
		}
		w.account.Refuse(cloud.ErrForbidden)
		if st := restart("1.0", time.Second); !st.Ready {
			t.Errorf("one that the cloud has answered before is not ready: %+v", st)
		}
		if st := restart("1.1", time.Second); st.Ready || !strings.HasPrefix(st.Problem, "cloud is not asked yet") || st.NextTry(st.Written) == "" || strings.Contains(n.why, "at most") || st.ENIs != 1 || st.Target != 16 {
			t.Errorf("one that the cloud never answered: %+v", st)
		}
		if st := restart("1.1", 2*time.Minute); st.Ready || st.Health.Faulty {
			t.Errorf("one that the cloud refuses: %+v", st)
		}
		w.account.Refuse(nil)
		if st := restart("1.1", time.Minute+time.Second); !st.Ready || st.ENILimit == 0 {
			t.Errorf("one that the cloud answers: %+v", st)
		}
		before := w.calls()["Interfaces"]
		if st := restart("1.1", time.Second); !st.Ready || w.calls()["Interfaces"] > before {
			t.Errorf("one that the cloud has answered before: %+v", st)
		}
		n.stop()
	})
}

// A first describe that fails is made again as soon as any.
func TestAFirstDescribeThatFailsIsNotPutOffAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := one(t, large, func(n *testNode) { n.conf.Cloud.Describe = 5 * time.Minute })
		sleep(30 * time.Minute)
		n.stop()
		w.account.FailNext(sim.ActDescribe, sim.Fault{Err: cloud.ErrUnavailable})
		before := w.calls()["Interfaces"]
		n.start(-1, false)
		defer n.stop()
		for w.calls()["Interfaces"] == before {
			sleep(time.Second)
		}
		sleep(10 * time.Second)
		if st := n.status(); !st.Ready || st.ENILimit == 0 || st.LastError == "" {
			t.Errorf("ten seconds after its first describe has failed: %+v", st)
		}
	})
}

func (n *testNode) addMany(pods int) {
	for range pods {
		_ = n.add()
	}
}

// inState returns the addresses of the node cache that are in the state.
func (n *testNode) inState(state eni.State) (addrs []netip.Addr) {
	for _, line := range n.cached.Addresses {
		if line.State == state {
			addrs = append(addrs, line.Addr)
		}
	}
	return addrs
}
