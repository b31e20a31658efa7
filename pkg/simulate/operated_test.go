package simulate

import (
	"context"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/eni"
)

// ec2World is an account of EC2 whose calls always take the same time.
func ec2World(l eni.Limits) World {
	r := EC2()
	return World{Limits: l, MaxPods: 110, Driver: r.Driver, Mutating: r.Mutating, Describing: r.Describing, Buckets: r.Buckets, Wait: 5 * time.Second, Seed: 1,
		Subnets: []Subnet{{ID: "a", CIDR: netip.MustParsePrefix("10.0.0.0/8"), Reserved: 5}},
		Latency: map[string]sim.Latency{"": {Base: 100 * time.Millisecond}, assign: {Base: 600 * time.Millisecond}, create: {Base: 4 * time.Second}}}
}

func batchSetting() Setting {
	c := agentconf.Default()
	c.Settings.SNAT, c.ModeSet = false, true
	return Setting{Name: "batch", Config: c}
}

func operate(t *testing.T, w World, f Fleet) Result {
	t.Helper()
	r, err := Operate(context.Background(), w, f, batchSetting(), f.Length(w, batchSetting()))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// With one call a node the last of N nodes is served after the describes, (N - 80) / 4 s, and its call: exactly the closed form. No more
// than 32 are under way at once, so that the first 80 take a little longer.
func TestAnOperatorServesNodesThatComeAtOnceAtTheBound(t *testing.T) {
	for nodes, want := range map[int]time.Duration{1: 0, 32: 0, 1000: 230 * time.Second, 5000: 1230 * time.Second} {
		w := ec2World(eni.Limits{ENIs: 15, V4: 50})
		r := operate(t, w, Fleet{Nodes: nodes, Pods: 30, Cold: true, Share: 80})
		// Each thousand nodes are a page; types and subnets are a request each.
		looks := time.Duration((nodes+999)/1000+2) * 100 * time.Millisecond
		// The request passes in the middle of its call.
		if inCall := 600 * time.Millisecond; time.Duration(r.Served.Reached) != looks+want+inCall || time.Duration(r.Served.Bound) != want+inCall/2 {
			t.Errorf("%d nodes: served after %s with a bound of %s, want %s and %s", nodes, r.Served.Reached, r.Served.Bound, looks+want+inCall, want+inCall/2)
		}
		if s := r.Served; !s.All || s.Made != nodes || s.Needed != nodes || s.Refused != 0 || r.Waits.Waited != 30*nodes || r.Share != 80 {
			t.Errorf("%d nodes: %+v, %+v", nodes, r.Served, r.Waits)
		}
	}
}

// What a call is made of waits for its tokens one after the other, and in the end all has come that the mode orders.
func TestAnOperatorMakesAllThatIsOrdered(t *testing.T) {
	w, f := ec2World(eni.Limits{ENIs: 4, V4: 15}), Fleet{Nodes: 100, Pods: 30, Cold: true, Share: 80}
	r := operate(t, w, f)
	s := r.Served
	if !s.All || s.Reached < s.Bound || s.Made < s.Needed || s.Made > s.Planned {
		t.Errorf("%+v", s)
	}
	if last := r.Series[len(r.Series)-1]; last.Owned != 100*last.Target/100 && last.Owned < last.Demand || last.Waiting != 0 {
		t.Errorf("in the end: %+v", last)
	}
	if r.Calls.Assign != 100 || r.Calls.Attachments != 300 {
		t.Errorf("calls: %+v", r.Calls)
	}
	if again := operate(t, w, f); !reflect.DeepEqual(r, again) {
		t.Error("the same arguments give another result")
	}
}

// Nodes that had addresses for some of their pods need the rest alone.
func TestAnOperatorServesASurge(t *testing.T) {
	r := operate(t, ec2World(eni.Limits{ENIs: 15, V4: 50}), Fleet{Nodes: 200, Pods: 30, Share: 80})
	if s := r.Served; !s.All || s.Reached != Seconds(30*time.Second+600*time.Millisecond) || r.Calls.Describe != 0 || r.Waits.Waited != 200*14 {
		t.Errorf("%+v, %+v, %+v", r.Served, r.Calls, r.Waits)
	}
}

func TestAnOperatorIsNotPlayedWhereSubnetsRunOut(t *testing.T) {
	w := ec2World(eni.Limits{ENIs: 15, V4: 50})
	w.Subnets[0].CIDR = netip.MustParsePrefix("10.0.0.0/24")
	for _, f := range []Fleet{{Nodes: 100, Pods: 30, Share: 80}, {Nodes: 0, Pods: 30, Share: 80}, {Nodes: 1, Pods: 111, Share: 80}, {Nodes: 1, Pods: 1}} {
		if r, err := Operate(context.Background(), w, f, batchSetting(), time.Minute); err == nil {
			t.Errorf("%+v is played: %+v", f, r)
		}
	}
}
