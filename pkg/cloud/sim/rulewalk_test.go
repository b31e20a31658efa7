package sim

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// model is the account's rules as plain as can be: what each ENI has by count,
// which addresses it has as learned from the account. Subnet "a" has 59 addresses
// and two blocks without a reserved one.
type model struct {
	now                    time.Time
	enis                   []*modelENI
	create, attach, detach time.Duration
	late                   []modelEvent
}

type modelENI struct {
	id             string
	v4, v6, blocks int
	status         Status
	index          int
	busy           int // counts its attachments, so that an old event finds out
	gone           bool
	has            Interface // as learned
}

type modelEvent struct {
	at time.Time
	do func()
}

func (m *model) later(d time.Duration, do func()) {
	if d <= 0 {
		do()
		return
	}
	m.late = append(m.late, modelEvent{m.now.Add(d), do})
	slices.SortStableFunc(m.late, func(x, y modelEvent) int { return x.at.Compare(y.at) })
}

func (m *model) pass(d time.Duration) {
	until := m.now.Add(d)
	for len(m.late) > 0 && !m.late[0].at.After(until) {
		e := m.late[0]
		m.late, m.now = m.late[1:], e.at
		e.do()
	}
	m.now = until
}

func (m *model) living() []*modelENI {
	return slices.DeleteFunc(slices.Clone(m.enis), func(e *modelENI) bool { return e.gone })
}

func (m *model) free() int {
	n := 59 - 1 // the instance's own ENI
	for _, e := range m.living() {
		n -= 1 + e.v4 + 16*e.blocks
	}
	return n
}

// wholeBlocks counts the blocks in which nobody has an address.
func (m *model) wholeBlocks() int {
	n := 0
	for _, b := range []string{"10.0.0.16/28", "10.0.0.32/28"} {
		block := netip.MustParsePrefix(b)
		if !slices.ContainsFunc(m.living(), func(e *modelENI) bool {
			return slices.ContainsFunc(e.has.Addresses(), block.Contains) || slices.Contains(e.has.Prefixes, block)
		}) {
			n++
		}
	}
	return n
}

func (m *model) taken(index int) bool {
	return slices.ContainsFunc(m.living(), func(e *modelENI) bool { return e.index == index })
}

func (m *model) attached() int {
	n := 1
	for _, e := range m.living() {
		if e.index > 0 {
			n++
		}
	}
	return n
}

// mayGet returns what an ENI's request may end in: whether a block is left after its
// primary address was taken can't be told beforehand.
func (m *model) mayGet(e *modelENI, v4, blocks, v6, primary int) []Reason {
	limit := 50
	if e.index > 0 {
		limit = 6
	}
	whole := m.wholeBlocks()
	switch {
	case primary > m.free():
		return []Reason{SubnetFull}
	case v4+blocks > 0 && 1+e.v4+e.blocks+v4+blocks > limit:
		return []Reason{AddressLimit}
	case blocks > whole:
		return []Reason{NoBlock}
	case v4+primary > m.free()-16*blocks:
		return []Reason{SubnetFull, NoBlock}
	case v6 > 0 && e.v6+v6 > limit:
		return []Reason{AddressLimit, NoBlock}
	case blocks > 0 && blocks+primary > whole:
		return []Reason{"", NoBlock}
	}
	return []Reason{""}
}

// asks is mayGet for a call: a fault that halves a request does so before it is judged.
func (m *model) asks(e *modelENI, v4, blocks, v6, primary int) func(Fault) []Reason {
	return func(f Fault) []Reason { return m.mayGet(e, f.half(v4), f.half(blocks), f.half(v6), primary) }
}

func only(r Reason) func(Fault) []Reason { return func(Fault) []Reason { return []Reason{r} } }

type ruleWalk struct {
	a     *Account
	clock *handClock
	m     *model
}

// act makes a call that has a fault now and then, and compares what came of it.
func (w *ruleWalk) act(t *rapid.T, name string, expect func(Fault) []Reason, effect func(Fault), do func(*Tx) (any, error)) {
	f := rapid.SampledFrom([]Fault{{}, {}, {}, {Partial: true}, {Err: &Error{Reason: Throttled}}, {Answer: Lost}, {Answer: Short},
		{Err: &Error{Reason: Unavailable}, After: true}, {Partial: true, Answer: Cut}, {Slow: time.Second}}).Draw(t, "fault")
	want := expect(f)
	w.a.FailNext(name, f)
	var inner error
	_, answer, err := Do(t.Context(), w.a, Call{Action: name, Mutates: true}, func(tx *Tx) (any, error) {
		v, err := do(tx)
		inner = err
		return v, err
	})
	if answer.Break != f.Answer || f.Err != nil && ReasonOf(err) != ReasonOf(f.Err) {
		t.Fatalf("%s with %+v: error %v, answer %+v", name, f, err, answer)
	}
	if f.Err == nil || f.After {
		if !slices.Contains(want, ReasonOf(inner)) {
			t.Fatalf("%s with %+v: error %v, want one of %q", name, f, inner, want)
		}
		if inner == nil {
			effect(f)
		}
	}
	w.compare(t, name)
}

