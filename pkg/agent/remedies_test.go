package agent

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/health"
	"github.com/enipool/enipool/pkg/pool"
)

var v4Only = []eni.Family{eni.IPv4}

// What is told to help is what limits this node: a key that the file sets, the kubelet, or the instance.
func TestOnlyWhatLimitsTheNodeIsToldToBeRaised(t *testing.T) {
	limits := eni.Limits{ENIs: 2, V4: 7} // 12 slots
	for _, tt := range []struct {
		name string
		m    remedies
		want string
	}{
		{"the instance", remedies{}, "take a larger instance: no key of agent.yaml lowers what this one carries"},
		{"a key that binds", remedies{pool: pool.Config{MaxAllocate: 8}}, "raise pool.maxAllocate"},
		{"a key that does not", remedies{pool: pool.Config{MaxAllocate: 64}, maxPods: 110}, "take a larger instance: no key of agent.yaml lowers what this one carries"},
		{"the kubelet", remedies{maxPods: 10}, "raise the kubelet's maxPods"},
		{"both", remedies{pool: pool.Config{MaxAllocate: 10}, maxPods: 10}, "raise pool.maxAllocate and the kubelet's maxPods"},
		{"fewer ENIs", remedies{pool: pool.Config{MaxAllocateENI: 1}}, "raise pool.maxAllocateENI"},
		{"smaller ENIs", remedies{pool: pool.Config{MaxIPsPerENI: 4}}, "raise pool.maxIPsPerENI"},
		{"both of ENIs", remedies{pool: pool.Config{MaxAllocateENI: 1, MaxIPsPerENI: 4}}, "raise pool.maxAllocateENI or pool.maxIPsPerENI"},
		{"Baidu's own numbers", remedies{cloud: agentconf.Cloud{Provider: agentconf.Baidu}}, "take a larger instance: no key of agent.yaml lowers what this one carries"},
		{"the file's numbers for Baidu", remedies{cloud: agentconf.Cloud{Provider: agentconf.Baidu, MaxENIs: 2}},
			"take a larger instance, or raise cloud.maxENIs and restart the agent if this one carries more"},
		{"Baidu's keys elsewhere", remedies{cloud: agentconf.Cloud{Provider: agentconf.AWS, MaxENIs: 2}}, "take a larger instance: no key of agent.yaml lowers what this one carries"},
	} {
		m := tt.m
		m.limits, m.families = limits, v4Only
		got := m.give([]pool.Cause{{Kind: pool.AddressLimit, Words: "x"}})
		if want := "move pods to other nodes, or " + tt.want; len(got) != 1 || got[0].Todo != want {
			t.Errorf("%s: %+v, want %s", tt.name, got, want)
		}
	}
}

// Where the node may have no more ENIs, another subnet, which serves new ones alone, is no help; both are told in one.
func TestAnotherSubnetIsNoRemedyForANodeWithAllItsENIs(t *testing.T) {
	m := remedies{limits: eni.Limits{ENIs: 4, V4: 101}, families: v4Only}
	full := pool.Cause{Kind: pool.SubnetFull, Words: "no addresses left in subnet subnet-1"}
	most := pool.Cause{Kind: pool.ENILimit, Words: "the node has 4 of 4 ENIs", Todo: pool.LargerInstance}
	given := []pool.Cause{full, most}
	got := m.give(given)
	const words = "no addresses left in subnet subnet-1, and the node has 4 of 4 ENIs"
	const todo = "move pods to other nodes, or delete what else uses addresses there: another subnet serves new ENIs only"
	if got[0].Words != words || got[0].Todo != todo || got[1].Todo != "move pods to other nodes, or take a larger instance" {
		t.Errorf("%+v", got)
	}
	if given[0] != full || given[1] != most {
		t.Errorf("the causes themselves became %+v", given)
	}
	if got := m.give([]pool.Cause{full}); got[0] != full {
		t.Errorf("with ENIs left: %+v", got)
	}
	quota := pool.Cause{Kind: pool.ENILimit, Words: "limit reached"} // of the account: what helps is what always does
	if got := m.give([]pool.Cause{quota}); got[0] != quota {
		t.Errorf("a quota: %+v", got)
	}
}

// What cools down is there soon: who reads the error of the pod has nothing to do where that is enough.
func TestNothingIsToBeDoneWhileEnoughCoolsDown(t *testing.T) {
	limit := []pool.Cause{{Kind: pool.AddressLimit}, {Kind: pool.Forbidden}}
	for _, tt := range []struct {
		d    demand
		want bool
	}{
		{demand{waiting: 1, used: 11, assigned: 12}, true},
		{demand{waiting: 2, used: 11, assigned: 12}, false},
		{demand{waiting: 2, used: 10, assigned: 11, free: 1}, true},
		{demand{used: 11, assigned: 12}, false}, // nobody waits that is known of
		{demand{waiting: 1, used: 12, assigned: 12}, false},
	} {
		got := remedies{demand: tt.d, limits: eni.Limits{ENIs: 2, V4: 7}, families: v4Only}.give(limit)
		if is := got[0].Todo == restsOut; is != tt.want || got[1].Todo != "" {
			t.Errorf("%+v: %+v", tt.d, got)
		}
	}
}

// fullOfAll is a node with all its ENIs in a subnet that has no more, and pods on all it has.
func fullOfAll(t *testing.T, log *logged) *testNode {
	w := newWorld(t, sim.Options{}, subnet("subnet-1", "10.0.1.0/24"))
	w.log = slog.New(slog.NewTextHandler(log, nil))
	n := w.addNode(testConfig("n1"), sim.NodeSpec{Limits: eni.Limits{ENIs: 2, V4: 17}, Subnet: "subnet-1"})
	n.conf.Settings.Families = v4Only
	inCluster(n)
	n.conf.Pool.Scale.Batch = 4 // so that both ENIs have room when the subnet is full
	n.start(-1, false)
	sleep(10 * time.Second)
	n.crowd(20)
	for left := 1; left > 0; left = n.retry() {
		sleep(time.Second)
	}
	_ = w.account.SetUnmanaged("subnet-1", 1000)
	return n
}

func TestTheRemedyOfAFullNodeCanWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logged
		n := fullOfAll(t, &log)
		defer n.stop()
		n.crowd(4) // all pods have one, and the target is out of reach
		for left := 1; left > 0; left = n.retry() {
			sleep(time.Second)
		}
		sleep(20 * time.Second)
		st := n.status()
		if told := st.Cause(st.Written); len(st.Causes) > 0 || !strings.Contains(told, "and ENI limit reached: 2 of 2") || !strings.Contains(told, "; move pods to other nodes") || st.NextTry(st.Written) == "" {
			t.Errorf("while no pod waits: told %q, next try %q, causes %+v", told, st.NextTry(st.Written), st.Causes)
		}
		n.crowd(6)
		sleep(20 * time.Second)
		st = n.status()
		for _, part := range []string{"no addresses left in subnet subnet-1, and the node has 2 of 2 ENIs; move pods to other nodes"} {
			if !strings.HasPrefix(st.Problem, part) || strings.Contains(st.Problem, "cloud.subnets") {
				t.Errorf("told %q, want %q", st.Problem, part)
			}
		}
		if log.count(`msg="node is full"`) != 1 {
			t.Error("the log does not say once that the node is full")
		}
		if h := n.status().Health; h.Reason == health.SubnetExhausted && strings.Contains(h.Message, "cloud.subnets") {
			t.Errorf("the condition says %q", h.Message)
		}
	})
}
