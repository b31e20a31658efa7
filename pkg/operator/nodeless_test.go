package operator_test

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/operator"
)

// A node is gone and its object stays, as one from a backup does that no Node owns: its pods, which nobody starts any more, keep nobody waiting and
// cost nobody anything, whoever leads. When the Node is there again they count as before.
func TestAnObjectWhoseNodeIsGoneKeepsNobodyWaiting(t *testing.T) {
	subnet := sim.Subnet{ID: "a", V4: netip.MustParsePrefix("10.0.0.0/27")}
	play(t, setup{nodes: 2, subnets: []sim.Subnet{subnet}}, func(ctx context.Context, w *world) {
		gone, full := w.agents[0], w.agents[1]
		w.leadWith(ctx, nil)
		w.begin(ctx)
		full.set(8)
		w.until(5*time.Minute, func() bool { return len(full.used()) == 8 })
		gone.set(30)
		time.Sleep(5 * time.Minute)
		if w.store.node(gone.name).Spec.Waiting == 0 {
			t.Fatal("no pod waits")
		}
		node := w.store.nodes[gone.name]
		w.store.forgetNode(gone.name)
		time.Sleep(10 * time.Second) // what was under way ends
		held := len(gone.addresses())
		full.set(2)
		before := w.store.node(full.name).Status.Reclaim
		check := func() {
			t.Helper()
			time.Sleep(5 * time.Minute)
			why, err := w.lead.Why(ctx, gone.name)
			w.must(err)
			if why.Class == "starving" || len(why.Queue) > 0 {
				t.Errorf("what is left of the node is of class %s and waits for %+v", why.Class, why.Queue)
			}
			if len(gone.addresses()) > held {
				t.Errorf("its instance has %d addresses, before %d", len(gone.addresses()), held)
			}
			if asked := w.store.node(full.name).Status.Reclaim; asked > before {
				t.Errorf("%s is asked for %d slots, before %d", full.name, asked, before)
			}
			if now, err := w.lead.Report(ctx); err != nil || now.Waiting > 0 {
				t.Errorf("%d pods wait, %v", now.Waiting, err)
			}
		}
		check()
		w.lead.stop()
		<-w.lead.ended
		w.leadWith(ctx, nil)
		check()
		w.store.changeNode(gone.name, func(n *operator.Node) { *n = node })
		time.Sleep(time.Minute)
		if why, err := w.lead.Why(ctx, gone.name); err != nil || why.Class != "starving" {
			t.Errorf("%+v, %v", why, err)
		}
	})
}
