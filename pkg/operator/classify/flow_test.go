package classify

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator"
)

// selects has a topology select by a label of namespaces, of pods, or both.
func selects(priority int32, namespace, app string, made time.Time) func(*crd.PodSubnetTopology) {
	return func(t *crd.PodSubnetTopology) {
		t.Spec.Priority, t.CreationTimestamp = priority, metav1.NewTime(made)
		if namespace != "" {
			t.Spec.NamespaceSelector.MatchLabels = map[string]string{"name": namespace}
		}
		if app != "" {
			t.Spec.PodSelector.MatchLabels = map[string]string{"app": app}
		}
	}
}

// Which topology a pod gets, from its gate to what is written on it.
func TestAPodGetsTheTopologyThatGoesFirst(t *testing.T) {
	day := time.Unix(1_800_000_000, 0)
	t1, t2, t3 := selects(0, "db", "", day), selects(0, "db", "x", day), selects(5, "", "", day)
	t4, t5 := selects(0, "", "x", day.Add(time.Second)), selects(0, "", "x", day)
	for _, tt := range []struct {
		what, namespace, app, want string
		of                         map[string]func(*crd.PodSubnetTopology)
	}{
		{"the highest priority", "db", "x", "t3,t3,a,false", map[string]func(*crd.PodSubnetTopology){"t1": t1, "t2": t2, "t3": t3}},
		{"what selects pods too", "db", "x", "t2,t2,a,false", map[string]func(*crd.PodSubnetTopology){"t1": t1, "t2": t2}},
		{"what selects no pods", "db", "y", "t1,t1,a,false", map[string]func(*crd.PodSubnetTopology){"t1": t1, "t2": t2}},
		{"none: the gate goes, and nothing else changes", "web", "x", ",,,false", map[string]func(*crd.PodSubnetTopology){"t1": t1, "t2": t2}},
		{"the older one", "web", "x", "t5,t5,a,false", map[string]func(*crd.PodSubnetTopology){"t4": t4, "t5": t5}},
		{"of one second the smaller name", "web", "x", "a,a,a,false", map[string]func(*crd.PodSubnetTopology){"b": t5, "a": t5}},
		{"there are none at all", "db", "x", ",,,false", nil},
	} {
		w := newWorld(t)
		w.ready()
		for name, change := range tt.of {
			w.addTopology(name, change)
		}
		w.in(func(f *term) {
			p := gated(tt.namespace, "p", tt.app)
			w.put(p)
			w.settle()
			got := w.pod(tt.namespace, "p")
			if says := saysOf(got); says != tt.want {
				t.Errorf("%s: %s, want %s", tt.what, says, tt.want)
			}
			if len(got.Spec.SchedulingGates) != 1 || got.Labels["app"] != tt.app || w.count(&w.patches) != 1 || len(f.pods) > 0 {
				t.Errorf("%s: gates %v, labels %v, %d patches, %d pods kept", tt.what, got.Spec.SchedulingGates, got.Labels, w.count(&w.patches), len(f.pods))
			}
		})
	}
}

// A pod in its node's network may have the gate by its template, or since a webhook has put it there after the gate had come. An address of its own it
// would never use, and keep from a pod that needs it.
func TestAPodOnItsNodesNetworkBelongsToNoTopology(t *testing.T) {
	w := newWorld(t)
	w.ready()
	w.addTopology("db", nil)
	w.in(func(*term) {
		p := gated("db", "proxy", "x")
		p.Spec.HostNetwork = true
		w.put(p)
		w.put(gated("db", "pod", "x"))
		w.settle()
		if got, other := saysOf(w.pod("db", "proxy")), saysOf(w.pod("db", "pod")); got != ",,,false" || other != "db,db,a,false" {
			t.Errorf("it has %s, and one with an address of its own %s", got, other)
		}
	})
}

