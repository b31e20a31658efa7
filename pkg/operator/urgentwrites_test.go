package operator_test

import (
	"context"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/operator"
)

// talkative has so many nodes say something that all writes are slow that nobody waits for.
func (w *world) talkative(names []string) {
	w.store.mu.Lock()
	w.store.answers = 3 * time.Second
	w.store.mu.Unlock()
	for _, name := range names {
		w.says(name, "boot-1")
	}
	time.Sleep(11 * time.Second) // until then it is held back
}

// others makes nodes of no interest, whose instances have no pods.
func (w *world) others(count int, typ string) (names []string) {
	for i := range count {
		name := "other-" + time.Duration(i).String()
		_, err := w.AddInstance(sim.Instance{ID: "i-" + name, Type: typ, Subnet: "a"})
		w.must(err)
		w.store.changeNode(name, func(n *operator.Node) {
			*n = operator.Node{Name: name, Instance: "i-" + name, Type: typ, Zone: w.zone()}
		})
		w.putNode(name)
		names = append(names, name)
	}
	return names
}

// Until the operator has told of its instance a new node can't say what its pods need: that is not behind what nobody waits for.
func TestTheFirstStatusOfANodeWaitsForNoOthers(t *testing.T) {
	play(t, setup{nodes: 1, perScan: 2000}, func(ctx context.Context, w *world) {
		others := w.others(500, "small")
		w.leadWith(ctx, nil)
		time.Sleep(20 * time.Minute)
		w.talkative(others)
		name := w.agents[0].name
		w.putNode(name)
		if took := w.until(5*time.Minute, func() bool { return w.store.node(name).Status.DescribedAt != nil }); took > 5*time.Second {
			t.Errorf("its agent has waited %s", took)
		}
	})
}

// What a node gives for pods of another one that wait is not behind that either.
func TestWhatANodeGivesForOthersWaitsForNoOthers(t *testing.T) {
	s := setup{nodes: 2, perScan: 2000, lieIn: []string{"b", "b"}, typ: sim.Type{Name: "small", ENIs: 1, V4: 16},
		subnets: []sim.Subnet{{ID: "a", V4: mustPrefix("10.0.0.0/16")}, {ID: "b", V4: mustPrefix("10.1.1.0/28")}}}
	play(t, s, func(ctx context.Context, w *world) {
		others := w.others(500, "small")
		has, lacks := w.agents[0], w.agents[1]
		has.spare, lacks.spare = 6, 0
		w.leadWith(ctx, nil)
		w.begin(ctx)
		w.until(5*time.Minute, w.isQuiet)
		time.Sleep(20 * time.Minute)
		w.must(w.LeaveFree("b", 0))
		w.talkative(others)
		lacks.set(2)
		if took := w.until(5*time.Minute, func() bool { return len(lacks.used()) == 2 }); took > 20*time.Second {
			t.Errorf("its pods have waited %s", took)
		} else {
			t.Log(took)
		}
	})
}
