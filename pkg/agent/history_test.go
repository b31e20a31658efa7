package agent

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/nodecache"
	"pgregory.net/rapid"
)

// happening is one thing that happens to a node of a cluster: to a pod of a name, to a
// sandbox, to the watch, or to the clock.
type happening struct {
	What string
	Name int
	N    int
}

// happenings are drawn by how often they come up here.
var happenings = []string{
	"bind", "bind", "bind", "bind", "again", "again", "delete", "sandbox", "sandbox", "sandbox", "sandbox", "late", "late", "del", "del", "vanish",
	"deliver", "deliver", "deliver", "lose", "twice", "backwards", "stale", "list", "list", "restart", "restart cold", "clock", "wait", "wait", "wait",
}

func drawHistory(t *rapid.T) []happening {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) happening {
		return happening{rapid.SampledFrom(happenings).Draw(t, "what"), rapid.IntRange(0, 7).Draw(t, "name"), rapid.IntRange(0, 40).Draw(t, "n")}
	}), 50, 150).Draw(t, "history")
}

// told is an event of the API server: a pod came or went.
type told struct {
	pod  eni.Pod
	gone bool
}

// stage is a node of a cluster with all that its API server ever told.
type stage struct {
	*testNode
	history []told
	at      int       // events before it were delivered, or lost
	gone    []eni.Pod // pods that are no more: their sandboxes may come yet
}

// tell writes an event down. Whether the watch hears of it is another matter.
func (s *stage) tell(p eni.Pod, gone bool) {
	s.history = append(s.history, told{p, gone})
	s.api.pods = truth(s.history)
	if gone {
		s.gone = append(s.gone, p)
	}
}

// truth returns the pods after a history.
func truth(history []told) []eni.Pod {
	var list []eni.Pod
	for _, e := range history {
		list = apply(list, e)
	}
	return list
}

// apply is what a cache makes of an event: it knows an object by its name.
func apply(list []eni.Pod, e told) []eni.Pod {
	list = slices.DeleteFunc(slices.Clone(list), func(p eni.Pod) bool { return p.Name == e.pod.Name })
	if !e.gone {
		list = append(list, e.pod)
	}
	return list
}

// hear lets the watch take events in.
func (s *stage) hear(events ...told) {
	s.mu.Lock()
	for _, e := range events {
		s.api.seen = apply(s.api.seen, e)
	}
	s.mu.Unlock()
	s.wake()
}

// next returns up to n events that were not delivered yet.
func (s *stage) next(n int) []told {
	from := s.at
	s.at = min(len(s.history), s.at+n)
	return s.history[from:s.at]
}

// list lets the watch begin anew with the state after the first n events.
func (s *stage) list(n int) {
	s.mu.Lock()
	s.api.seen, s.api.synced, s.at = truth(s.history[:n]), true, n
	s.mu.Unlock()
	s.wake()
}

func (s *stage) find(name int) (eni.Pod, bool) {
	i := slices.IndexFunc(s.api.pods, func(p eni.Pod) bool { return p.Name == fmt.Sprint("web-", name) })
	if i < 0 {
		return eni.Pod{}, false
	}
	return s.api.pods[i], true
}

func (s *stage) bindAs(name int) {
	s.serial++
	s.tell(eni.Pod{UID: fmt.Sprintf("uid-%d", s.serial), Namespace: "default", Name: fmt.Sprint("web-", name)}, false)
}

// happen lets it happen.
func (s *stage) happen(h happening) {
	p, there := s.find(h.Name)
	switch h.What {
	case "bind":
		if !there {
			s.bindAs(h.Name)
		}
	case "again", "delete":
		if there {
			s.tell(p, true)
		}
		if h.What == "again" {
			s.bindAs(h.Name)
		}
	default:
		if !s.onNode(h, p, there) {
			s.onWatch(h)
		}
	}
}

