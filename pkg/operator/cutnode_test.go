package operator_test

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/operator"
)

// A node dies while its pods wait in a full subnet. The last addresses go to pods of nodes that live, though they wait for less long, and nobody
// gives back what it has for pods that nobody will start. When the cluster reaches the node again its pods count as before.
func TestPodsOfANodeThatTheClusterDoesNotReachWaitBehindOthers(t *testing.T) {
	subnet := sim.Subnet{ID: "a", V4: netip.MustParsePrefix("10.0.0.0/27")}
	play(t, setup{nodes: 3, subnets: []sim.Subnet{subnet}}, func(ctx context.Context, w *world) {
		dead, full, last := w.agents[0], w.agents[1], w.agents[2]
		w.leadWith(ctx, nil)
		w.begin(ctx)
		full.set(8)
		w.until(5*time.Minute, func() bool { return len(full.used()) == 8 })
		dead.set(30)
		time.Sleep(5 * time.Minute)
		if w.store.node(dead.name).Spec.Waiting == 0 {
			t.Fatal("no pod waits")
		}
		w.store.changeNode(dead.name, func(n *operator.Node) { n.Cut = true })
		time.Sleep(10 * time.Second) // what was under way ends
		held := len(dead.addresses())
		full.set(2)
		before := w.store.node(full.name).Status.Reclaim
		time.Sleep(5 * time.Minute)
		why, err := w.lead.Why(ctx, dead.name)
		w.must(err)
		if why.Class == "starving" || len(why.Queue) > 0 {
			t.Errorf("the dead node is of class %s and waits for %+v", why.Class, why.Queue)
		}
		if len(dead.addresses()) > held {
			t.Errorf("the dead node has %d addresses, before %d", len(dead.addresses()), held)
		}
		if asked := w.store.node(full.name).Status.Reclaim; asked > before {
			t.Errorf("%s is asked for %d slots, before %d", full.name, asked, before)
		}
		had := len(last.addresses())
		last.set(had + 2)
		w.until(10*time.Minute, func() bool { return len(last.used()) == had+2 })
		w.store.changeNode(dead.name, func(n *operator.Node) { n.Cut = false })
		time.Sleep(time.Minute)
		if why, err = w.lead.Why(ctx, dead.name); err != nil || why.Class != "starving" {
			t.Errorf("%+v, %v", why, err)
		}
	})
}
