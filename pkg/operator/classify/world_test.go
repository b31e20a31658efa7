package classify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator"
	"github.com/enipool/enipool/pkg/topology"
)

// world is an API server, as much as a flow sees of it.
type world struct {
	t          *testing.T
	mu         sync.Mutex
	version    int
	pods       map[key]*corev1.Pod
	topologies map[string]*crd.PodSubnetTopology
	first      []Event // told when the watch begins
	tell       func(Event)
	lags       bool // the watch tells of no pod and no topology
	before     func(name string)
	refuse     func(what string) error

	patches, reads, writes int
	notices                []string
	labels                 map[string][]string // of zones, nil: each has its own name
	counts                 map[string]topology.Count
	unknown                bool // whether they are is not known
	nodeless               bool // no Node was seen in any zone
	namespaces             map[string]Namespace
	deaf                   bool                     // the watch tells of no namespace
	hang                   map[string]chan struct{} // patches in a namespace end when it is closed
	flying, most           map[string]int           // patches under way, and the most that there were, by namespace
}

func newWorld(t *testing.T) *world {
	return &world{t: t, pods: map[key]*corev1.Pod{}, topologies: map[string]*crd.PodSubnetTopology{}, namespaces: map[string]Namespace{},
		hang: map[string]chan struct{}{}, flying: map[string]int{}, most: map[string]int{}}
}

// in runs a flow in the world, in a time of its own.
func (w *world) in(body func(f *term)) {
	w.t.Helper()
	synctest.Test(w.t, func(*testing.T) {
		f := newTerm(Options{Objects: w, Families: []eni.Family{eni.IPv4}, Log: slog.New(slog.DiscardHandler), Clock: operator.Wall{},
			Tell: func(n operator.Notice) {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.notices = append(w.notices, strings.TrimLeft(fmt.Sprint(n.Namespace, " ", n.Name, " ", n.Reason), " "))
			},
			CountOf: func(topology string) (topology.Count, bool) {
				w.mu.Lock()
				defer w.mu.Unlock()
				c, known := w.counts[topology]
				return c, known
			},
			ZoneLabels: func(zone string) (operator.ZoneLabels, bool) {
				w.mu.Lock()
				defer w.mu.Unlock()
				if list, has := w.labels[zone]; has {
					return operator.ZoneLabels{Values: list, Seen: len(list) > 0 && !w.nodeless}, !w.unknown
				}
				return operator.ZoneLabels{Values: []string{zone}, Seen: !w.nodeless}, !w.unknown
			}})
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() { defer close(ended); f.run(ctx) }()
		synctest.Wait()
		body(f)
		stop()
		<-ended
	})
}

// settle lets all come to rest.
func (w *world) settle() { w.wait(2 * time.Second) }

func (w *world) wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (w *world) Watch(ctx context.Context, tell func(Event)) {
	w.mu.Lock()
	w.tell = tell
	first := w.first
	w.mu.Unlock()
	for _, e := range first {
		tell(e)
	}
	<-ctx.Done()
}

// say tells of a change.
func (w *world) say(e Event) {
	w.mu.Lock()
	if n := e.Namespace; n != nil && n.Version == "" {
		w.version++
		n.Version = strconv.Itoa(w.version)
		w.namespaces[n.Name] = *n
	}
	tell, silent := w.tell, w.lags && (e.Pod != nil || e.Topology) || w.deaf && e.Namespace != nil
	if tell == nil {
		w.first = append(w.first, e)
	}
	w.mu.Unlock()
	if tell != nil && !silent {
		tell(e)
	}
}

func (w *world) refused(what string) error {
	if w.refuse == nil {
		return nil
	}
	return w.refuse(what)
}

func (w *world) ReadTopologies(context.Context) (list []*crd.PodSubnetTopology, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reads++
	for _, t := range w.topologies {
		list = append(list, t.DeepCopy())
	}
	slices.SortFunc(list, func(a, b *crd.PodSubnetTopology) int { return strings.Compare(a.Name, b.Name) })
	return list, w.refused("read")
}

func (w *world) ReadNamespaces(_ context.Context, names []string) (list []Namespace, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range names {
		if n, is := w.namespaces[name]; is {
			list = append(list, n)
		}
	}
	return list, w.refused("namespaces")
}