// onNode is what runtime and plugin do, who hear nothing of the watch.
func (s *stage) onNode(h happening, p eni.Pod, there bool) bool {
	keys := s.keys()
	switch h.What {
	case "sandbox": // the first of its pod, or one more
		if there {
			_ = s.sandbox(p)
		}
	case "late": // of a pod that the API server has forgotten
		if len(s.gone) > 0 {
			_ = s.sandbox(s.gone[h.N%len(s.gone)])
		}
	case "del":
		if len(keys) > 0 {
			s.del(keys[h.N%len(keys)])
		}
	case "vanish": // without a DEL
		if len(keys) > 0 {
			s.mu.Lock()
			s.pods[keys[h.N%len(keys)]].dead = true
			s.mu.Unlock()
		}
	case "clock": // somebody sets it
		s.mu.Lock()
		s.api.jump += time.Duration(h.N-20) * time.Hour
		s.mu.Unlock()
	case "wait":
		time.Sleep(time.Duration(h.N) * time.Second)
		s.retry()
	default:
		return false
	}
	return true
}

// onWatch is what becomes of the events on their way.
func (s *stage) onWatch(h happening) {
	switch h.What {
	case "deliver":
		s.hear(s.next(1 + h.N)...)
	case "lose":
		s.next(1 + h.N%5)
	case "twice": // from a while ago on
		from := max(0, s.at-h.N%7)
		s.hear(s.history[from:s.at]...)
	case "backwards":
		events := slices.Clone(s.next(1 + h.N%7))
		slices.Reverse(events)
		s.hear(events...)
	case "stale":
		s.list(len(s.history) * h.N / 41)
	case "list":
		s.list(len(s.history))
	case "restart", "restart cold":
		s.kill()
		if s.mu.Lock(); h.What == "restart cold" { // and the API server does not answer
			s.api.seen, s.api.synced = nil, false
		}
		s.mu.Unlock()
		s.serial++
		s.start(-1, false)
	}
}

// holds returns an error unless every sandbox that lives has the address that it was
// given, and nobody else has it.
func (s *stage) holds() error {
	if err := s.w.check(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cacheErr != nil {
		return fmt.Errorf("no cache: %w", s.cacheErr)
	}
	for key, p := range s.pods {
		if p.dead {
			continue // the agent may take its address back
		}
		for _, a := range p.addrs {
			i := slices.IndexFunc(s.cached.Addresses, func(l eni.Address) bool { return l.Addr == a })
			if i < 0 || s.cached.Addresses[i].State != eni.Used || s.cached.Addresses[i].Owner.Key != key {
				return fmt.Errorf("%s of %s was released while it is used", a, p.owner.Container)
			}
		}
	}
	return nil
}

// play lets a history happen, and looks after each part of it.
func play(t *testing.T, history []happening) error {
	_, n := one(t, eni.Limits{ENIs: 3, V4: 8}, func(n *testNode) {
		n.conf.Pool.Scale.Batch, n.conf.Pool.Scale.Delay = 4, 20*time.Second
		n.api = &testAPI{away: true}
	})
	s := &stage{testNode: n}
	defer func() { s.stop() }()
	for i, h := range history {
		s.happen(h)
		synctest.Wait()
		if err := s.holds(); err != nil {
			return fmt.Errorf("after %d %+v: %w", i, h, err)
		}
	}
	s.list(len(s.history))
	for range 30 { // the watch is right again; the clock stays where it was set
		s.retry()
		sleep(20 * time.Second)
		if err := s.holds(); err != nil {
			return fmt.Errorf("in the end: %w", err)
		}
	}
	return s.demands()
}

// demands returns an error unless the demand is what its plain definition says.
func (s *stage) demands() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting := lacking(s.cached, slices.Collect(maps.Values(s.waiting)))
	want := countDemand(s.cached, s.w.now(), 0).assigned + len(waiting)
	for _, p := range s.api.pods {
		has := func(line eni.Address) bool { return is(*line.Owner, p) }
		waits := func(w nodecache.PendingADD) bool { return is(w.Owner, p) }
		if !slices.ContainsFunc(s.cached.Used(), has) && !slices.ContainsFunc(waiting, waits) {
			want++
		}
	}
	if s.told.Demand != want || !s.told.Synced {
		return fmt.Errorf("demand %d in the end, want %d: %+v", s.told.Demand, want, s.told)
	}
	return nil
}

// Whatever the API server tells, forgets or tells too late, and whatever the time is:
// an address is handed out by the cache alone, and released by its sandbox's end alone.
func TestNoHistoryOfPodsHandsAnAddressOutTwiceOrReleasesOneInUse(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		history := drawHistory(r)
		var wrong error
		synctest.Test(t, func(t *testing.T) { wrong = play(t, history) })
		if wrong != nil {
			r.Fatal(wrong)
		}
	})
}
