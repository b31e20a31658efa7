package agent

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/scale"
)

// changesOver runs a test of a node that calls the cloud itself at first, beside an operator.
func changesOver(t *testing.T, test func(t *testing.T, n *testNode, op *testOperator)) {
	operated(t, func(t *testing.T, n *testNode, op *testOperator) {
		n.callsBy(agentconf.Sim)
		test(t, n, op)
	})
}

// callsBy says who calls the cloud, as agent.yaml does; the next agent goes by it.
func (n *testNode) callsBy(provider string) { n.conf.Cloud.Provider = provider }

// lines returns the cache's records of pods.
func (n *testNode) lines() (list []eni.Address) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, line := range n.cached.Used() {
		list = append(list, eni.Address{Addr: line.Addr, ENI: line.ENI, State: line.State, Since: line.Since, Owner: line.Owner})
	}
	return list
}

func sameLines(x, y []eni.Address) bool {
	return slices.EqualFunc(x, y, func(a, b eni.Address) bool {
		return a.Addr == b.Addr && a.ENI == b.ENI && a.State == b.State && a.Since == b.Since && a.Owner.Key == b.Owner.Key
	})
}

func TestANodeChangesOverAndBackUnderItsPods(t *testing.T) {
	changesOver(t, func(t *testing.T, n *testNode, op *testOperator) {
		n.start(-1, false)
		defer func() { n.stop() }()
		n.fillWith(t, 20)
		sleep(time.Hour)
		if op.object().Version != "" {
			t.Fatal("a node that calls the cloud itself has an object")
		}
		before, calls := n.lines(), n.w.calls()
		n.stop()
		n.callsBy(agentconf.Operator)
		n.start(-1, false)
		sleep(time.Minute)
		if is := op.object(); is.Status.Mode != order.Operator {
			t.Fatalf("%+v", is)
		}
		n.must(t)
		if !sameLines(before, n.lines()) {
			t.Errorf("pods' addresses changed from %v to %v", before, n.lines())
		}
		n.fillWith(t, 20)
		sleep(time.Minute)
		if got := n.w.calls(); fmt.Sprint(got) != fmt.Sprint(calls) {
			t.Errorf("the agent has called the cloud: %v, before %v", got, calls)
		}
		if h := op.object().Handover; h != nil {
			t.Errorf("%+v is still handed over", h)
		}
		before = n.lines()
		n.stop()
		n.callsBy(agentconf.Sim)
		n.start(-1, false)
		sleep(5 * time.Minute)
		if is := op.object(); is.Spec.Mode != order.Self || is.Status.Mode != order.Self {
			t.Errorf("%+v", is)
		}
		if !sameLines(before, n.lines()) {
			t.Errorf("pods' addresses changed from %v to %v", before, n.lines())
		}
		version := op.object().Version
		n.fillWith(t, 10)
		for _, k := range n.keys() {
			n.del(k)
		}
		sleep(time.Hour)
		n.must(t)
		if got := n.w.calls(); got["AssignAddresses"]+got["CreateInterface"] <= calls["AssignAddresses"]+calls["CreateInterface"] || got["UnassignAddresses"] == calls["UnassignAddresses"] {
			t.Errorf("the agent does not call the cloud: %v, before %v", got, calls)
		}
		if op.object().Version != version {
			t.Error("the object of a node that calls the cloud itself is written")
		}
	})
}

// Nobody calls while the operator does not answer, and pods get what is free.
func TestANodeThatLeavesASilentOperatorWaits(t *testing.T) {
	operatedWith(t, 10, func(t *testing.T, n *testNode, op *testOperator) {
		op.set(func(op *testOperator) { op.away = true })
		n.stop()
		n.callsBy(agentconf.Sim)
		n.start(-1, false)
		_ = n.add()
		sleep(time.Hour)
		n.noCalls(t)
		if len(n.keys()) != 11 {
			t.Errorf("%d pods have addresses", len(n.keys()))
		}
		op.set(func(op *testOperator) { // a person breaks the glass
			next := op.is
			next.Status.Mode = order.Self
			op.put(next)
		})
		sleep(time.Minute)
		if n.w.calls()["Interfaces"] == 0 {
			t.Error("nobody describes")
		}
		n.must(t)
	})
}

// What an agent has told the cloud when it is killed is handed over, and not before its calls can have ended.
func TestWhatIsUnderWayIsHandedOver(t *testing.T) {
	step := 4
	if testing.Short() {
		step = 16
	}
	for at := 2; at < 60; at += step {
		for _, before := range []bool{true, false} {
			t.Run(fmt.Sprint(at, before), func(t *testing.T) {
				changesOver(t, func(t *testing.T, n *testNode, op *testOperator) {
					n.start(at, before)
					defer func() { n.stop() }()
					for _, pods := range []int{35, 1} {
						for len(n.keys()) > pods {
							n.del(n.keys()[0])
						}
						left := n.retry()
						for range pods - len(n.keys()) - left {
							_ = n.add()
						}
						for range 60 {
							sleep(20 * time.Second)
							n.retry()
							if n.isDead() {
								break
							}
						}
					}
					began := n.w.now()
					n.stop()
					n.callsBy(agentconf.Operator)
					n.start(-1, false)
					sleep(65 * time.Second)
					h := op.object().Handover
					if h != nil {
						t.Errorf("handed over after %s: %+v", n.w.now()-began, h)
					}
					for range 20 {
						sleep(30 * time.Second)
						n.must(t)
					}
					left := n.retry()
					n.fillWith(t, 40-len(n.keys())-left)
					if op.object().Status.Mode != order.Operator {
						t.Errorf("%+v", op.object())
					}
				})
			})
		}
	}
}

