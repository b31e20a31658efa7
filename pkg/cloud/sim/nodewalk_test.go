package sim

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// walk makes random calls of two nodes on an account, with faults, and compares
// the account with the model after each of them.
type walk struct {
	a    *Account
	m    model
	been []moment // the truth, the oldest first
	late []lateRequest
}

type lateRequest struct {
	At      time.Time
	Request request
}

type moment struct {
	from time.Time
	Snapshot
}

const walkLag = 2 * time.Second

// TestNoRowOfCallsBreaksTheAccount is what the account promises, with faults on.
func TestNoRowOfCallsBreaksTheAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// The wrapper hides the deadline, for which a bubble may not ask.
		rapid.Check(struct{ rapid.TB }{t}, func(t *rapid.T) {
			w := newWalk(t)
			t.Repeat(map[string]func(*rapid.T){
				"":          w.check,
				"create":    w.create,
				"assign":    w.assign,
				"unassign":  w.unassign,
				"delete":    w.delete,
				"take away": w.takeAway,
				"detach":    w.detach,
				"foreign":   w.foreign,
				"look":      w.look,
				"wait":      w.wait,
				"restart":   w.restart,
			})
		})
	})
}

func newWalk(t *rapid.T) *walk {
	w := &walk{m: model{
		maxENIs: 7, limits: eni.Limits{ENIs: 4, V4: 5, V6: 5},
		room: map[string]int{"a": 16 - 3, "b": 8 - 4}, foreign: map[string]int{}, dual: map[string]bool{"a": true},
	}}
	w.a = NewAccount(w.options(rapid.SampledFrom([]Reuse{ReuseLowest, ReuseLatest, ReuseOldest}).Draw(t, "reuse")))
	for _, s := range []Subnet{
		{ID: "a", V4: netip.MustParsePrefix("10.0.0.0/28"), V6: netip.MustParsePrefix("fd00:10::/64")},
		{ID: "b", V4: netip.MustParsePrefix("10.0.1.0/29"), Reserved: []netip.Addr{netip.MustParseAddr("10.0.1.3")}},
	} {
		if err := w.a.AddSubnet(s); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"n1", "n2"} {
		if _, err := w.a.AddNode(Machine{Name: name, Limits: w.m.limits, Subnet: "a"}); err != nil {
			t.Fatal(err)
		}
		own := w.a.Snapshot().Nodes[name][0]
		w.m.enis = append(w.m.enis, modelENI{id: own.ID, node: name, subnet: "a", ready: true})
	}
	w.note()
	return w
}

func (w *walk) options(r Reuse) Options {
	return Options{MaxENIs: w.m.maxENIs, Lag: walkLag, Seed: 7, Reuse: r}
}

func (w *walk) note() {
	w.been = append(w.been, moment{time.Now(), w.a.Snapshot()})
}

func (w *walk) check(t *rapid.T) {
	if err := w.a.Check(); err != nil {
		t.Fatal(err)
	}
}

// call makes a call that has a fault now and then.
func (w *walk) call(t *rapid.T, r request) {
	faults := []Fault{{}, {}, {}, {Err: cloud.ErrThrottled}, {Err: cloud.ErrUnavailable}, {Lost: AfterEffect}, {Later: time.Second},
		{Lost: AfterCreate}, {Lost: AfterAttach}, {Partial: true}, {Partial: true, Err: cloud.ErrUnknown}}
	f := rapid.SampledFrom(faults).Draw(t, "fault")
	w.a.FailNext(r.Method, f)
	before := w.m.clone()
	want := w.m.predict(r, f)
	out, err := w.a.call(context.Background(), r)
	if want != nil && !errors.Is(err, want) || want == nil && err != nil {
		t.Fatalf("%+v with %+v: error %v, want %v", r, f, err, want)
	}
	if f.Later > 0 {
		w.late = append(w.late, lateRequest{time.Now().Add(f.Later), r})
	}
	w.compare(t, r, before)
	if r.Method == assignAddresses && f.Lost == Nowhere {
		w.told(t, r, before, out.Addresses)
	}
	if r.Method == createInterface && err == nil {
		w.toldENI(t, r, out.Interface)
	}
}

