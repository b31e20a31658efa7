package operator_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator"
	"github.com/enipool/enipool/pkg/quota"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// told keeps what an operator tells people, and counts for metrics.
type told struct {
	mu       sync.Mutex
	notices  []operator.Notice
	waited   map[quota.Class]int
	describe int
	leaks    int
}

func (l *told) tell(n operator.Notice) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notices = append(l.notices, n)
}

func (l *told) Waited(of quota.Class, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waited == nil {
		l.waited = map[quota.Class]int{}
	}
	if l.waited[of]++; took < 0 || took > time.Hour {
		l.waited[-1]++
	}
}

func (l *told) Described(time.Duration) { l.mu.Lock(); l.describe++; l.mu.Unlock() }
func (l *told) Conflicted()             {}
func (l *told) LeaksDeleted(n int)      { l.mu.Lock(); l.leaks += n; l.mu.Unlock() }

// reasons returns what was told of an object, in order.
func (l *told) reasons(kind, name string) (list []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range l.notices {
		if n.Kind == kind && n.Name == name {
			list = append(list, n.Reason)
		}
	}
	return list
}

func (l *told) listen(o *operator.Options) { o.Tell, o.Meter = l.tell, l }

// A node whose subnet is full says why it waits and when that is tried again, the numbers say how much is missing, and people are
// told once of each change.
func TestANodeThatWaitsSaysWhy(t *testing.T) {
	play(t, setup{nodes: 2, typ: sim.Type{Name: "large", ENIs: 2, V4: 40, V6: 40}, subnets: []sim.Subnet{{ID: "a", V4: mustPrefix("10.0.0.0/26")}}}, func(ctx context.Context, w *world) {
		l := &told{}
		w.leadWith(ctx, l.listen)
		w.begin(ctx)
		for _, a := range w.agents {
			a.set(32)
		}
		report := func() operator.Report {
			r, err := w.lead.Report(ctx)
			if !errors.Is(err, operator.ErrNotLeading) { // it has just begun
				w.must(err)
			}
			return r
		}
		w.until(15*time.Minute, func() bool { return report().Waiting > 0 && len(l.reasons("Subnet", "a")) > 0 })
		time.Sleep(2 * time.Minute)
		r := report()
		if r.Epoch == 0 || r.Nodes["Operator"] != 2 || r.Satisfied == 2 || r.Short < 5 || r.DescribedAt == nil || len(r.Queue) != 4 || len(r.Subnets) != 1 {
			t.Errorf("%+v", r)
		}
		if s := r.Subnets[0]; s.ID != "a" || s.State != "Full" || s.Free > 1 || s.Zone != w.zone() {
			t.Errorf("%+v", s)
		}
		var waits operator.Why
		for _, a := range w.agents {
			why, err := w.lead.Why(ctx, a.name)
			w.must(err)
			if why.Waiting > 0 {
				waits = why
			}
		}
		if waits.Class != "starving" || waits.Since == nil || waits.Want <= waits.Have || waits.ENIs == 0 || waits.Cloud == nil || waits.Cloud.Limits != "2 ENIs x 40 addresses" {
			t.Errorf("%+v", waits)
		}
		if !slices.ContainsFunc(waits.Causes, func(c operator.Told) bool { return c.Reason == "SubnetFull" }) {
			t.Errorf("causes: %+v", waits.Causes)
		}
		text := strings.Join(waits.Lines(time.Now()), "\n")
		for _, want := range []string{" pods wait for ", "class starving", "SubnetFull: ", "looked at again in ", "the cloud shows "} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is not in\n%s", want, text)
			}
		}
		if got := l.reasons("NodeNetwork", waits.Node); !slices.Equal(got, []string{"SubnetFull"}) {
			t.Errorf("of the node people were told %v", got)
		}
		for _, a := range w.agents {
			a.set(1)
		}
		w.until(time.Hour, func() bool { return w.isQuiet() && slices.Contains(l.reasons("Subnet", "a"), "Recovered") })
		if got := l.reasons("Subnet", "a"); !slices.Equal(got, []string{"SubnetFull", "Recovered"}) {
			t.Errorf("of the subnet people were told %v", got)
		}
		if got := l.reasons("NodeNetwork", waits.Node); len(got) < 2 || got[0] != "SubnetFull" || got[len(got)-1] != "Recovered" {
			t.Errorf("of the node people were told %v", got)
		}
		if r := report(); r.Satisfied != 2 || r.Short+r.Waiting > 0 {
			t.Errorf("%+v", r)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.waited[quota.Starving] == 0 || l.waited[-1] > 0 || l.describe < 2 {
			t.Errorf("counted: %v, %d describes", l.waited, l.describe)
		}
	})
}