// Before all there is has been told of a pod would be taken for one of no topology, and the gate would go.
func TestNoPodIsClassifiedByAPartOfWhatThereIs(t *testing.T) {
	w := newWorld(t)
	w.addTopology("db", nil)
	w.refuse = func(what string) error {
		if what == "read" {
			return errDown
		}
		return nil
	}
	w.in(func(*term) {
		w.put(gated("db", "p", "x"))
		w.settle()
		w.ready()
		w.wait(time.Hour)
		if says, reads := saysOf(w.pod("db", "p")), w.count(&w.reads); says != ",,,true" || reads < 60 || reads > 100 {
			t.Errorf("topologies can't be read: %s, %d reads", says, reads)
		}
		w.mu.Lock()
		w.refuse = nil
		w.mu.Unlock()
		w.wait(2 * time.Minute)
		if says := saysOf(w.pod("db", "p")); says != "db,db,a,false" {
			t.Errorf("then: %s", says)
		}
		w.put(gated("new", "p", "x")) // of a namespace that nobody has told of
		w.settle()
		if says := saysOf(w.pod("new", "p")); says != ",,,true" {
			t.Errorf("in an unknown namespace: %s", says)
		}
		w.say(Event{Namespace: &Namespace{Name: "new"}})
		w.settle()
		if says := saysOf(w.pod("new", "p")); says != "db,db,a,false" {
			t.Errorf("once it is known: %s", says)
		}
	})
}

// People apply a topology and its pods with one command, and the watch of topologies may lag behind that of pods.
func TestATopologyMadeJustBeforeAPodCounts(t *testing.T) {
	w := newWorld(t)
	w.ready()
	w.in(func(*term) {
		w.settle()
		w.mu.Lock()
		w.lags = true
		w.mu.Unlock()
		w.addTopology("db", nil)
		p := gated("db", "p", "x")
		w.put(p)
		is, _ := PodOf(p)
		w.tell(Event{Pod: &is})
		w.settle()
		if says := saysOf(w.pod("db", "p")); says != "db,db,a,false" {
			t.Errorf("%s", says)
		}
	})
}

// People are told once why pods wait, however often it is looked at again, and no pod becomes another topology's meanwhile.
func TestAPodWaitsForItsTopologyAndPeopleAreToldOnce(t *testing.T) {
	w := newWorld(t)
	w.ready()
	w.say(Event{Subnet: subnetIn("s-a", "a", "Missing")})
	w.addTopology("db", func(t *crd.PodSubnetTopology) { t.Spec.Priority = 5 })
	w.addTopology("rest", func(t *crd.PodSubnetTopology) { t.Spec.Subnets = []crd.Source{{ID: "s-b"}} })
	w.say(Event{Subnet: subnetIn("s-b", "b", "Ready")})
	w.in(func(*term) {
		w.put(gated("db", "p", "x"))
		w.settle()
		for i := range 5 { // each time something changes
			w.say(Event{Namespace: &Namespace{Name: "web", Labels: map[string]string{"n": fmt.Sprint(i)}}})
			w.settle()
		}
		if says := saysOf(w.pod("db", "p")); says != ",,,true" {
			t.Errorf("its subnet is missing: %s", says)
		}
		w.say(Event{Subnet: subnetIn("s-a", "a", "Full")})
		w.settle()
		want := []string{"db NoSubnet", "db Ready", "db p NoRoom", "db p TopologyNotReady"}
		got := w.heard()
		if slices.Sort(got); !slices.Equal(got, want) || w.count(&w.patches) > 0 {
			t.Errorf("told %q, want %q; %d patches", got, want, w.count(&w.patches))
		}
		w.wait(operator.TellAgain + scanEvery) // the API server is about to drop the event
		want = []string{"db NoSubnet", "db Ready", "db p NoRoom", "db p NoRoom", "db p TopologyNotReady"}
		if got = w.heard(); !slices.Equal(slices.Sorted(slices.Values(got)), want) {
			t.Errorf("told again %q", got)
		}
		w.say(Event{Subnet: subnetIn("s-a", "a", "Ready")})
		w.settle()
		if says := saysOf(w.pod("db", "p")); says != "db,db,a,false" {
			t.Errorf("with room: %s", says)
		}
	})
}