// fly notes a patch that begins, and waits as long as patches of its namespace hang.
func (w *world) fly(ctx context.Context, namespace string, by int) error {
	w.mu.Lock()
	w.flying[namespace] += by
	w.most[namespace] = max(w.most[namespace], w.flying[namespace])
	hang := w.hang[namespace]
	w.mu.Unlock()
	if by < 0 || hang == nil {
		return nil
	}
	select {
	case <-hang:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *world) PatchPod(ctx context.Context, namespace, name string, patch []Operation) error {
	if w.before != nil {
		w.before(name)
	}
	defer w.fly(ctx, namespace, -1)
	if err := w.fly(ctx, namespace, 1); err != nil {
		return err
	}
	w.mu.Lock()
	w.patches++
	p, is := w.pods[key{namespace, name}]
	err := w.refused("patch")
	w.mu.Unlock()
	if err != nil {
		return err
	}
	if !is {
		return ErrGone
	}
	text, _ := json.Marshal(patch)
	steps, err := jsonpatch.DecodePatch(text)
	if err != nil {
		return err
	}
	object, _ := json.Marshal(p)
	if object, err = steps.Apply(object); err != nil {
		return fmt.Errorf("%w: %w", ErrConflict, err)
	}
	next := &corev1.Pod{}
	if err := json.Unmarshal(object, next); err != nil {
		return err
	}
	w.put(next)
	return nil
}

func (w *world) WriteTopology(_ context.Context, t *crd.PodSubnetTopology) error {
	w.mu.Lock()
	w.writes++
	is, there := w.topologies[t.Name]
	err := w.refused("write")
	switch {
	case err != nil:
	case !there:
		err = ErrGone
	case is.ResourceVersion != t.ResourceVersion:
		err = ErrConflict
	}
	if err == nil {
		w.version++
		next := t.DeepCopy()
		next.ResourceVersion = strconv.Itoa(w.version)
		w.topologies[t.Name] = next
	}
	w.mu.Unlock()
	if err == nil {
		w.say(Event{Topology: true})
	}
	return err
}

// put stores a pod, and tells of it.
func (w *world) put(p *corev1.Pod) {
	w.mu.Lock()
	w.version++
	p.ResourceVersion = strconv.Itoa(w.version)
	w.pods[key{p.Namespace, p.Name}] = p
	w.mu.Unlock()
	is, gated := PodOf(p)
	w.say(Event{Pod: &is, Deleted: !gated})
}

// remove deletes a pod.
func (w *world) remove(p *corev1.Pod) {
	w.mu.Lock()
	delete(w.pods, key{p.Namespace, p.Name})
	w.mu.Unlock()
	is, _ := PodOf(p)
	w.say(Event{Pod: &is, Deleted: true})
}

func (w *world) pod(namespace, name string) *corev1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pods[key{namespace, name}].DeepCopy()
}

// addTopology stores a topology, and tells of it.
func (w *world) addTopology(name string, change func(*crd.PodSubnetTopology)) {
	w.mu.Lock()
	w.version++
	t := &crd.PodSubnetTopology{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1, ResourceVersion: strconv.Itoa(w.version), CreationTimestamp: metav1.NewTime(time.Unix(1_800_000_000, 0))},
		Spec: crd.TopologySpec{Subnets: []crd.Source{{ID: "s-a"}}, Strategy: crd.Strategy{Type: "Elastic"}}}
	if change != nil {
		change(t)
	}
	w.topologies[name] = t
	w.mu.Unlock()
	w.say(Event{Topology: true})
}

func (w *world) topology(name string) *crd.PodSubnetTopology {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.topologies[name].DeepCopy()
}

func (w *world) count(what *int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return *what
}

func (w *world) heard() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.notices)
}

// subnetIn is one of a zone, as the operator tells of it.
func subnetIn(id, zone, state string) *crd.Subnet {
	return &crd.Subnet{ObjectMeta: metav1.ObjectMeta{Name: id}, Spec: crd.SubnetSpec{Use: "Exclusive"}, Status: crd.SubnetStatus{Zone: zone, State: state, V4: "10.0.0.0/24"}}
}

// ready tells of namespaces db and web, a subnet in zone a, and that this is all.
func (w *world) ready() {
	for _, name := range []string{"db", "web"} {
		w.say(Event{Namespace: &Namespace{Name: name, Labels: map[string]string{"name": name}}})
	}
	w.say(Event{Subnet: subnetIn("s-a", "a", "Ready")})
	w.say(Event{Complete: true})
}

// gated is a pod as admission lets it through.
func gated(namespace, name, app string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{"app": app}},
		Spec: corev1.PodSpec{SchedulingGates: []corev1.PodSchedulingGate{{Name: "example.com/quota"}, {Name: Gate}}}}
}

// saysOf returns what was written on a pod: its topology by label and annotation, its zones, and whether the gate is there.
func saysOf(p *corev1.Pod) string {
	_, waits := PodOf(p)
	zones := ""
	if a := p.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			for _, e := range term.MatchExpressions {
				if e.Key == corev1.LabelTopologyZone {
					zones += strings.Join(e.Values, "+")
				}
			}
		}
	}
	return fmt.Sprintf("%s,%s,%s,%t", p.Labels[Gate], p.Annotations[Gate], zones, waits)
}

var errDown = errors.New("the API server is away")
