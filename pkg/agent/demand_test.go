package agent

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nodecache"
	"pgregory.net/rapid"
)

// at is the time of these tests, since boot.
const at = time.Hour

// looker is an agent that only looks.
func looker(waiting []nodecache.PendingADD, pods func() ([]eni.Pod, bool)) *Agent {
	return &Agent{outlook: outlook{known: newPodSet()}, Parts: Parts{Cluster: Cluster{Pods: pods},
		PendingADDs: func(time.Duration) ([]nodecache.PendingADD, error) { return waiting, nil }}}
}

func sandboxOf(container, namespace, name, uid string) eni.Owner {
	return eni.Owner{Key: eni.Key{Network: "pods", Container: container, IfName: "eth0"}, Namespace: namespace, Pod: name, UID: uid}
}

// cacheWith has an address for each owner, and n others in a state.
func cacheWith(owners []eni.Owner, n int, state eni.State) *ipam.State {
	b := &ipam.State{Settings: ipam.Settings{Families: []eni.Family{eni.IPv4}, CoolDown: 30 * time.Second}}
	next := netip.MustParseAddr("10.0.0.1")
	for i := range len(owners) + n {
		line := eni.Address{Addr: next, State: state, Since: at - time.Second}
		if i < len(owners) {
			line.State, line.Owner = eni.Used, &owners[i]
		}
		b.Addresses = append(b.Addresses, line)
		next = next.Next()
	}
	return b
}

// clusterTells is what is heard where there is a cluster.
func clusterTells(waiting []nodecache.PendingADD, pods []eni.Pod) heard {
	return heard{waiting: waiting, pods: pods, watched: true, synced: true}
}

func TestEachPodCountsOnce(t *testing.T) {
	a, b := eni.Pod{UID: "a1", Namespace: "default", Name: "a"}, eni.Pod{UID: "b1", Namespace: "default", Name: "b"}
	again := eni.Pod{UID: "a2", Namespace: "default", Name: "a"}
	box := func(container string, p eni.Pod) eni.Owner { return sandboxOf(container, p.Namespace, p.Name, p.UID) }
	wait := func(since time.Duration, owners ...eni.Owner) (list []nodecache.PendingADD) {
		for _, o := range owners {
			list = append(list, nodecache.PendingADD{Owner: o, Since: since})
		}
		return list
	}
	known := newPodSet() // one for all: what is left in it is not seen by the next
	for _, tt := range []struct {
		name    string
		owners  []eni.Owner
		waiting []nodecache.PendingADD
		pods    []eni.Pod
		want    int // in all
		bound   int // of them: pods that were heard of from the cluster alone
	}{
		{"nothing", nil, nil, nil, 0, 0},
		{"pods that were bound just now", nil, nil, []eni.Pod{a, b}, 2, 2},
		{"pods with their addresses", []eni.Owner{box("1", a), box("2", b)}, nil, []eni.Pod{a, b}, 2, 0},
		{"one with, one without", []eni.Owner{box("1", a)}, nil, []eni.Pod{a, b}, 2, 1},
		{"a record whose pod is gone", []eni.Owner{box("1", a), box("2", b)}, nil, []eni.Pod{b}, 2, 0},
		{"two sandboxes of one pod", []eni.Owner{box("1", a), box("2", a)}, nil, []eni.Pod{a}, 2, 0},
		{"two sandboxes of one pod, the second waits", []eni.Owner{box("1", a)}, wait(at+1, box("2", a)), []eni.Pod{a}, 2, 0},
		{"an ADD that waits is its pod", nil, wait(at, box("1", a)), []eni.Pod{a, b}, 2, 1},
		{"an ADD of a pod that the watch has not seen", nil, wait(at, box("1", a)), []eni.Pod{b}, 2, 1},
		{"made anew under the old name", []eni.Owner{box("1", a)}, nil, []eni.Pod{again}, 2, 1},
		{"made anew, the old one is in the watch yet", []eni.Owner{box("1", a)}, nil, []eni.Pod{a, again}, 2, 1},
		{"made anew and served, the old record is gone", []eni.Owner{box("2", again)}, nil, []eni.Pod{again}, 1, 0},
		{"a runtime that tells no UID", []eni.Owner{sandboxOf("1", "default", "a", "")}, nil, []eni.Pod{a, b}, 2, 1},
		{"a runtime that tells no UID, waiting", nil, wait(at, sandboxOf("1", "default", "a", "")), []eni.Pod{a, b}, 2, 1},
		{"the name in another namespace", []eni.Owner{sandboxOf("1", "other", "a", "")}, nil, []eni.Pod{a}, 2, 1},
		{"an owner without a pod", []eni.Owner{sandboxOf("1", "", "", "")}, nil, []eni.Pod{a}, 2, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, _ := demandOf(cacheWith(tt.owners, 1, eni.Free), clusterTells(tt.waiting, tt.pods), 0, at, known)
			if d.total != tt.want || d.bound != tt.bound || d.free != 1 || d.partial {
				t.Errorf("%+v; want %d in all, %d bound", d, tt.want, tt.bound)
			}
		})
	}
}