// A pod whose address is kept goes where that is.
func TestAPodRunsWhereItsAddressIs(t *testing.T) {
	w := newWorld(t)
	w.ready()
	b := subnetIn("s-b", "b", "Ready")
	b.Status.V4 = "10.0.1.0/24"
	w.say(Event{Subnet: b})
	w.addTopology("db", func(t *crd.PodSubnetTopology) {
		t.Spec.Subnets, t.Spec.Strategy.Type = []crd.Source{{ID: "s-a"}, {ID: "s-b"}}, "Sticky"
	})
	claim := &crd.AddressClaim{ObjectMeta: metav1.ObjectMeta{Name: "10.0.1.7"}, Spec: crd.ClaimSpec{Topology: "db", Subnet: "s-b", Address: "10.0.1.7", Namespace: "db", Pod: "db-0", Keep: "TTL", TTL: "1h"}}
	w.say(Event{Claim: claim})
	w.mu.Lock()
	w.labels = map[string][]string{"a": {"zoneA", "cn-bj-a"}}
	w.unknown = true
	w.mu.Unlock()
	w.in(func(*term) {
		w.put(gated("db", "db-0", "x"))
		w.put(gated("db", "db-1", "x"))
		w.settle()
		if says := saysOf(w.pod("db", "db-1")); says != ",,,true" {
			t.Errorf("nobody knows what Nodes call the zones: %s", says)
		}
		w.mu.Lock()
		w.unknown = false
		w.mu.Unlock()
		w.settle()
		if says := saysOf(w.pod("db", "db-0")); says != "db,db,b,false" {
			t.Errorf("the one with an address: %s", says)
		}
		if says := saysOf(w.pod("db", "db-1")); says != "db,db,zoneA+cn-bj-a+b,false" {
			t.Errorf("another one: %s", says)
		}
		w.say(Event{Claim: claim, Deleted: true})
		w.settle()
		again := gated("db", "db-0", "x")
		again.UID = "uid-2"
		w.put(again)
		w.settle()
		if says := saysOf(w.pod("db", "db-0")); says != "db,db,zoneA+cn-bj-a+b,false" {
			t.Errorf("without its claim: %s", says)
		}
	})
}

// Between the decision and the patch the pod may become another one.
func TestAPodThatChangesMeanwhileIsDecidedAgain(t *testing.T) {
	for what, tt := range map[string]struct {
		meanwhile func(w *world)
		want      string
		patches   int
	}{
		"another one of the name": {func(w *world) {
			p := gated("db", "p", "other")
			p.UID = "uid-2"
			w.remove(w.pod("db", "p"))
			w.put(p)
		}, "rest,rest,a,false", 2},
		"somebody asks for other nodes": {func(w *world) {
			p := w.pod("db", "p")
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "disk", Operator: corev1.NodeSelectorOpExists}}}}}}}
			w.put(p)
		}, "db,db,a,false", 2},
		"somebody takes the gate off": {func(w *world) {
			p := w.pod("db", "p")
			p.Spec.SchedulingGates = p.Spec.SchedulingGates[:1]
			w.put(p)
		}, ",,,false", 1},
		"news of its status": {func(w *world) {
			p := w.pod("db", "p")
			p.Status.Message = "gated"
			w.put(p)
		}, "db,db,a,false", 1},
	} {
		w := newWorld(t)
		w.ready()
		w.addTopology("db", selects(0, "", "x", time.Unix(1_800_000_000, 0)))
		w.addTopology("rest", nil)
		changed := false
		w.before = func(string) {
			if !changed {
				changed = true
				tt.meanwhile(w)
			}
		}
		w.in(func(f *term) {
			w.put(gated("db", "p", "x"))
			w.settle()
			got := w.pod("db", "p")
			if says := saysOf(got); says != tt.want || w.count(&w.patches) != tt.patches || len(f.pods) > 0 {
				t.Errorf("%s: %s, want %s; %d patches, want %d; %d pods kept", what, says, tt.want, w.count(&w.patches), tt.patches, len(f.pods))
			}
			if a := got.Spec.Affinity; what == "somebody asks for other nodes" && len(a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions) != 2 {
				t.Errorf("%s: %+v", what, a)
			}
		})
	}
}