// compare checks the account against the model, and learns what it has.
func (w *ruleWalk) compare(t *rapid.T, what string) {
	if err := w.a.Check(); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	w.a.View(0, func(tx *Tx) {
		list, living := tx.Interfaces()[1:], w.m.living() // without the instance's own
		if len(list) != len(living) {
			t.Fatalf("%s: there are %d ENIs, want %d", what, len(list), len(living))
		}
		for n, e := range living {
			i, place := list[n], 0
			if i.Attachment != nil {
				place = i.Attachment.Index
			}
			if len(i.V4) != e.v4 || len(i.Prefixes) != e.blocks || len(i.V6) != e.v6 || i.Status != e.status || place != e.index {
				t.Fatalf("%s: ENI is %+v at %d, want %+v", what, i, place, *e)
			}
			e.id, e.has = i.ID, i
		}
		if s, _ := tx.Subnet("a"); s.Free != w.m.free() {
			t.Fatalf("%s: %d are free, want %d", what, s.Free, w.m.free())
		}
	})
}

func (w *ruleWalk) pick(t *rapid.T) *modelENI {
	if len(w.m.living()) == 0 {
		t.Skip("there is no ENI")
	}
	return rapid.SampledFrom(w.m.living()).Draw(t, "eni")
}

func (w *ruleWalk) create(t *rapid.T) {
	v4, v6 := rapid.IntRange(0, 8).Draw(t, "v4"), rapid.IntRange(0, 3).Draw(t, "v6")
	blocks := rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, "blocks")
	e := &modelENI{}
	w.act(t, "Create", w.m.asks(e, v4, blocks, v6, 1), func(f Fault) {
		e.v4, e.blocks, e.v6, e.status = f.half(v4), f.half(blocks), f.half(v6), Pending
		w.m.enis = append(w.m.enis, e)
		w.m.later(w.m.create+f.Slow, func() { e.status = Available })
	}, func(tx *Tx) (any, error) {
		return tx.Create(Create{Subnet: "a", AddressRequest: AddressRequest{CountV4: v4, BlocksV4: blocks, CountV6: v6}})
	})
}

func (w *ruleWalk) attach(t *rapid.T) {
	e, index := w.pick(t), rapid.IntRange(0, 3).Draw(t, "index")
	var want Reason
	switch {
	case e.index > 0:
		want = AlreadyAttached
	case e.status != Available:
		want = IncorrectState
	case 1+e.v4+e.blocks > 6 || e.v6 > 6:
		want = AddressLimit
	case w.m.attached() >= 3:
		want = AttachmentLimit
	case index == 0 || w.m.taken(index):
		want = IndexInUse
	}
	w.act(t, "Attach", only(want), func(f Fault) {
		e.status, e.index = Attaching, index
		e.busy++
		busy := e.busy
		w.m.later(w.m.attach+f.Slow, func() {
			if e.busy == busy && e.status == Attaching {
				e.status = InUse
			}
		})
	}, func(tx *Tx) (any, error) { return tx.Attach(Attach{Interface: e.id, Instance: "i", Index: index}) })
}

func (w *ruleWalk) detach(t *rapid.T) {
	e, force := w.pick(t), rapid.Bool().Draw(t, "force")
	at, want := "eni-attach-none", NoSuchAttachment
	if e.index > 0 {
		at, want = e.has.Attachment.ID, ""
		if e.status != InUse && !force {
			want = IncorrectState
		}
	}
	w.act(t, "Detach", only(want), func(f Fault) {
		e.status = Detaching
		busy := e.busy
		w.m.later(w.m.detach+f.Slow, func() {
			if e.busy == busy && e.index > 0 {
				e.status, e.index = Available, 0
			}
		})
	}, func(tx *Tx) (any, error) { return tx.Detach(at, force) })
}

func (w *ruleWalk) remove(t *rapid.T) {
	e := w.pick(t)
	want := Reason("")
	if e.index > 0 {
		want = InterfaceInUse
	}
	w.act(t, "Delete", only(want), func(Fault) { e.gone = true }, func(tx *Tx) (any, error) { return nil, tx.Delete(e.id) })
}

