package pool

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/scale"
	"pgregory.net/rapid"
)

// life is a node over time: pods come and go, plans are carried out, at times only
// in part, and the mode may change.
type life struct {
	c Config
	s Snapshot
	n int // pods so far
}

// pods returns who uses what: two addresses of a pod, where pods get both families.
func (l *life) pods() map[string][]string {
	list := map[string][]string{}
	for _, e := range l.s.ENIs {
		for _, a := range e.Addresses {
			if a.State == eni.Used {
				list[a.Owner.Container] = append(list[a.Owner.Container], e.ID+" "+a.Addr.String())
			}
		}
	}
	return list
}

// start lets a pod have the first slot that is free, as an ADD does.
func (l *life) start() {
	for i := range l.s.ENIs {
		e := &l.s.ENIs[i]
		at := make([]int, len(l.s.Families))
		for k, f := range l.s.Families {
			at[k] = slices.IndexFunc(e.Addresses, func(a Address) bool { return a.Family() == f && a.State == eni.Free })
		}
		if e.Leaving || slices.Contains(at, -1) {
			continue
		}
		l.n++
		for _, k := range at {
			e.Addresses[k].State = eni.Used
			e.Addresses[k].Owner = &eni.Owner{Key: eni.Key{Container: fmt.Sprint("pod-", l.n)}}
		}
		return
	}
}

// stop ends a pod; its addresses rest.
func (l *life) stop(name string) {
	l.each(func(a *Address) {
		if a.State == eni.Used && a.Owner.Container == name {
			a.State, a.Owner = eni.Cooling, nil
		}
	})
}

func (l *life) each(do func(*Address)) {
	for i := range l.s.ENIs {
		for k := range l.s.ENIs[i].Addresses {
			do(&l.s.ENIs[i].Addresses[k])
		}
	}
}

func (l *life) demand() int {
	most := 0
	for _, f := range l.s.Families {
		n := 0
		l.each(func(a *Address) {
			if a.Family() == f && (a.State == eni.Used || a.State == eni.Cooling) {
				n++
			}
		})
		most = max(most, n)
	}
	return most
}

func (l *life) target() int {
	most := l.c.Most(l.s.Limits, l.s.Families, l.s.forPods())
	return l.c.Sizing(l.s.Limits, l.s.Families).Need(l.demand(), 0, most)
}

// partly carries out a random part of the plan, as a cloud that fails does. What
// came in part is there for good.
func (l *life) partly(t *rapid.T) {
	steps := Plan(l.c, l.s, l.target())
	steps = steps[:rapid.IntRange(0, len(steps)).Draw(t, "steps")]
	for i := range steps {
		if s := &steps[i]; s.Do == Assign || s.Do == Create {
			s.Count = rapid.IntRange(min(1, s.Count), s.Count).Draw(t, "part")
			s.V4, s.V6 = min(s.V4, s.Count), min(s.V6, s.Count)
		}
	}
	l.s = applied(l.s, steps)
}

// mark begins what a plan gives back, without ending it.
func (l *life) mark(t *rapid.T) {
	for _, step := range Plan(l.c, l.s, l.target()) {
		if step.Do != Release && step.Do != Delete {
			continue
		}
		committed := rapid.Bool().Draw(t, "committed")
		l.each(func(a *Address) {
			if slices.Contains(step.Addrs, a.Addr) {
				a.State, a.Committed = eni.Releasing, committed
			}
		})
	}
}

// rest ends what is under way, and cooling.
func (l *life) rest() {
	l.each(func(a *Address) {
		if a.State == eni.Cooling {
			a.State = eni.Free
		}
	})
	l.s = settle(l.s)
}

func (l *life) step(t *rapid.T) {
	switch rapid.IntRange(0, 6).Draw(t, "what") {
	case 0, 1:
		for range rapid.IntRange(1, 12).Draw(t, "pods") {
			l.start()
		}
	case 2:
		if names := slices.Sorted(maps.Keys(l.pods())); len(names) > 0 {
			l.stop(rapid.SampledFrom(names).Draw(t, "pod"))
		}
	case 3:
		l.rest()
	case 4:
		l.mark(t)
	default:
		l.partly(t)
	}
}

// converge carries plans out until there is nothing left to do.
func (l *life) converge(t *rapid.T) {
	for range 8 {
		l.rest()
		steps := Plan(l.c, l.s, l.target())
		if len(steps) == 0 {
			return
		}
		l.s = applied(l.s, steps)
	}
	t.Fatalf("still not at rest: %+v", Plan(l.c, l.s, l.target()))
}

