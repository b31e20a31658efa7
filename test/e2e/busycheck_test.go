package e2e

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// busyPods are pods that come and go, with sandboxes of their own, until stop is called.
type busyPods struct {
	s       *site
	mu      sync.Mutex // of the site
	stopped atomic.Bool
	slow    atomic.Int64 // calls that took longer than a plugin should be between two changes
	rounds  atomic.Int64
	all     sync.WaitGroup
	errs    chan error
}

// keepBusy lets pods of the names come and go side by side. They ask for what the site
// has for their names. Each has a sandbox ID of its own, as a runtime's pods have: a link's
// name comes from that, and an agent that has just read of a pod must not find its link
// again as another pod's.
func (s *site) keepBusy(ids ...string) *busyPods {
	b := &busyPods{s: s, errs: make(chan error, len(ids))}
	for _, id := range ids {
		b.mu.Lock()
		asks := s.asks[id]
		b.mu.Unlock()
		b.all.Go(func() {
			for n := 0; !b.stopped.Load(); n++ {
				if err := b.round(fmt.Sprintf("%s-%d", id, n), asks); err != nil {
					b.errs <- err
					return
				}
				b.rounds.Add(1)
			}
		})
	}
	return b
}

// round is the life of a pod: the runtime removes the sandbox after its DEL.
func (b *busyPods) round(id, asks string) error {
	for _, command := range []string{"ADD", "DEL"} {
		b.mu.Lock()
		b.s.asks[id] = asks
		cmd := b.s.call(command, id, 10*time.Second)
		b.mu.Unlock()
		var said bytes.Buffer
		cmd.Stdout = &said
		began := time.Now()
		if err := b.s.node.Do(cmd.Run); err != nil {
			return fmt.Errorf("%s %s: %w: %s", command, id, err, &said)
		}
		if time.Since(began) >= halfDone {
			b.slow.Add(1)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	err := b.s.pods[id].Remove()
	delete(b.s.pods, id)
	delete(b.s.asks, id)
	return err
}

func (b *busyPods) stop() error {
	b.stopped.Store(true)
	b.all.Wait()
	close(b.errs)
	return <-b.errs
}

// What a plugin or an agent is in the middle of is no difference between cache, kernel
// and namespaces.
func TestPoolCheckBesideABusyNodeTellsNothingThatIsUnderWay(t *testing.T) {
	t.Parallel()
	for name, conf := range map[string][]string{
		"map":      {"snat: true"},
		"iptables": {"routing: rule", "firewall: iptables", "snat: true"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, plan{name: "busy-" + name, limits: tiny})
			s.configure(append(conf, "pool.batch: 2")...)
			s.asks = map[string]string{"busy0": limited, "busy1": strings.Replace(limited, "8080", "8081", 1)}
			agent := s.start()
			s.poolOf(2)
			for _, with := range []string{"with an agent", "without an agent"} {
				if with == "without an agent" {
					agent.terminate() // which ends what it is about to do
				}
				b := s.keepBusy(names("busy", 3)...)
				var wrong []string
				for range 13 {
					said, err := s.ctl("pool", "check")
					if err != nil {
						wrong = append(wrong, fmt.Sprintf("%v: %s", err, said))
					}
				}
				s.must(b.stop())
				if n := int(b.slow.Load()); len(wrong) > n {
					t.Errorf("%s, beside %d pods that came and went (%d calls took long), %d checks tell:\n%s", with, b.rounds.Load(), n, len(wrong), strings.Join(wrong, ""))
				}
				t.Logf("%s: %d pods came and went", with, b.rounds.Load())
			}
		})
	}
}