// told: the addresses that came with the answer are those that are new.
func (w *walk) told(t *rapid.T, r request, before model, got []netip.Addr) {
	is := func(e modelENI) bool { return e.id == r.ENI }
	var want []netip.Addr
	if now, was := w.m.find(is), before.find(is); now != nil {
		want = slices.DeleteFunc(slices.Clone(now.addrs), func(a netip.Addr) bool { return slices.Contains(was.addrs, a) })
	}
	if !slices.Equal(want, got) {
		t.Fatalf("%+v returned %v, new are %v", r, got, want)
	}
}

func (w *walk) toldENI(t *rapid.T, r request, got cloud.Interface) {
	list := w.a.Snapshot().Nodes[r.Node]
	at := slices.IndexFunc(list, func(i cloud.Interface) bool { return i.Token == r.Create.Token })
	if at < 0 || diffENI(list[at], got) != "" {
		t.Fatalf("%+v returned %+v, there are %+v", r, got, list)
	}
}

// compare checks the account against the predicted model, and fills the model's
// blanks: ids of new ENIs, and which the fresh addresses are.
func (w *walk) compare(t *rapid.T, what any, before model) {
	now := w.a.Snapshot()
	had := map[netip.Addr]bool{}
	for _, e := range before.enis {
		for _, a := range e.addrs {
			had[a] = true
		}
	}
	seen := map[string]int{}
	for at := range w.m.enis {
		e := &w.m.enis[at]
		nth := seen[e.node]
		seen[e.node]++
		if nth >= len(now.Nodes[e.node]) {
			t.Fatalf("%+v: node %s has no ENI %+v", what, e.node, *e)
		}
		got := now.Nodes[e.node][nth]
		if e.id != "" && e.id != got.ID || e.subnet != got.Subnet || e.token != got.Token || e.index != got.Index {
			t.Fatalf("%+v: node %s has ENI %+v, want %+v", what, e.node, got, *e)
		}
		var fresh4, fresh6 int
		for _, a := range got.Addresses {
			switch {
			case slices.Contains(e.addrs, a):
			case had[a]:
				t.Fatalf("%+v: address %s of ENI %s was another's", what, a, got.ID)
			case a.Is4():
				fresh4++
			default:
				fresh6++
			}
		}
		if fresh4 != e.fresh4 || fresh6 != e.fresh6 || len(got.Addresses) != len(e.addrs)+fresh4+fresh6 {
			t.Fatalf("%+v: ENI %s has %v, want %v and %d and %d new ones", what, got.ID, got.Addresses, e.addrs, e.fresh4, e.fresh6)
		}
		e.id, e.addrs, e.fresh4, e.fresh6 = got.ID, got.Addresses, 0, 0
	}
	for node, list := range now.Nodes {
		if len(list) != seen[node] {
			t.Fatalf("%+v: node %s has %d ENIs, want %d", what, node, len(list), seen[node])
		}
	}
	for _, s := range now.Subnets {
		if s.Free != w.m.free(s.ID) {
			t.Fatalf("%+v: subnet %s has %d free, want %d", what, s.ID, s.Free, w.m.free(s.ID))
		}
	}
	w.note()
}

func node(t *rapid.T) string { return rapid.SampledFrom([]string{"n1", "n2"}).Draw(t, "node") }

func (w *walk) eni(t *rapid.T) modelENI {
	return rapid.SampledFrom(append(slices.Clone(w.m.enis), modelENI{id: "eni-of-nobody"})).Draw(t, "eni")
}

func (w *walk) create(t *rapid.T) {
	w.call(t, request{Method: createInterface, Node: node(t), Create: cloud.Create{
		Token:  rapid.SampledFrom([]string{"t1", "t2", "t3", "t4", "t5"}).Draw(t, "token"),
		Subnet: rapid.SampledFrom([]string{"a", "a", "b", "none"}).Draw(t, "subnet"),
		V4:     rapid.IntRange(0, 5).Draw(t, "v4"), V6: rapid.IntRange(0, 5).Draw(t, "v6")}})
}

