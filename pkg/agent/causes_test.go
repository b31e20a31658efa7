package agent

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/health"
	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/pkg/pool"
)

func TestWhatIsInTheWayIsTheReasonOfTheFault(t *testing.T) {
	small := eni.Limits{ENIs: 2, V4: 9, V6: 9} // 16 slots
	for _, tt := range []struct {
		name   string
		limits eni.Limits
		before func(*testNode) // the agent starts
		after  func(*testNode) // it has its first addresses
		pods   int
		want   string
		words  string
	}{
		{"more pods than the node can hold", small, nil, nil, 17, health.AddressLimitReached, "2 ENIs for pods with 8 slots each"},
		{"more pods than the node is to hold", large, func(n *testNode) { n.conf.Pool.MaxAllocateENI, n.conf.Pool.MaxIPsPerENI = 2, 9 }, nil, 17,
			health.AddressLimitReached, "2 ENIs for pods with 8 slots each"},
		{"the account may have no more ENIs", small, func(n *testNode) { n.conf.Pool.MaxAllocate = 16; n.conf.Pool.Scale.Batch = 4 }, func(n *testNode) { quota(n) }, 12, health.ENILimitReached, "limit reached"},
		{"the cloud refuses", large, nil, func(n *testNode) { n.w.account.Refuse(cloud.ErrForbidden) }, 20, health.CloudForbidden, "forbidden"},
		{"the cloud is away", large, nil, func(n *testNode) { n.w.account.Refuse(cloud.ErrUnavailable) }, 20, health.CloudUnavailable, "unavailable"},
		{"the cloud throttles", large, nil, func(n *testNode) {
			n.w.account.SetFaults(sim.Chance{Percent: 100, Fault: sim.Fault{Err: cloud.ErrThrottled}})
		}, 20, health.CloudThrottled, "throttled"},
		{"nobody knows what came of it", large, nil, func(n *testNode) {
			lost := sim.Fault{Err: cloud.ErrUnknown}
			n.w.account.SetFaults(sim.Chance{Action: sim.ActAssign, Percent: 100, Fault: lost}, sim.Chance{Action: sim.ActCreate, Percent: 100, Fault: lost})
		}, 20, health.CloudFailed, "outcome unknown"},
		{"the cloud is away from the start", large, func(n *testNode) { n.w.account.Refuse(cloud.ErrUnavailable) }, nil, 1, health.CloudUnavailable, "unavailable"},
		{"the cloud throttles from the start", large, func(n *testNode) {
			n.w.account.SetFaults(sim.Chance{Percent: 100, Fault: sim.Fault{Err: cloud.ErrThrottled}})
		}, nil, 1, health.CacheUnusable, "does not say what to build it from: Interfaces: throttled"},
		{"the cloud knows no such instance", large, func(n *testNode) {
			n.w.account.SetFaults(sim.Chance{Percent: 100, Fault: sim.Fault{Err: &sim.Error{Reason: sim.NoSuchInstance, Object: "n1"}}})
		}, nil, 1, health.WrongInstance, "no such instance n1; put right what names it: "},
		{"a full subnet that can't fill an ENI", eni.Limits{ENIs: 3, V4: 17, V6: 17}, func(n *testNode) {
			n.conf.Pool.Mode, n.conf.Pool.Multiple = pool.Burstable, 1
			_ = n.w.account.SetUnmanaged("subnet-a", 222) // leaves 10 when the first ENI is full
		}, nil, 20, health.SubnetExhausted, "no addresses left in subnet subnet-a"},
		{"the instance has no link here", large, nil, func(n *testNode) {
			n.cacheErr = nodecache.ErrDamaged
			for _, nic := range n.attached() {
				n.hidden[nic.MAC] = true
			}
		}, 1, health.WrongInstance, "pods can get no address: the node's primary ENI is not there"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, n := one(t, tt.limits, func(n *testNode) {
					inCluster(n)
					if tt.before != nil {
						tt.before(n)
					}
				})
				defer n.stop()
				if tt.after != nil {
					n.mu.Lock()
					tt.after(n)
					n.mu.Unlock()
				}
				n.crowd(tt.pods)
				sleep(45 * time.Second)
				if r := n.last(); r.Reason != tt.want || !strings.Contains(r.Message, tt.words) {
					t.Errorf("report %+v\nwant %s with %q; status %+v", r, tt.want, tt.words, n.status())
				}
			})
		})
	}
}