// Nothing is remembered of pods that are gone.
func TestAPodThatIsDeletedMeanwhileIsForgotten(t *testing.T) {
	w := newWorld(t)
	w.ready()
	w.in(func(f *term) {
		w.mu.Lock()
		w.lags = true // the watch has not told of it yet
		w.mu.Unlock()
		p := gated("db", "p", "x")
		is, _ := PodOf(p)
		w.tell(Event{Pod: &is})
		w.settle()
		if len(f.pods) > 0 || w.count(&w.patches) != 1 {
			t.Errorf("%d pods kept, %d patches", len(f.pods), w.count(&w.patches))
		}
		w.tell(Event{Pod: &is})
		w.tell(Event{Listed: &[]Pod{}}) // a list that lacks it
		w.settle()
		if len(f.pods) > 0 || w.count(&w.patches) != 1 {
			t.Errorf("after a list: %d pods kept, %d patches", len(f.pods), w.count(&w.patches))
		}
	})
}

// What the API server does not take is tried later and later, and people are told.
func TestAPatchThatIsRefusedIsTriedAgainLater(t *testing.T) {
	w := newWorld(t)
	w.ready()
	w.refuse = func(what string) error {
		if what == "patch" {
			return errDown
		}
		return nil
	}
	w.in(func(*term) {
		w.put(gated("db", "p", "x"))
		w.wait(10 * time.Minute)
		if n := w.count(&w.patches); n < 10 || n > 17 {
			t.Errorf("%d patches in 10 minutes", n)
		}
		if got := w.heard(); !slices.Equal(got, []string{"db p Refused"}) {
			t.Errorf("told %q", got)
		}
		w.mu.Lock()
		w.refuse = nil
		w.mu.Unlock()
		w.wait(2 * time.Minute)
		if says := saysOf(w.pod("db", "p")); says != ",,,false" {
			t.Errorf("then: %s", says)
		}
	})
}

// What the API server says is not as here, though nobody has changed it, as a field of an affinity that this release does not know: the pod
// waits, and people are told.
func TestAPodThatIsNeverAsItWasToldIsNamed(t *testing.T) {
	w := newWorld(t)
	w.ready()
	w.refuse = func(what string) error { return map[string]error{"patch": ErrConflict}[what] }
	w.in(func(*term) {
		w.put(gated("db", "p", "x"))
		w.wait(30 * time.Second)
		if got := w.heard(); len(got) > 0 {
			t.Errorf("told %q at once", got)
		}
		w.wait(10 * time.Minute)
		if got := w.heard(); !slices.Equal(got, []string{"db p Refused"}) {
			t.Errorf("told %q", got)
		}
	})
}

// A topology is changed, and a pod made, just after others of it were looked at: the pod goes by what the topology says then.
func TestAPodGoesByItsTopologyAsItIs(t *testing.T) {
	w := newWorld(t)
	w.ready()
	w.say(Event{Subnet: subnetIn("s-a", "a", "Full")})
	w.say(Event{Subnet: subnetIn("s-b", "b", "Ready")})
	w.addTopology("db", nil)
	w.in(func(f *term) {
		w.settle()
		w.put(gated("db", "p", "x")) // waits for room
		w.settle()
		w.say(Event{Topology: true})
		w.wait(20 * time.Millisecond) // a read has begun: the next one is 80 ms later
		w.wait(60 * time.Millisecond)
		w.say(Event{Subnet: subnetIn("s-a", "a", "Ready")}) // and all that wait are looked at
		synctest.Wait()
		if says := saysOf(w.pod("db", "p")); says != "db,db,a,false" {
			t.Fatalf("%s", says)
		}
		w.addTopology("db", func(t *crd.PodSubnetTopology) { t.Spec.Subnets = []crd.Source{{ID: "s-b"}} })
		w.put(gated("db", "q", "x"))
		w.settle()
		if says := saysOf(w.pod("db", "q")); says != "db,db,b,false" {
			t.Errorf("%s", says)
		}
	})
}

