package explore

import (
	"fmt"
	"reflect"
	"strings"
	"time"
)

// bound is how far a search goes: how many faults and kills, and how many pods that come
// or go, a run may have.
type bound struct{ faults, steps int }

// search is a walk over all runs within a bound, those with the fewest faults first. A
// state that was met with as much left to spend is not gone on from.
type search struct {
	scenario
	bound
	queue  [][]path // by what the path costs
	met    map[uint64][]left
	runs   int
	points int // choices that were gone on from
	deep   int // most choices of a run
}

// left is what a run has to spend.
type left struct{ faults, steps int8 }

// violation is what must not be, with the run that leads there.
type violation struct {
	error
	path
}

// patience is how long after its last deviation a run must have settled.
const patience = 40 * time.Minute

// run searches until all is searched or something is violated.
func (s *search) run() *violation {
	s.met, s.fields = map[uint64][]left{}, map[reflect.Type][]field{}
	s.queue = make([][]path, (s.bound.faults+1)*(s.bound.steps+1))
	s.push(path{})
	for cost := 0; cost < len(s.queue); cost++ {
		for at := 0; at < len(s.queue[cost]); at++ { // it grows meanwhile
			p := s.queue[cost][at]
			s.queue[cost][at] = path{}
			if err := s.try(p, nil); err != nil {
				return &violation{err, p}
			}
		}
		s.queue[cost] = nil
	}
	return nil
}

func (s *search) push(p path) {
	at := p.faults*(s.bound.steps+1) + p.steps
	s.queue[at] = append(s.queue[at], p)
}

// try makes one run. It returns what must not be.
func (s *search) try(p path, trace *[]string) (err error) {
	mine := map[uint64]time.Duration{} // states of this run, and when
	c := &choices{path: p, trace: trace}
	c.meet = func(w *world, at int, name string, options []option) {
		if trace != nil {
			return
		}
		s.deep = max(s.deep, at)
		state := w.state(name)
		if since, again := mine[state]; again {
			if w.versions[len(w.versions)-1].at < since && w.settled() == nil {
				panic(pruned{})
			}
			return
		}
		mine[state] = w.clock.now
		if !s.isNew(state, left{int8(s.bound.faults - p.faults), int8(s.bound.steps - p.steps)}) {
			panic(pruned{})
		}
		s.points++
		for n, o := range options {
			if o.faults > 0 && s.only != nil && !s.only(name) {
				continue
			}
			if n > 0 && p.faults+o.faults <= s.bound.faults && p.steps+o.steps <= s.bound.steps {
				s.push(p.with(at, n, o))
			}
		}
	}
	s.runs++
	var w *world
	defer func() {
		w.end()
		switch r := recover().(type) {
		case nil, pruned:
		case failure:
			err = r
		default:
			panic(r)
		}
	}()
	w = newWorld(s.scenario, c)
	for !c.over() || w.clock.now-c.since < patience {
		w.goOn()
	}
	return w.settled()
}

// goOn lets the next thing happen. While nothing does for a while pods come and go, and
// the agent may be killed.
func (w *world) goOn() {
	if pause := w.clock.next(); w.life != nil && pause >= 400*time.Millisecond {
		cost := 0
		if len(w.clock.calls) > 0 || pause < 4*time.Second {
			cost = 1 // a pod that comes just now
		}
		how := w.choose("time passes", append([]option{{name: "ok"}, {name: "killed", faults: 1, do: w.kill}}, w.podSteps(cost)...))
		if how.do != nil {
			how.do()
			return
		}
	}
	w.guard(w.clock.step)
	w.remember()
	if w.choices.over() {
		w.check()
	}
}

// isNew tells whether nobody was in the state with as much to spend, and notes it.
func (s *search) isNew(state uint64, l left) bool {
	list := s.met[state]
	for _, before := range list {
		if before.faults >= l.faults && before.steps >= l.steps {
			return false
		}
	}
	s.met[state] = append(list, l)
	return true
}

// story is the run of a violation, for people.
func (s *search) story(v *violation) string {
	var trace []string
	_ = s.try(v.path, &trace)
	return fmt.Sprintf("%v\n%d faults, %d steps of pods:\n%s", v.error, v.faults, v.steps, strings.Join(trace, "\n"))
}

func (s *search) String() string {
	return fmt.Sprintf("%d faults, %d steps of pods: %d states, %d transitions, %d choices deep", s.bound.faults, s.bound.steps, len(s.met), s.runs, s.deep)
}
