package agent

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/pool"
)

// The cloud refuses what is about one ENI: it has lost the tag that permissions rest on, or its
// state lets nobody change it. The node has room on others.
func TestOneENIThatRefusesDoesNotStarveTheNode(t *testing.T) {
	busy := func() error {
		return &driver.Error{Kind: cloud.ErrUnavailable, Why: cloud.Busy, Detail: "the ENI's state does not allow it"}
	}
	for name, tt := range map[string]struct {
		method string
		err    func() error
	}{
		"no assignments allowed": {"Assign", isForbidden},
		"no releases allowed":    {"Unassign", isForbidden},
		"busy":                   {"Assign", busy},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, n, d := withMeddler(t, sim.NodeSpec{Limits: eni.Limits{ENIs: 4, V4: 50}}, func(_ *world, n *testNode, _ *meddled) {
					n.conf.Pool.FirstENI = 1
				})
				defer n.stop()
				first := ""
				for _, nic := range n.attached() {
					if nic.Index == 1 {
						first = nic.ID
					}
				}
				refuse := func(method, about string) error {
					if method == tt.method && about == first {
						return tt.err()
					}
					return nil
				}
				if tt.method == "Unassign" { // there must be something to give back
					for range 40 {
						_ = n.add()
					}
					n.all(t, time.Minute)
					for _, k := range n.keys() {
						n.del(k)
					}
				}
				d.refuseIf(refuse)
				sleep(10 * time.Minute)
				for range 60 {
					_ = n.add()
				}
				n.all(t, 5*time.Minute)
			})
		})
	}
}

// The owner of one of the node's subnets forbids new ENIs there. Another one has room.
func TestOneSubnetThatIsForbiddenDoesNotStarveTheNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, n, _ := withMeddler(t, sim.NodeSpec{Limits: eni.Limits{ENIs: 4, V4: 9}}, func(_ *world, n *testNode, d *meddled) {
			n.options = func(o engine.Options) engine.Options {
				o.Subnets, o.SubnetTags = []string{"subnet-a", "subnet-b"}, nil
				return o
			}
			d.refuseIf(func(method, about string) error {
				if method == "Create" && about == "subnet-b" {
					return isForbidden()
				}
				return nil
			})
		})
		defer n.stop()
		for range 20 {
			_ = n.add()
		}
		n.all(t, 5*time.Minute)
	})
}

func TestASubnetThatIsForbiddenIsNotToldAsExhausted(t *testing.T) {
	w := newWorld(t, sim.Options{}, subnet("subnet-a", "10.0.1.0/24"))
	a := w.addNode(testConfig("n1"), sim.NodeSpec{Limits: large, Subnet: "subnet-a"}).agent(&life{killAt: -1}, w.log)
	for err, want := range map[error]pool.Kind{cloud.ErrForbidden: pool.Forbidden, cloud.ErrUnavailable: pool.Unavailable, cloud.ErrSubnetFull: pool.SubnetFull,
		&cloud.Error{Kind: cloud.ErrNotFound, Why: cloud.NoSuchSubnet}: pool.NoSubnet} {
		a.view.subnets = []cloud.Subnet{{ID: "subnet-a", Free: 100, New: true}}
		a.backoffs = backoffs{}
		a.applyResult(result{call: &call{key: intentKey("t"), op: "CreateInterface", subnet: "subnet-a"}, err: err}, 1)
		if got := a.reasons(2).noSubnet(1)[0]; got.Kind != want {
			t.Errorf("%v: the subnet is told as %+v, want %s", err, got, want)
		}
	}
}

// What there is not may be an ENI, the instance or a security group: naming another subnet mends none of
// those. Which it is, the driver tells, and the engine hands it on.
func TestOnlyASubnetThatThereIsNotIsToldAsNoSubnet(t *testing.T) {
	for why, want := range map[cloud.Why]pool.Kind{cloud.NoSuchSubnet: pool.NoSubnet, cloud.NoSuchInstance: pool.WrongInstance, cloud.Other: pool.CallFailed} {
		synctest.Test(t, func(t *testing.T) {
			_, n, _ := withMeddler(t, sim.NodeSpec{Limits: eni.Limits{ENIs: 2, V4: 9}}, func(_ *world, n *testNode, d *meddled) {
				d.refuseIf(func(method, _ string) error {
					if method == "Create" {
						return &driver.Error{Kind: cloud.ErrNotFound, Why: why, Detail: "NoSuchObject"}
					}
					return nil
				})
			})
			defer n.stop()
			for range 12 {
				_ = n.add()
			}
			sleep(30 * time.Second)
			if c := n.status().Causes; len(c) == 0 || c[0].Kind != want.String() || !strings.Contains(c[0].What, "NoSuchObject") {
				t.Errorf("cause %d is told as %+v, want %s", why, c, want)
			}
		})
	}
}

// What the cloud said of the last try is what a person needs, for as long as pods wait: also
// while nothing is tried, and when other calls work.
func TestAProblemIsTheCloudsOwnWordsForAsLongAsPodsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, n, _ := withMeddler(t, sim.NodeSpec{Limits: eni.Limits{ENIs: 2, V4: 9}}, func(_ *world, n *testNode, d *meddled) {
			d.refuseIf(func(method, _ string) error {
				if method == "Create" {
					return &driver.Error{Kind: cloud.ErrForbidden, Detail: "InvalidGroup.NotFound: no sg-0"}
				}
				return nil
			})
		})
		defer n.stop()
		for range 12 {
			_ = n.add()
		}
		sleep(30 * time.Second)
		for range 100 {
			sleep(3 * time.Second)
			if p := n.status().Problem; !strings.Contains(p, "no sg-0") || !strings.Contains(p, "`enipoolctl cloud check`") {
				t.Fatalf("the problem is %q", p)
			}
		}
	})
}

// A status that says the same is not written anew with each tick: the clocks of the two times that
// the next try is made of are read one after the other.
func TestTheNextTryIsTheSameInEachTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := one(t, large, nil)
		n.stop()
		a, now := n.life.agent, w.now()
		a.backoffs.fail(of(grows), failure{delay: delayRetry, atLeast: time.Minute, err: cloud.ErrThrottled}, now, a.Rand)
		first, wall := time.Time{}, time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC).Add(-a.backoffs[of(grows)].until)
		for tick := range 20 {
			at := now + time.Duration(tick)*time.Second
			a.Clock = wallClock{a.Clock, func() time.Time { return wall.Add(at + time.Duration(tick)*time.Millisecond) }}
			a.tellCauses(at)
			if next := a.status.Causes[0].Next; tick == 0 {
				first = next
			} else if !next.Equal(first) {
				t.Fatalf("tick %d: tried again at %s, before that at %s", tick, next, first)
			}
		}
	})
}
