package operator_test

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
)

// lostNode is a node that nobody starts pods on any more, in a full subnet: its pods wait, and another node has addresses to spare.
type lostNode struct {
	*world
	node, full *agent
	held       int   // addresses that it has
	asked      int32 // slots that the other one is asked for
}

// playLost plays a cluster whose first node is lost while its pods wait.
func playLost(t *testing.T, nodes int, lose func(w *world, name string), run func(ctx context.Context, lost lostNode)) {
	subnet := sim.Subnet{ID: "a", V4: netip.MustParsePrefix("10.0.0.0/27")}
	play(t, setup{nodes: nodes, subnets: []sim.Subnet{subnet}}, func(ctx context.Context, w *world) {
		lost := lostNode{world: w, node: w.agents[0], full: w.agents[1]}
		w.leadWith(ctx, nil)
		w.begin(ctx)
		lost.full.set(8)
		w.until(5*time.Minute, func() bool { return len(lost.full.used()) == 8 })
		lost.node.set(30)
		time.Sleep(5 * time.Minute)
		if w.store.node(lost.node.name).Spec.Waiting == 0 {
			t.Fatal("no pod waits")
		}
		lose(w, lost.node.name)
		time.Sleep(10 * time.Second) // what was under way ends
		lost.held = len(lost.node.addresses())
		lost.full.set(2)
		lost.asked = w.store.node(lost.full.name).Status.Reclaim
		run(ctx, lost)
	})
}

// check sees to it that the node's pods keep nobody waiting and cost nobody anything, however long they wait.
func (l lostNode) check(ctx context.Context) {
	l.Helper()
	time.Sleep(5 * time.Minute)
	why, err := l.lead.Why(ctx, l.node.name)
	l.must(err)
	if why.Class == "starving" || len(why.Queue) > 0 {
		l.Errorf("the lost node is of class %s and waits for %+v", why.Class, why.Queue)
	}
	if n := len(l.node.addresses()); n > l.held {
		l.Errorf("its instance has %d addresses, before %d", n, l.held)
	}
	if asked := l.store.node(l.full.name).Status.Reclaim; asked > l.asked {
		l.Errorf("%s is asked for %d slots, before %d", l.full.name, asked, l.asked)
	}
}

// checkFound sees to it that a minute after the node is there again its pods count as before.
func (l lostNode) checkFound(ctx context.Context) {
	l.Helper()
	time.Sleep(time.Minute)
	if why, err := l.lead.Why(ctx, l.node.name); err != nil || why.Class != "starving" {
		l.Errorf("%+v, %v", why, err)
	}
}