func TestWhatTheClusterHasNotToldIsNotGuessed(t *testing.T) {
	pods := []eni.Pod{{UID: "a", Name: "a"}}
	for _, tt := range []struct {
		name string
		pods func() ([]eni.Pod, bool)
		want demand
	}{
		{"no cluster", nil, demand{total: 2, waiting: 1}},
		{"not told yet", func() ([]eni.Pod, bool) { return pods, false }, demand{total: 2, waiting: 1, watched: true, partial: true}},
		{"told", func() ([]eni.Pod, bool) { return pods, true }, demand{total: 3, waiting: 1, bound: 1, pods: 1, watched: true, synced: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			waiting := []nodecache.PendingADD{{Owner: sandboxOf("2", "default", "w", "w"), Since: at}}
			h, err := looker(waiting, tt.pods).listen(at)
			if err != nil {
				t.Fatal(err)
			}
			d, _ := demandOf(cacheWith([]eni.Owner{sandboxOf("1", "default", "x", "x")}, 0, eni.Free), h, 0, at, newPodSet())
			tt.want.assigned, tt.want.used, tt.want.owned = 1, 1, 1
			if d != tt.want {
				t.Errorf("%+v\nwant %+v", d, tt.want)
			}
			o := d.observation(57, 57)
			if o.Valid == tt.want.partial || o.Assigned < 1 || tt.want.partial && o.Assigned != 2 {
				t.Errorf("observation %+v", o)
			}
		})
	}
}

// is tells whether the sandbox is the pod's, as the rule says: by the UID, or where
// the runtime told none by the name.
func is(o eni.Owner, p eni.Pod) bool {
	if o.UID != "" {
		return o.UID == p.UID
	}
	return o.Namespace == p.Namespace && o.Pod == p.Name
}

func TestTheDemandIsTheUnionByItsPlainDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pick := func(what string, from ...string) string { return rapid.SampledFrom(from).Draw(t, what) }
		owner := func(i int) eni.Owner {
			return sandboxOf(fmt.Sprint(i), pick("namespace", "x", "y"), pick("pod", "a", "b", "c"), pick("uid", "", "1", "2", "3", "4"))
		}
		var owners []eni.Owner
		for i := range rapid.IntRange(0, 6).Draw(t, "owners") {
			owners = append(owners, owner(i))
		}
		var waiting []nodecache.PendingADD
		for i := range rapid.IntRange(0, 4).Draw(t, "waiting") {
			waiting = append(waiting, nodecache.PendingADD{Owner: owner(100 + i), Since: at}) // after every record began
		}
		var pods []eni.Pod
		for range rapid.IntRange(0, 6).Draw(t, "pods") {
			pods = append(pods, eni.Pod{UID: pick("uid", "1", "2", "3", "4", "5"), Namespace: pick("namespace", "x", "y"), Name: pick("pod", "a", "b", "c")})
		}
		resting := rapid.IntRange(0, 3).Draw(t, "resting")
		want := len(owners) + len(waiting) + resting
		for _, p := range pods {
			known := false
			for _, o := range owners {
				known = known || is(o, p)
			}
			for _, w := range waiting {
				known = known || is(w.Owner, p)
			}
			if !known {
				want++
			}
		}
		known := newPodSet()
		for range 2 { // what one look leaves in the set is not seen by the next
			d, _ := demandOf(cacheWith(owners, resting, eni.Cooling), clusterTells(waiting, pods), 0, at, known)
			if d.total != want || d.total < len(owners) || d.assigned != len(owners)+resting {
				t.Fatalf("%+v; want %d", d, want)
			}
		}
	})
}

func TestOnlyWhatHasRestedInTimeCounts(t *testing.T) {
	b := cacheWith(nil, 3, eni.Cooling)
	b.Addresses[0].Since = at - 30*time.Second // has rested
	b.Addresses[1].Since = at - 20*time.Second // in ten seconds
	for within, want := range map[time.Duration]int{time.Second: 0, 10 * time.Second: 1, 29 * time.Second: 2} {
		if got := restedWithin(b, at, within); got != want {
			t.Errorf("within %s: %d, want %d", within, got, want)
		}
	}
}

// BenchmarkDemand is what the pods of the cluster add to a tick: 250 of them, all with
// an address.
func BenchmarkDemand(b *testing.B) {
	var owners []eni.Owner
	var pods []eni.Pod
	for i := range 250 {
		p := eni.Pod{UID: fmt.Sprintf("7d2c1f0e-5b1a-4f6e-9c3d-%012d", i), Namespace: "default", Name: fmt.Sprintf("web-%d", i)}
		pods = append(pods, p)
		owners = append(owners, sandboxOf(fmt.Sprint(i), p.Namespace, p.Name, p.UID))
	}
	cached := cacheWith(owners, 70, eni.Free)
	for name, source := range map[string]func() ([]eni.Pod, bool){"alone": nil, "with the cluster": func() ([]eni.Pod, bool) { return pods, true }} {
		b.Run(name, func(b *testing.B) {
			a := looker(nil, source)
			b.ReportAllocs()
			for b.Loop() {
				h, err := a.listen(at)
				if err != nil {
					b.Fatal(err)
				}
				demandOf(cached, h, 0, at, a.known)
			}
		})
	}
}