func TestALinkThatDoesNotComeIsAReasonToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := one(t, eni.Limits{ENIs: 3, V4: 17, V6: 17}, inCluster)
		defer n.stop()
		w.account.SetFaults(sim.Chance{Action: sim.ActAttach, Percent: 100, Fault: sim.Fault{Delay: 3 * time.Second}})
		n.crowd(30)
		sleep(6 * time.Second) // the ENI is being made
		n.mu.Lock()
		for _, nic := range n.attached() {
			if nic.Ours {
				n.hidden[nic.MAC] = true
			}
		}
		n.mu.Unlock()
		sleep(40 * time.Second)
		if r := n.last(); r.Reason != health.LinkMissing || !strings.Contains(r.Message, "no link on the node has its MAC") {
			t.Errorf("report %+v", r)
		}
		n.mu.Lock()
		before := n.linkLooks
		n.mu.Unlock()
		sleep(time.Hour)
		n.mu.Lock()
		defer n.mu.Unlock()
		if looks := n.linkLooks - before; looks > 5000 || looks < 100 {
			t.Errorf("the node's links were read %d times in an hour for one that does not come", looks)
		}
	})
}

func TestAQuotaThatWasRaisedIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := one(t, eni.Limits{ENIs: 3, V4: 17, V6: 17}, inCluster)
		quota(n)
		n.crowd(30)
		sleep(40 * time.Second)
		if r := n.last(); r.Reason != health.ENILimitReached {
			t.Errorf("told %+v", r)
		}
		if b := n.status().TargetCauses; !slices.ContainsFunc(b, func(why string) bool {
			return strings.HasPrefix(why, "no new ENI is asked for now: CreateInterface") && strings.Contains(why, "limit reached")
		}) || slices.Contains(b, "no subnet takes the ENI that is needed") {
			t.Errorf("blocked by %q", b)
		}
		w.account.SetFaults()
		sleep(15 * time.Minute)
		n.stop()
		if h, held := n.life.agent.backoffs[newENIsIn("")]; held || n.total() != 48 {
			t.Errorf("%d addresses, hold %+v", n.total(), h)
		}
	})
}

// A subnet is spared for a minute after it had none, and the quota that is reached meanwhile
// is what keeps the node from more: another subnet, which people were told to name, is no help.
func TestAQuotaIsTheProblemThoughASubnetWasFullJustBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := one(t, eni.Limits{ENIs: 3, V4: 17, V6: 17}, inCluster)
		defer n.stop()
		_ = w.account.SetUnmanaged("subnet-a", 1000)
		n.crowd(30)
		sleep(5 * time.Second)
		if st := n.status(); !strings.HasPrefix(st.Problem, "no addresses left in subnet subnet-a") {
			t.Errorf("a full subnet: problem %q", st.Problem)
		}
		_ = w.account.SetUnmanaged("subnet-a", 0)
		quota(n)
		sleep(30 * time.Second)
		if st := n.status(); st.Exhausted == "" || !strings.Contains(st.Problem, "limit reached") {
			t.Errorf("a quota: exhausted %q, problem %q", st.Exhausted, st.Problem)
		}
	})
}

func quota(n *testNode) {
	n.w.account.SetFaults(sim.Chance{Action: sim.ActCreate, Percent: 100, Fault: sim.Fault{Err: cloud.ErrLimit}})
}

// Nothing of a class is tried while the class is left alone: a subnet's own back-off that ends
// before says nothing of the next try.
func TestTheNextTryOfAnObjectIsNotBeforeThatOfItsClass(t *testing.T) {
	full, class := fullSubnet("subnet-a"), of(grows)
	b := backoffs{full: {until: 5 * time.Second, err: cloud.ErrSubnetFull}, class: {until: time.Minute, err: cloud.ErrThrottled}}
	r := reasons{backoffs: b, now: time.Second, view: &view{subnets: []cloud.Subnet{{ID: "subnet-a"}}}, full: func(string) bool { return true }}
	for by, c := range map[string]pool.Cause{"the back-off": b.because(full), "the subnet": r.subnet("subnet-a", 1)} {
		if c.Kind != pool.SubnetFull || c.Next != time.Minute {
			t.Errorf("%s: %+v", by, c)
		}
	}
	if c := b.because(class); c.Next != time.Minute {
		t.Errorf("the class: %+v", c)
	}
}