// The watch may tell late of a pod as it was before the patch.
func TestAPodIsPatchedOnce(t *testing.T) {
	w := newWorld(t)
	w.ready()
	w.in(func(f *term) {
		w.mu.Lock()
		w.lags = true
		w.mu.Unlock()
		p := gated("db", "p", "x")
		w.put(p)
		is, _ := PodOf(p)
		w.tell(Event{Pod: &is})
		w.settle()
		is.Version = "0"
		w.tell(Event{Pod: &is})
		w.say(Event{Namespace: &Namespace{Name: "web"}})
		w.settle()
		if w.count(&w.patches) != 1 || len(f.pods) != 1 {
			t.Errorf("%d patches, %d pods kept", w.count(&w.patches), len(f.pods))
		}
		w.wait(longestPause - 5*time.Second)
		if n := w.count(&w.patches); n != 1 {
			t.Errorf("%d patches in a minute", n)
		}
		w.wait(time.Minute) // it still has the gate: nobody knows why
		if n := w.count(&w.patches); n < 2 || n > 10 {
			t.Errorf("%d patches after a while", n)
		}
	})
}

// More pods than are patched at once, and as many events as pods: each is patched once, and few reads follow them.
func TestManyPodsShareTheReads(t *testing.T) {
	const pods = 500
	w := newWorld(t)
	w.ready()
	w.addTopology("db", nil)
	w.in(func(f *term) {
		before := w.count(&w.reads)
		for i := range pods {
			w.put(gated("db", fmt.Sprint("p", i), "x"))
		}
		w.settle()
		if n, reads := w.count(&w.patches), w.count(&w.reads)-before; n != pods || reads > 5 || len(f.pods) > 0 {
			t.Errorf("%d patches and %d reads for %d pods, %d kept", n, reads, pods, len(f.pods))
		}
	})
}

func TestATopologySaysWhetherItIsReady(t *testing.T) {
	w := newWorld(t)
	w.ready()
	w.addTopology("db", nil)
	w.addTopology("bad", func(t *crd.PodSubnetTopology) { t.Spec.Strategy.Type = "Eternal" })
	want := func(what, name, condition, zones string) {
		t.Helper()
		is := w.topology(name)
		c := conditionOf(is)
		if got := fmt.Sprint(c.Status, " ", c.Reason, " ", c.ObservedGeneration, " ", is.Status.ObservedGeneration); got != condition || fmt.Sprint(is.Status.Zones) != zones {
			t.Errorf("%s: %s has %s %v (%s)", what, name, got, is.Status.Zones, c.Message)
		}
	}
	w.in(func(*term) {
		w.settle()
		want("at first", "db", "True Ready 1 1", "[a]")
		want("at first", "bad", "False Unreadable 1 1", "[]")
		since := conditionOf(w.topology("db")).LastTransitionTime
		w.wait(time.Hour)
		if n := w.count(&w.writes); n != 2 {
			t.Errorf("%d writes, and nothing changed", n)
		}
		w.say(Event{Subnet: subnetIn("s-a", "b", "Ready")})
		w.settle()
		want("in another zone", "db", "True Ready 1 1", "[b]")
		if is := conditionOf(w.topology("db")).LastTransitionTime; !is.Equal(&since) {
			t.Errorf("ready since %s, want %s", is, since)
		}
		w.mu.Lock()
		w.refuse = func(what string) error { return map[string]error{"write": ErrConflict}[what] }
		w.mu.Unlock()
		w.say(Event{Subnet: subnetIn("s-a", "b", "Disabled")})
		w.settle()
		w.mu.Lock()
		w.refuse = nil
		w.mu.Unlock()
		w.wait(2 * longestPause)
		want("without its subnet", "db", "False NoSubnet 1 1", "[]")
		w.say(Event{Subnet: subnetIn("s-a", "b", "Ready")})
		w.settle()
		want("with it again", "db", "True Ready 1 1", "[b]")
		if diff := cmp.Diff([]string{"bad Unreadable", "db NoSubnet", "db Ready"}, w.heard()); diff != "" {
			t.Errorf("told (-want +got):\n%s", diff)
		}
	})
}
