package fleet

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator"
)

// watch is one of all objects, or of one of them. What it tells comes late, in order, and sometimes twice, until it breaks off.
type watch struct {
	only  string // the key, "" for all
	tell  func(change)
	ended chan struct{}
	cut   bool
	heard []told        // that it has yet to tell
	more  chan struct{} // gets something when there is more
}

// told is a change that a watch tells of from some time on.
type told struct {
	change
	at time.Time
}

// begin begins a watch of what changes from the change of that number on. It is nil where the store has forgotten those. The caller
// holds the lock.
func (s *store) begin(from int, only string, tell func(change)) *watch {
	w := &watch{only: only, tell: tell, ended: make(chan struct{}), more: make(chan struct{}, 1)}
	if from < s.dropped || s.away {
		return nil
	}
	s.watches[w] = true
	for _, c := range s.log[from-s.dropped:] {
		s.tell(w, c)
	}
	go s.run(w)
	return w
}

// changes is the number of the next change. The caller holds the lock.
func (s *store) changes() int { return s.dropped + len(s.log) }

// tell has a watch tell of a change, later. The caller holds the lock.
func (s *store) tell(w *watch, c change) {
	if w.cut || w.only != "" && w.only != c.key {
		return
	}
	late := time.Microsecond + time.Duration(s.rng.Int64N(int64(s.lag)+int64(5*time.Millisecond)))
	w.heard = append(w.heard, told{c, time.Now().Add(late)})
	if s.chance(10) {
		w.heard = append(w.heard, w.heard[len(w.heard)-1])
	}
	select {
	case w.more <- struct{}{}:
	default:
	}
}

// run tells of changes, one after the other, until the watch breaks off.
func (s *store) run(w *watch) {
	for {
		s.mu.Lock()
		var next []told
		if next, w.heard = w.heard, nil; w.cut {
			next = nil
		}
		s.mu.Unlock()
		for _, c := range next {
			if time.Sleep(time.Until(c.at)); s.isCut(w) {
				return
			}
			w.tell(c.change)
		}
		select {
		case <-w.ended:
			return
		case <-w.more:
		}
	}
}

// isCut tells whether a watch has broken off, or does now.
func (s *store) isCut(w *watch) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !w.cut && s.chance(s.cuts) {
		s.cut(w)
	}
	return w.cut
}

// cut breaks a watch off. The caller holds the lock.
func (s *store) cut(w *watch) {
	if !w.cut {
		w.cut = true
		close(w.ended)
	}
	delete(s.watches, w)
}

func (s *store) end(w *watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut(w)
}

// cutAll breaks off all watches.
func (s *store) cutAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.watches {
		s.cut(w)
	}
}

// list returns all objects as they were a number of changes ago, and the number of the next change then. The caller holds the lock.
func (s *store) list(ago int) (all map[string]any, from int) {
	all = map[string]any{}
	for key, o := range s.objects {
		all[key] = o
	}
	ago = min(ago, len(s.log))
	for i := range ago {
		c := s.log[len(s.log)-1-i]
		if all[c.key] = c.before; c.before == nil {
			delete(all, c.key)
		}
	}
	return all, s.changes() - ago
}

// inform tells of all objects as an informer does: it lists, perhaps what a replica that lags still has, watches, and begins again when
// the watch has broken off.
func (s *store) inform(ctx context.Context, pass func() error, tell func(operator.Event)) {
	known := map[string]any{}
	for ctx.Err() == nil && pass() == nil {
		var w *watch
		s.mu.Lock()
		if !s.away {
			ago := 0
			if s.chance(s.past) {
				ago = s.rng.IntN(60)
			}
			all, from := s.list(ago)
			for _, key := range slices.Sorted(maps.Keys(known)) {
				if all[key] == nil {
					tell(eventOf(change{key: key, before: known[key]}))
				}
			}
			for _, key := range slices.Sorted(maps.Keys(all)) {
				tell(eventOf(change{key: key, before: known[key], after: all[key]}))
			}
			known = all
			w = s.begin(from, "", func(c change) {
				if pass() == nil {
					tell(eventOf(c))
					s.mu.Lock()
					defer s.mu.Unlock()
					if known[c.key] = c.after; c.after == nil {
						delete(known, c.key)
					}
				}
			})
		}
		s.mu.Unlock()
		if w != nil {
			select {
			case <-ctx.Done():
				s.end(w)
			case <-w.ended:
			}
		}
		sleep(ctx, time.Second+s.latency())
	}
}

// eventOf returns what the operator is told of a change.
func eventOf(c change) (e operator.Event) {
	o := c.after
	if e.Deleted = o == nil; e.Deleted {
		o = c.before
	}
	switch o := o.(type) {
	case *crd.NodeNetwork:
		e.Network = o
	case *crd.Subnet:
		e.Subnet = o
	case *operator.Node:
		e.Node = o
	}
	return e
}

func sleep(ctx context.Context, d time.Duration) { operator.Wall{}.Sleep(ctx, nil, d) }