func (w *walk) assign(t *rapid.T) {
	w.call(t, request{Method: assignAddresses, Node: node(t), ENI: w.eni(t).id,
		Family: rapid.SampledFrom([]eni.Family{eni.IPv4, eni.IPv6}).Draw(t, "family"), Count: rapid.IntRange(0, 6).Draw(t, "count")})
}

func (w *walk) unassign(t *rapid.T) {
	pool := []netip.Addr{netip.MustParseAddr("10.9.9.9"), netip.MustParseAddr("10.0.0.2")}
	for _, e := range w.m.enis {
		pool = append(pool, e.addrs...)
	}
	w.call(t, request{Method: unassignAddresses, Node: node(t), ENI: w.eni(t).id,
		Addresses: rapid.SliceOfN(rapid.SampledFrom(pool), 0, 5).Draw(t, "addresses")})
}

func (w *walk) delete(t *rapid.T) {
	w.call(t, request{Method: deleteInterface, Node: node(t), ENI: w.eni(t).id})
}

func (w *walk) takeAway(t *rapid.T) {
	e := w.eni(t)
	if len(e.addrs) == 0 {
		t.Skip("it has no address")
	}
	addr := rapid.SampledFrom(e.addrs).Draw(t, "address")
	if err := w.a.TakeAway(addr); err != nil {
		t.Fatal(err)
	}
	before := w.m.clone()
	r := request{Node: e.node, ENI: e.id, Addresses: []netip.Addr{addr}}
	_ = w.m.unassign(r, Fault{})
	w.compare(t, "take away", before)
}

func (w *walk) detach(t *rapid.T) {
	e := w.eni(t)
	err := w.a.Detach(e.id)
	if ok := e.index > 0; ok != (err == nil) {
		t.Fatalf("detach %+v: %v", e, err)
	}
	if err == nil {
		w.m.find(func(o modelENI) bool { return o.id == e.id }).index = -1
	}
	w.compare(t, "detach", w.m)
}

func (w *walk) foreign(t *rapid.T) {
	subnet := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "subnet")
	n := rapid.IntRange(0, 16).Draw(t, "foreign")
	if err := w.a.SetForeign(subnet, n); err != nil {
		t.Fatal(err)
	}
	w.m.foreign[subnet] = min(n, w.m.foreign[subnet]+w.m.free(subnet))
	w.compare(t, "foreign", w.m)
}

// look: what the node sees was the truth within the lag.
func (w *walk) look(t *rapid.T) {
	name := node(t)
	list, err := w.a.Old(name).Interfaces(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	oldest := time.Now().Add(-walkLag)
	for at, m := range w.been {
		recent := at == len(w.been)-1 || !w.been[at+1].from.Before(oldest)
		if recent && diffENI(m.Nodes[name], list) == "" {
			return
		}
	}
	t.Fatalf("node %s sees %+v\nwhich has not been so lately", name, list)
}

// wait lets time pass, and with it one late effect after the other come.
func (w *walk) wait(t *rapid.T) {
	until := time.Now().Add(time.Duration(rapid.IntRange(1, 3000).Draw(t, "ms")) * time.Millisecond)
	for len(w.late) > 0 && !w.late[0].At.After(until) {
		l := w.late[0]
		w.late = w.late[1:]
		time.Sleep(time.Until(l.At))
		before := w.m.clone()
		_ = w.m.predict(l.Request, Fault{})
		if len(w.late) > 0 && w.late[0].At.Equal(l.At) {
			continue // compared with the last of those that come together
		}
		w.compare(t, fmt.Sprintf("late %+v", l.Request), before)
	}
	time.Sleep(time.Until(until))
}

// restart saves the account and goes on with what was loaded.
func (w *walk) restart(t *rapid.T) {
	before := w.a.Snapshot()
	w.a = saveAndLoad(t, w.a, w.options(w.a.o.Reuse))
	if diff := gocmp.Diff(before, w.a.Snapshot(), plain...); diff != "" {
		t.Fatalf("a loaded account is another (-saved +loaded):\n%s", diff)
	}
	w.been = []moment{{time.Now(), before}} // it knows no history
}

var plain = []gocmp.Option{cmpopts.EquateEmpty(), cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})}

func diffENI(want, got any) string { return gocmp.Diff(want, got, plain...) }