func (w *ruleWalk) assign(t *rapid.T) {
	e := w.pick(t)
	v4, v6 := rapid.IntRange(0, 4).Draw(t, "v4"), rapid.IntRange(0, 4).Draw(t, "v6")
	blocks := rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "blocks")
	w.act(t, "Assign", w.m.asks(e, v4, blocks, v6, 0), func(f Fault) {
		e.v4, e.blocks, e.v6 = e.v4+f.half(v4), e.blocks+f.half(blocks), e.v6+f.half(v6)
	}, func(tx *Tx) (any, error) {
		return tx.Assign(e.id, AddressRequest{CountV4: v4, BlocksV4: blocks, CountV6: v6})
	})
}

func (w *ruleWalk) unassign(t *rapid.T) {
	e := w.pick(t)
	some := func(n int, what string) int { return rapid.IntRange(0, n).Draw(t, what) }
	g := Got{V4: e.has.V4[:some(e.v4, "v4")], V6: e.has.V6[:some(e.v6, "v6")], Prefixes: e.has.Prefixes[:some(e.blocks, "blocks")]}
	want := Reason("")
	switch rapid.IntRange(0, 5).Draw(t, "wrong") {
	case 0:
		g.V4, want = append(slices.Clone(g.V4), e.has.Primary), PrimaryAddress
	case 1:
		g.V4, want = append(slices.Clone(g.V4), netip.MustParseAddr("10.0.0.63")), NoSuchAddress
	case 2:
		g.Prefixes, want = append(slices.Clone(g.Prefixes), netip.MustParsePrefix("10.0.0.48/28")), NoSuchAddress
	}
	w.act(t, "Unassign", only(want), func(f Fault) {
		e.v4, e.v6, e.blocks = e.v4-f.half(len(g.V4)), e.v6-f.half(len(g.V6)), e.blocks-f.half(len(g.Prefixes))
	}, func(tx *Tx) (any, error) { return nil, tx.Unassign(e.id, g) })
}

func (w *ruleWalk) pass(t *rapid.T) {
	d := time.Duration(rapid.IntRange(1, 1500).Draw(t, "ms")) * time.Millisecond
	w.clock.now = w.clock.now.Add(d)
	w.m.pass(d)
	w.compare(t, "time")
}

func TestTheAccountFollowsItsRulesWhateverIsAskedOfIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clock := newClock()
		second := func(what string) time.Duration {
			return time.Duration(rapid.IntRange(0, 2).Draw(t, what)) * 500 * time.Millisecond
		}
		m := &model{now: clock.now, create: second("create"), attach: second("attach"), detach: second("detach")}
		a := newHalves(Options{Clock: clock, CreateTime: m.create, AttachTime: m.attach, DetachTime: m.detach,
			Reuse: rapid.SampledFrom([]Reuse{ReuseLowest, ReuseLatest, ReuseOldest}).Draw(t, "reuse")})
		w := &ruleWalk{a, clock, m}
		t.Repeat(map[string]func(*rapid.T){"create": w.create, "create too": w.create, "attach": w.attach, "detach": w.detach,
			"delete": w.remove, "assign": w.assign, "unassign": w.unassign, "pass": w.pass})
	})
}

func TestAPoolGivesOutWhatItHasAndNothingTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, err := newPool(netip.MustParsePrefix("10.0.0.0/25"), blockV4, EC2Reserve, nil)
		if err != nil {
			t.Fatal(err)
		}
		singles, blocks := map[netip.Addr]bool{}, map[netip.Prefix]bool{}
		nics := map[string]*nic{"e": {Interface: Interface{ID: "e"}}}
		order := rapid.SampledFrom([]Reuse{ReuseLowest, ReuseLatest, ReuseOldest}).Draw(t, "reuse")
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) {
				room := p.free()
				a, ok := p.take(order, "e")
				if ok != (room > 0) || ok && singles[a] {
					t.Fatalf("took %s, %v, with %d free", a, ok, room)
				}
				if ok {
					singles[a] = true
				}
			},
			"give": func(t *rapid.T) {
				for a := range singles {
					p.give(a)
					delete(singles, a)
					break
				}
			},
			"take a block": func(t *rapid.T) {
				b, ok := p.wholeBlock(order)
				if ok {
					p.useBlock(b, "e")
					blocks[b] = true
				}
			},
			"give a block": func(t *rapid.T) {
				for b := range blocks {
					p.giveBlock(b)
					delete(blocks, b)
					break
				}
			},
			"leave": func(t *rapid.T) { p.leaveFree(rapid.IntRange(0, 128).Draw(t, "n")) },
			"": func(t *rapid.T) {
				var errs []string
				p.checkPool(nics, func(f string, args ...any) { errs = append(errs, f) })
				if want := 128 - 5 - len(singles) - len(p.others) - 16*len(blocks); len(errs) > 0 || p.free() != want {
					t.Fatalf("%v; %d free, want %d", errs, p.free(), want)
				}
			},
		})
	})
}