// The operator finds what goes back by what its cloud shows: the delegated prefix, or an address beside those. An ENI that has addresses in
// service does not go, whatever an agent had noted when it was killed.
func TestADelegatedPrefixIsHandedOverAsSuch(t *testing.T) {
	operatedWith(t, 0, func(t *testing.T, n *testNode, op *testOperator) {
		o, is := n.life.agent.supply.(*ordered)
		if !is {
			t.Fatal("no operator calls")
		}
		n.cached.Settings.V4Block = 28
		health := o.mem.Health
		o.mem = memory{Health: health, Begun: map[netip.Addr]bool{netip.MustParseAddr("10.0.4.16"): true, netip.MustParseAddr("10.0.4.17"): true},
			Leaving: map[string]bool{"eni-heard": true, "eni-not": false, n.cached.ENIs[0].ID: true}, Creates: []create{{Token: "token"}}}
		want := &order.Handover{Tokens: []string{"token"}, ReleaseInterfaces: []string{"eni-heard"},
			Release: []netip.Prefix{netip.MustParsePrefix("10.0.4.16/32"), netip.MustParsePrefix("10.0.4.16/28"), netip.MustParsePrefix("10.0.4.17/32")}}
		if got, whole := o.handover(n.cached, nil); !whole || !sameAsks(order.Asks{Handover: got}, order.Asks{Handover: want}) {
			t.Errorf("%+v, want %+v", got, want)
		}
		// Whether an ENI serves pods nobody knows then: none goes, and the handover waits until no call can take effect any more.
		damaged := n.cached.Clone()
		damaged.Addresses, damaged.Damaged = nil, []ipam.Damage{{Cause: "line 7"}}
		if got, whole := o.handover(damaged, nil); whole || len(got.ReleaseInterfaces) > 0 {
			t.Errorf("%+v of a node cache with damaged records, whole: %v", got, whole)
		}
		o.mem.Scale = &scale.State{}
		if got, whole := o.handover(nil, nodecache.ErrDamaged); whole || len(got.ReleaseInterfaces) > 0 {
			t.Errorf("%+v of a damaged node cache, whole: %v", got, whole)
		}
		o.mem = memory{Health: health}
		if got, _ := o.handover(nil, nodecache.ErrBoot); got != nil {
			t.Errorf("%+v of a node whose agents have called nothing", got)
		}
	})
}

// The object is put back to one of before, by which an address that a pod has goes back, and the node cache can't be read at that moment: the agent
// says nothing before it knows what serves pods.
func TestNothingIsToldOfAnObjectOfBeforeWithoutTheNodeCache(t *testing.T) {
	operatedWith(t, 4, func(t *testing.T, n *testNode, op *testOperator) {
		sleep(time.Minute)
		used := n.lines()[0].Addr
		backup := op.object()
		backup.Spec.Release, backup.Status.Revision = []netip.Prefix{netip.PrefixFrom(used, 32)}, backup.Status.Revision-1
		n.mu.Lock()
		n.cacheErr = errors.New("the file is locked")
		n.mu.Unlock()
		op.set(func(op *testOperator) { op.away = true })
		op.putBack(backup)
		n.wake()
		sleep(time.Minute)
		if is := op.object().Spec; is.SeenRevision > 0 {
			t.Errorf("the operator is told of revision %d while %v go back", is.SeenRevision, is.Release)
		}
		n.mu.Lock()
		n.cacheErr = nil
		n.mu.Unlock()
		sleep(5 * time.Minute)
		if is := op.object().Spec; is.SeenRevision == 0 || len(is.Release) > 0 {
			t.Errorf("the operator is told of revision %d while %v go back", is.SeenRevision, is.Release)
		}
	})
}

// An agent with more under way than its object takes hands over what fits, once none of the rest can take effect any more.
func TestAHandoverThatIsTooLongWaitsAndIsCut(t *testing.T) {
	changesOver(t, func(t *testing.T, n *testNode, op *testOperator) {
		n.start(-1, false)
		defer func() { n.stop() }()
		n.fillWith(t, 4)
		n.stop()
		n.callsBy(agentconf.Operator)
		n.start(-1, false)
		synctest.Wait()
		o, is := n.life.agent.supply.(*ordered)
		if !is || op.object().Version != "" {
			t.Fatal("no operator calls, or it does already")
		}
		for i := range 1100 {
			o.mem.Begun[netip.AddrFrom4([4]byte{10, 9, byte(i / 256), byte(i)})] = true
		}
		for i := range 70 {
			o.mem.Leaving[fmt.Sprint("eni-", i)] = true
			o.mem.Creates = append(o.mem.Creates, create{Token: fmt.Sprint("token-", i)})
		}
		began := n.w.now()
		for op.handedOver() == nil && n.w.now()-began < time.Hour {
			sleep(10 * time.Second)
		}
		h := op.handedOver()
		if h == nil || len(h.Release) != 1024 || len(h.Tokens) != 16 || len(h.ReleaseInterfaces) != 64 {
			t.Errorf("handed over: %+v", h)
		}
		if took := n.w.now() - began; took < 6*time.Minute {
			t.Errorf("handed over after %s", took)
		}
	})
}
