package operator_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator"
)

// saved is a backup of the store.
type saved struct {
	version  int
	networks map[string]*crd.NodeNetwork
	subnets  map[string]*crd.Subnet
}

func (s *store) save() saved {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := saved{version: s.version, networks: map[string]*crd.NodeNetwork{}, subnets: map[string]*crd.Subnet{}}
	for name, n := range s.networks {
		b.networks[name] = n.DeepCopy()
	}
	for name, n := range s.subnets {
		b.subnets[name] = n.DeepCopy()
	}
	return b
}

// restore puts a backup back. Versions go on from there, as they do by default, or from above all that there were. Watches begin again, and
// tell what there is.
func (s *store) restore(b saved, above bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !above {
		s.version = b.version
	}
	for name, n := range b.networks {
		n = n.DeepCopy()
		if above {
			n.ResourceVersion = s.next()
		}
		s.networks[name] = n
		s.tell(name, operator.Event{Network: n.DeepCopy()})
	}
	for name, n := range b.subnets {
		n = n.DeepCopy()
		if above {
			n.ResourceVersion = s.next()
		}
		s.subnets[name] = n
		s.tell("", operator.Event{Subnet: n.DeepCopy()})
	}
}

// The store is put back from a backup of ten minutes ago while a leader and agents run. Addresses have gone from node to node since: no pod has
// one that is not on its node, none loses its own, and in the end everything is as it should be, with nobody's help.
func TestABackupIsPutBackUnderARunningLeader(t *testing.T) {
	for seed := range uint64(sampled(3, 1)) {
		for _, above := range []bool{false, true} {
			t.Run(fmt.Sprint(seed, above), func(t *testing.T) {
				account := sim.Options{Reuse: sim.ReuseLatest, Lag: 5 * time.Second, CreateTime: time.Second, AttachTime: time.Second, DetachTime: time.Second}
				play(t, setup{nodes: 3, seed: seed, account: account, conf: batchOf(4)}, func(ctx context.Context, w *world) {
					rng := rand.New(rand.NewPCG(seed, 11))
					w.leadWith(ctx, nil)
					w.begin(ctx)
					work := func(long time.Duration) {
						for end := w.since() + long; w.since() < end; {
							w.agents[rng.IntN(len(w.agents))].set(rng.IntN(14))
							time.Sleep(time.Duration(1+rng.IntN(40)) * time.Second)
						}
					}
					work(3 * time.Minute)
					b := w.store.save()
					work(10 * time.Minute)
					w.store.restore(b, above)
					for _, a := range w.agents {
						late := time.Duration(rng.IntN(3000)) * time.Millisecond
						go func() {
							time.Sleep(late)
							a.reads(ctx)
						}()
					}
					work(5 * time.Minute)
					w.until(10*time.Minute, w.isQuiet)
					select {
					case <-w.lead.ended:
						t.Errorf("the leader has ended: %v", w.lead.err)
					default:
					}
					w.check()
				})
			})
		}
	}
}

// Nothing but the spec has changed since the backup: what the agent has withdrawn since then serves pods, and is not accepted. A leader that has
// never seen what was there before waits until the agent has had the time to write.
func TestWhatWasWithdrawnSinceABackupIsNotAccepted(t *testing.T) {
	for name, another := range map[string]bool{"the same leader": false, "the next leader": true} {
		t.Run(name, func(t *testing.T) {
			play(t, setup{nodes: 1}, func(ctx context.Context, w *world) {
				a := w.agents[0]
				w.leadWith(ctx, nil)
				w.begin(ctx)
				a.set(20)
				w.until(3*time.Minute, w.isQuiet)
				accepts := func(is bool) {
					w.store.mu.Lock()
					defer w.store.mu.Unlock()
					if w.store.deny = nil; !is {
						w.store.deny = func(string) error { return errServer }
					}
				}
				accepts(false)
				a.set(4)
				w.until(time.Minute, func() bool { return len(w.store.node(a.name).Spec.Release) > 0 })
				b := w.store.save()
				a.set(24)
				w.until(time.Minute, func() bool { return len(w.store.node(a.name).Spec.Release) == 0 && len(a.used()) >= 20 })
				pods := len(a.used())
				if another {
					w.lead.kill()
				}
				accepts(true)
				w.store.restore(b, true)
				if another {
					w.leadWith(ctx, nil)
				}
				time.Sleep(2 * time.Second)
				a.reads(ctx)
				w.until(15*time.Minute, w.isQuiet)
				if n := len(a.used()); n < pods {
					t.Errorf("%d pods have addresses, %d had", n, pods)
				}
				if n := w.Calls()[sim.ActUnassign]; n != 0 {
					t.Errorf("%d calls took what pods use", n)
				}
				w.check()
			})
		})
	}
}

// A node got an ENI since the backup, and another node has addresses that it had then: the ENI, which a describe shows at once, makes nothing else
// of the backup true.
func TestAnENIThatWasMadeSinceABackup(t *testing.T) {
	play(t, setup{nodes: 2, account: sim.Options{Reuse: sim.ReuseLatest}, conf: batchOf(4)}, func(ctx context.Context, w *world) {
		a, other := w.agents[0], w.agents[1]
		w.leadWith(ctx, nil)
		w.begin(ctx)
		a.set(7)
		w.until(3*time.Minute, w.isQuiet)
		b := w.store.save()
		a.set(0)
		w.until(3*time.Minute, w.isQuiet)
		other.set(9)
		w.until(3*time.Minute, w.isQuiet)
		a.set(20)
		w.until(3*time.Minute, w.isQuiet)
		w.lead.kill()
		w.store.restore(b, true)
		for _, a := range w.agents {
			a.reads(ctx)
		}
		w.leadWith(ctx, nil)
		time.Sleep(time.Minute)
		w.until(20*time.Minute, w.isQuiet)
		w.check()
	})
}