// Calls that wait for a token have a place, and a time that they keep.
func TestAPlaceInTheQueueIsTold(t *testing.T) {
	buckets := map[string]cloud.Bucket{sim.ActAssign: {Burst: 1, PerSecond: 0.05}}
	play(t, setup{nodes: 4, buckets: buckets}, func(ctx context.Context, w *world) {
		w.leadWith(ctx, nil)
		w.begin(ctx)
		w.until(5*time.Minute, w.isQuiet)
		for _, a := range w.agents {
			a.set(8)
		}
		places := map[int]bool{}
		w.until(5*time.Minute, func() bool {
			for _, a := range w.agents {
				why, err := w.lead.Why(ctx, a.name)
				w.must(err)
				for _, q := range why.Queue {
					if places[q.Before] = true; q.Class != "starving" || q.Expected.Before(time.Now().Truncate(time.Second)) {
						t.Errorf("%+v", q)
					}
				}
			}
			return places[0] && places[1] && places[2]
		})
		r, err := w.lead.Report(ctx)
		w.must(err)
		waiting := 0
		for _, b := range r.Budget {
			waiting += b.Waiting
		}
		if waiting == 0 || r.Queue[0].Class != "starving" || r.Queue[0].Count != waiting {
			t.Errorf("%+v", r)
		}
	})
}

// Who does not lead says so, at once.
func TestWhoDoesNotLeadKnowsNothing(t *testing.T) {
	play(t, setup{nodes: 1}, func(ctx context.Context, w *world) {
		l := w.leadWith(ctx, nil)
		w.begin(ctx)
		w.until(time.Minute, w.isQuiet)
		all, err := l.All(ctx)
		if w.must(err); len(all) != 1 || all[0].Node != "node-000" || all[0].Have == 0 || all[0].Mode != "Operator" {
			t.Errorf("%+v", all)
		}
		if why, err := l.Why(ctx, "node-9"); err != nil || !why.Unknown {
			t.Errorf("a node that there is not: %+v, %v", why, err)
		}
		l.kill()
		if _, err := l.Report(ctx); !errors.Is(err, operator.ErrNotLeading) {
			t.Errorf("%v", err)
		}
		if _, err := l.Why(ctx, "node-000"); !errors.Is(err, operator.ErrNotLeading) {
			t.Errorf("%v", err)
		}
		if _, err := l.Check(ctx); !errors.Is(err, operator.ErrNotLeading) {
			t.Errorf("%v", err)
		}
	})
}

// An operator that observes tells of nodes, too, that have not asked it: what the cloud shows, and where it would make an ENI.
func TestAnObserverKnowsNodesThatHaveNotAsked(t *testing.T) {
	play(t, setup{nodes: 2}, func(ctx context.Context, w *world) {
		l := w.leadWith(ctx, func(o *operator.Options) { o.Observe = true })
		seen := func(name string) *operator.InCloud {
			why, err := l.Why(ctx, name)
			if !errors.Is(err, operator.ErrNotLeading) { // it has just begun
				w.must(err)
			}
			return why.Cloud
		}
		w.until(2*time.Minute, func() bool { return seen("node-000") != nil && seen("node-001") != nil })
		// The Subnet object that the first describe has made tells what the subnet is for.
		w.until(time.Minute, func() bool { return len(seen("node-000").Subnets) > 0 })
		if c := seen("node-000"); c.ENIs != 1 || c.Addresses != 0 || c.Error != "" || !slices.Equal(c.Subnets, []string{"a"}) || c.Limits == "" {
			t.Errorf("%+v", c)
		}
		found, err := l.Check(ctx)
		if w.must(err); len(found) == 0 {
			t.Error("nothing was checked")
		}
		// A node that asks is one like others from then on.
		_, err = w.store.put(&crd.NodeNetwork{ObjectMeta: metav1.ObjectMeta{Name: "node-000"}, Spec: crd.NodeNetworkSpec{Mode: crd.Operator, Families: []string{"IPv4"}, Slots: 5, Pool: crd.Pool{Batch: 8}}})
		w.must(err)
		w.until(time.Minute, func() bool {
			why, err := l.Why(ctx, "node-000")
			w.must(err)
			return why.Want == 5 && why.Cloud != nil && why.Wrong == "the operator only observes: remove observe from operator.yaml"
		})
		for action, n := range w.Calls() {
			if n > 0 && !strings.HasPrefix(strings.ToLower(action), "describe") {
				t.Errorf("%s was called %d times", action, n)
			}
		}
	})
}

// Two Nodes may name one instance: what becomes of the second takes nothing of the first one's from an operator that observes. One instance
// that the engine does not know fails the describe of all.
func TestAnObserverDescribesAnInstanceOfTwoNodes(t *testing.T) {
	play(t, setup{nodes: 3}, func(ctx context.Context, w *world) {
		twin := w.store.nodes["node-001"]
		twin.Instance = "i-node-000"
		w.store.nodes["node-001"] = twin
		l := w.leadWith(ctx, func(o *operator.Options) { o.Observe = true; o.Describe = 10 * time.Second })
		described := func(name string) time.Time {
			why, err := l.Why(ctx, name)
			if errors.Is(err, operator.ErrNotLeading) || why.Cloud == nil { // it has just begun
				return time.Time{}
			}
			w.must(err)
			return why.Cloud.At
		}
		again := func() {
			t.Helper()
			from := time.Now()
			w.until(2*time.Minute, func() bool { return described("node-000").After(from) && described("node-002").After(from) })
		}
		again()
		for _, name := range []string{"node-000", "node-001"} {
			_, err := w.store.put(&crd.NodeNetwork{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: crd.NodeNetworkSpec{Mode: crd.Operator, Families: []string{"IPv4"}, Slots: 5, Pool: crd.Pool{Batch: 8}}})
			w.must(err)
			again()
		}
	})
}
