package operator_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/operator"
)

// histories is what happens by chance in a world.
type histories struct {
	*rand.Rand
	w     *world
	c     *claimStore
	old   []*leader
	names []string
}

func (h *histories) node() string { return h.w.agents[h.IntN(len(h.w.agents))].name }

func (h *histories) pod() string { return h.names[h.IntN(len(h.names))] }

// of returns the topology of a pod.
func of(name string) string {
	return map[byte]string{'d': "fixed", 'w': "sticky", 'x': "elastic", 'y': "warm"}[name[0]]
}

// event lets something happen.
func (h *histories) event(ctx context.Context) {
	switch a := h.w.agents[h.IntN(len(h.w.agents))]; h.IntN(17) {
	case 0, 1, 2, 3, 4, 5:
		name := h.pod()
		h.c.run(name, h.node(), of(name))
	case 6, 7:
		h.c.stop(h.pod())
	case 8:
		a.mu.Lock()
		a.silent = true
		a.mu.Unlock()
	case 9, 10:
		h.calm()
	case 11:
		h.w.store.changeNode(h.node(), func(n *operator.Node) { n.Cut = true })
	case 12:
		if is := h.c.claim(h.pod()); is != nil {
			h.c.endClaim(is.Name)
		}
	case 13:
		a.set(h.IntN(5))
	case 14: // one that does not know that it leads no more
		old := h.w.leading()
		old.pause()
		h.old = append(h.old, old)
		h.c.wait(lease.Duration)
		h.w.leadWith(ctx, nil)
	case 16: // the kubelet says late which address a pod has
		if name := h.pod(); of(name) == "warm" {
			h.c.show(name)
		}
	case 15:
		h.w.leading().kill()
		h.c.wait(lease.Duration)
		h.w.leadWith(ctx, nil)
	}
	h.c.wait(time.Duration(h.IntN(20_000)) * time.Millisecond)
}

// calm has all nodes and agents work.
func (h *histories) calm() {
	for _, a := range h.w.agents {
		a.mu.Lock()
		a.silent = false
		a.mu.Unlock()
		h.w.store.changeNode(a.name, func(n *operator.Node) { n.Cut = false })
	}
}

// newHistories returns what happens by chance in a world, where what is told comes late and some requests fail.
func newHistories(w *world, c *claimStore, seed uint64) *histories {
	h := &histories{Rand: rand.New(rand.NewPCG(seed, 3)), w: w, c: c, names: []string{"db-0", "db-1", "db-2", "web-0", "web-1", "x-0"}}
	c.mu.Lock()
	c.lag = time.Duration(h.IntN(2000)) * time.Millisecond
	c.mu.Unlock()
	w.store.mu.Lock()
	w.store.lag, w.store.percent = time.Duration(h.IntN(1000))*time.Millisecond, h.IntN(10)
	w.store.mu.Unlock()
	return h
}

// happen lets it happen. Then each pod has to get its address, and when there are none any more nothing of the range is to be left.
func (h *histories) happen(ctx context.Context, lies netip.Prefix) {
	w, c := h.w, h.c
	for range 60 {
		h.event(ctx)
	}
	h.calm()
	for _, l := range h.old {
		l.cancel()
	}
	for _, name := range h.names {
		if h.IntN(2) == 0 {
			c.run(name, h.node(), of(name))
		}
	}
	w.until(15*time.Minute, func() bool {
		c.checkBoxes()
		for _, a := range w.agents {
			for _, p := range c.onNode(a.name) {
				if !c.runs(p.Name.Name, a.name) {
					return false
				}
			}
		}
		return true
	})
	for _, name := range h.names {
		c.stop(name)
	}
	c.setSets()
	w.until(2*time.Hour, func() bool {
		left := 0
		for at := range w.places() {
			if lies.Contains(at) {
				left++
			}
		}
		for _, a := range w.agents {
			left += len(w.store.node(a.name).Status.Reserved)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		return left+len(c.claims) == 0
	})
}

// Whatever pods, nodes, agents, people and leaders do: no pod has what is elsewhere, no address has two, each pod gets its address in the end, and
// without pods nothing is left.
func TestNoHistoryBreaksTheAddressesOfTopologies(t *testing.T) {
	count := 12
	if testing.Short() {
		count = sampled(4, 1)
	}
	for seed := range count {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			playClaims(t, setup{nodes: 3, seed: uint64(seed)}, func(ctx context.Context, w *world, c *claimStore) {
				c.setTopology(warmTopology(2))
				h := newHistories(w, c, uint64(seed))
				h.names = append(h.names, "y-0", "y-1")
				h.happen(ctx, mustPrefix("10.0.200.0/22"))
			})
		})
	}
}