func anyLife(t *rapid.T) *life {
	c := anyConfig(t)
	c.Scale = scale.Default()
	c.Scale.Batch = rapid.SampledFrom([]int{1, 4, 16}).Draw(t, "batch")
	s := Snapshot{Families: anyFamilies(t), Limits: anyBlocks(t, eni.Limits{ENIs: rapid.IntRange(1, 6).Draw(t, "enis"),
		V4: rapid.IntRange(2, 9).Draw(t, "v4"), V6: rapid.IntRange(2, 9).Draw(t, "v6"), NoPrimary: seldom(t, "no primary")})}
	s.Limits = c.Within(s.Limits)
	s.ENIs = []ENI{card(0, nil, 0, 0)}
	for _, id := range []string{"subnet-a", "subnet-b"} {
		s.Subnets = append(s.Subnets, Subnet{ID: id, Free: rapid.SampledFrom([]int{5, 12, 200}).Draw(t, "free"), New: true})
	}
	return &life{c: c, s: s}
}

// slack is how many slots there may be beyond the limits: the rest of a block that is
// there for the last slot within them, and, where ENIs of another mode were there
// before, of one each that can't be parted with.
func (l *life) slack() int {
	n := 0
	for _, f := range l.s.Families {
		n = max(n, unitSize(l.s.Limits, f)-1)
	}
	return n
}

// settled demands what a node at rest must be like.
func (l *life) settled(t *rapid.T) {
	target := l.target()
	there, owned := sum(l.c, l.s)
	causes := TargetCauses(l.c, l.s, target)
	if there != owned || there < target && len(causes) == 0 {
		t.Fatalf("%d slots there, %d owned, target %d, and nothing in the way", there, owned, target)
	}
	most, per := l.c.Most(l.s.Limits, l.s.Families, 0), perENI(l.s.Limits, l.s.Families)
	free := owned - l.demand()
	if l.c.Mode == Burstable && free < l.c.Multiple*per && owned < most && len(causes) == 0 {
		t.Fatalf("%d free slots where %d ENIs of %d are to be idle", free, l.c.Multiple, per)
	}
	if owned > most+l.slack() {
		t.Fatalf("%d slots, at most %d", owned, most)
	}
	k := trial{c: l.c, s: l.s, target: target}
	for _, e := range l.s.ENIs {
		for _, f := range l.s.Families {
			n, slots := number(e, f, anyway), slotsOn(l.s, e)
			// A half slot is left only where no call can make it whole, or where all that may be kept are there and the rest of
			// it can't go, because pods use some of its block. The rest of a block is none.
			if n-slots >= unitSize(l.s.Limits, f) && carries(l.c, l.s.Limits, e) && more(l.s, e) && l.c.Mode != Burstable && (there < k.ceiling() || k.canGo(e, f)) {
				t.Fatalf("%s has %d %s addresses for %d slots", e.ID, n, f, slots)
			}
		}
	}
}

// canGo tells whether the ENI has addresses of the family that it needs for no slot and could give back.
func (k trial) canGo(e ENI, f eni.Family) bool {
	for _, block := range blocksOf(k.s.Limits, e, f) {
		idle := !slices.ContainsFunc(block, func(a Address) bool { return a.State != eni.Free })
		if idle && len(block) <= number(e, f, anyway)-slotsOn(k.s, e) {
			return true
		}
	}
	return false
}

// TestANodeComesToRestWhereItShould: whatever happened before, a few perfect rounds
// lead to a pool that is large enough, or to a reason why not.
func TestANodeComesToRestWhereItShould(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := anyLife(t)
		for range rapid.IntRange(0, 12).Draw(t, "steps") {
			l.step(t)
		}
		l.converge(t)
		l.settled(t)
	})
}

// TestAnyModeTakesOverFromAnyOther: ENIs that one mode left are brought to what
// another wants, without touching a pod's address, for all pairs of modes.
func TestAnyModeTakesOverFromAnyOther(t *testing.T) {
	for from := Batch; from <= BestEffort; from++ {
		for to := Batch; to <= BestEffort; to++ {
			t.Run(from.String()+" to "+to.String(), func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) {
					l := anyLife(t)
					l.c = inMode(t, l.c, from)
					for range rapid.IntRange(1, 12).Draw(t, "steps") {
						l.step(t)
					}
					l.c = inMode(t, l.c, to)
					before := l.pods()
					l.converge(t)
					l.settled(t)
					for name, have := range before {
						if !slices.Equal(have, l.pods()[name]) {
							t.Fatalf("%s had %v and has %v", name, have, l.pods()[name])
						}
					}
				})
			})
		}
	}
}
