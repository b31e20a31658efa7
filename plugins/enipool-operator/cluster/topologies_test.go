package cluster

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator"
	"github.com/enipool/enipool/pkg/operator/classify"
)

// gates is a real API server with the policy that gates pods, and who is told what.
type gates struct {
	*testing.T
	config *rest.Config
	client.Client
	operator string // who classifies pods, "" for the one who may do all
	mu       sync.Mutex
	notices  []string
	requests map[string]int
	bytes    int64 // of patches
}

func newGates(t *testing.T) *gates {
	g := &gates{T: t, config: server(t, kinds, topologyKinds), requests: map[string]int{}}
	g.config.QPS, g.config.Burst = 200, 400 // as the program has it
	o, err := New(g.config, slog.New(slog.DiscardHandler))
	must(t, err)
	g.Client = o.client
	g.apply("gate.yaml")
	for name, labels := range map[string]map[string]string{"db": {"enipool.io/topologies": "enabled", "team": "db"}, "web": nil} {
		must(t, g.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}))
	}
	soon(t, "pods are gated", func() error {
		p := pod("db", "try", nil)
		err := g.Create(t.Context(), p, client.DryRunAll)
		if err == nil && len(p.Spec.SchedulingGates) == 0 {
			err = errors.New("not yet")
		}
		return err
	})
	return g
}

func pod(namespace, name string, change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "none:1"}}}}
	if change != nil {
		change(p)
	}
	return p
}

// run classifies pods until the test ends, or until what it returns is called.
func (g *gates) run() (stop func()) {
	g.Helper()
	config := rest.CopyConfig(g.config)
	config.Impersonate.UserName = g.operator
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			g.mu.Lock()
			g.requests[r.Method+" "+r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]]++
			if r.Method == http.MethodPatch {
				g.requests["patches"]++
				g.bytes += r.ContentLength
			}
			g.mu.Unlock()
			return next.RoundTrip(r)
		})
	})
	objects, err := NewTopologies(config, slog.New(slog.DiscardHandler))
	must(g.T, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		classify.Run(ctx, classify.Options{Objects: objects, Families: []eni.Family{eni.IPv4}, Log: slog.New(slog.DiscardHandler), Clock: operator.Wall{},
			ZoneLabels: func(zone string) (operator.ZoneLabels, bool) {
				return operator.ZoneLabels{Values: []string{zone}, Seen: true}, true
			},
			Tell: func(n operator.Notice) {
				g.mu.Lock()
				defer g.mu.Unlock()
				g.notices = append(g.notices, n.Kind+" "+n.Name+" "+n.Reason)
			}})
	}()
	stop = func() { cancel(); <-ended }
	g.Cleanup(stop)
	return stop
}

// subnet makes one, as an operator tells of it.
func (g *gates) subnet(name, zone, state string) {
	g.Helper()
	s := &crd.Subnet{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: crd.SubnetSpec{Use: "Exclusive"}}
	must(g.T, g.Create(g.Context(), s))
	s.Status.Zone, s.Status.State, s.Status.V4 = zone, state, "10.0.0.0/24"
	must(g.T, g.Status().Update(g.Context(), s))
}

// classified waits until a pod has no gate, and returns its topology and terms.
func (g *gates) classified(namespace, name string) (p *corev1.Pod, of string) {
	g.Helper()
	p = &corev1.Pod{}
	soon(g.T, name+" is classified", func() error {
		err := g.Get(g.Context(), client.ObjectKey{Namespace: namespace, Name: name}, p)
		if err == nil && len(p.Spec.SchedulingGates) > 0 {
			err = fmt.Errorf("gates %v", p.Spec.SchedulingGates)
		}
		return err
	})
	if p.Labels[classify.Gate] != p.Annotations[classify.Gate] {
		g.Errorf("%s has the label %q and the annotation %q", name, p.Labels[classify.Gate], p.Annotations[classify.Gate])
	}
	return p, p.Annotations[classify.Gate]
}

// zonesOf returns the requirements of each term that a node has to match.
func zonesOf(p *corev1.Pod) string {
	text := ""
	if a := p.Spec.Affinity; a != nil && a.NodeAffinity != nil {
		for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			for _, e := range term.MatchExpressions {
				text += e.Key + "=" + strings.Join(e.Values, "+") + " "
			}
			text += "; "
		}
	}
	return text
}

// From the policy to the patch, on a real API server.
func TestPodsOfANamespaceAreGatedAndClassified(t *testing.T) {
	g := newGates(t)
	g.subnet("s-a", "zone-a", "Ready")
	stop := g.run()
	must(t, g.Create(t.Context(), &crd.PodSubnetTopology{ObjectMeta: metav1.ObjectMeta{Name: "db"}, Spec: crd.TopologySpec{
		NamespaceSelector: crd.Selector{MatchLabels: map[string]string{"team": "db"}}, PodSelector: crd.Selector{MatchExpressions: []crd.Requirement{{Key: "free", Operator: "DoesNotExist"}}},
		Subnets: []crd.Source{{ID: "s-a"}, {ID: "s-b"}}, Strategy: crd.Strategy{Type: "Elastic"}}}))
	// At once: the watch of topologies may not have told of it.
	must(t, g.Create(t.Context(), pod("db", "plain", nil)))
	must(t, g.Create(t.Context(), pod("db", "picky", func(p *corev1.Pod) {
		p.Labels = map[string]string{"a": "b"}
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
			{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "disk", Operator: corev1.NodeSelectorOpIn, Values: []string{"ssd"}}}},
			{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"n1"}}}}}}}}
	})))
	must(t, g.Create(t.Context(), pod("db", "free", func(p *corev1.Pod) { p.Labels = map[string]string{"free": "yes"} })))
	must(t, g.Create(t.Context(), pod("web", "other", nil)))
	must(t, g.Create(t.Context(), pod("web", "template", func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: classify.Gate}} })))
	const zone = "topology.kubernetes.io/zone=zone-a "
	for _, tt := range []struct{ namespace, name, of, zones string }{
		{"db", "plain", "db", zone + "; "}, {"db", "picky", "db", "disk=ssd " + zone + "; " + zone + "; "}, {"db", "free", "", ""}, {"web", "template", "", ""}, {"web", "other", "", ""},
	} {
		p, of := g.classified(tt.namespace, tt.name)
		if of != tt.of || zonesOf(p) != tt.zones {
			t.Errorf("%s: topology %q with zones %q, want %q with %q", tt.name, of, zonesOf(p), tt.of, tt.zones)
		}
	}
	var is crd.PodSubnetTopology
	soon(t, "the topology is ready", func() error {
		err := g.Get(t.Context(), client.ObjectKey{Name: "db"}, &is)
		if err == nil && (len(is.Status.Conditions) != 1 || is.Status.Conditions[0].Status != metav1.ConditionTrue || !slices.Equal(is.Status.Zones, []string{"zone-a"})) {
			err = fmt.Errorf("%+v", is.Status)
		}
		return err
	})
	g.waits(&is)
	stop()
	g.races()
	if g.requests["patches"] != 5 { // of four pods and, once it had room, of the fifth
		t.Errorf("%d patches", g.requests["patches"])
	}
}

// waits checks that a pod waits while its topology has no subnet, which people are told once, and goes on then.
func (g *gates) waits(of *crd.PodSubnetTopology) {
	g.Helper()
	of.Spec.Subnets = []crd.Source{{ID: "s-b"}}
	must(g.T, g.Update(g.Context(), of))
	soon(g.T, "the topology is not ready", func() error {
		g.mu.Lock()
		defer g.mu.Unlock()
		if !slices.Contains(g.notices, "PodSubnetTopology db NoSubnet") {
			return fmt.Errorf("%q", g.notices)
		}
		return nil
	})
	must(g.T, g.Create(g.Context(), pod("db", "late", nil)))
	soon(g.T, "people are told of the pod", func() error {
		g.mu.Lock()
		defer g.mu.Unlock()
		if !slices.Contains(g.notices, "Pod late TopologyNotReady") {
			return fmt.Errorf("%q", g.notices)
		}
		return nil
	})
	g.subnet("s-b", "zone-b", "Ready")
	if p, of := g.classified("db", "late"); of != "db" || zonesOf(p) != "topology.kubernetes.io/zone=zone-b ; " {
		g.Errorf("topology %q with zones %q", of, zonesOf(p))
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, n := range g.notices {
		if slices.Contains(g.notices[:i], n) {
			g.Errorf("told twice: %q", g.notices)
		}
	}
}

// races checks what a patch comes to that is decided from what was.
func (g *gates) races() {
	g.Helper()
	objects, err := NewTopologies(g.config, slog.New(slog.DiscardHandler))
	must(g.T, err)
	uid := func(p *corev1.Pod) []classify.Operation {
		return []classify.Operation{{Op: "test", Path: "/metadata/uid", Value: p.UID}, {Op: "test", Path: "/spec/schedulingGates/0/name", Value: classify.Gate},
			{Op: "remove", Path: "/spec/schedulingGates/0"}}
	}
	was := pod("db", "again", nil)
	must(g.T, g.Create(g.Context(), was))
	must(g.T, g.Delete(g.Context(), was, client.GracePeriodSeconds(0)))
	if err := objects.PatchPod(g.Context(), "db", "again", uid(was)); !errors.Is(err, classify.ErrGone) {
		g.Errorf("a pod that is gone: %v", err)
	}
	is := pod("db", "again", nil)
	must(g.T, g.Create(g.Context(), is))
	if err := objects.PatchPod(g.Context(), "db", "again", uid(was)); !errors.Is(err, classify.ErrConflict) {
		g.Errorf("another pod of the name: %v", err)
	}
	wrong := append(uid(is), classify.Operation{Op: "add", Path: "/metadata/labels", Value: map[string]string{"a": "no value of a label"}})
	if err := objects.PatchPod(g.Context(), "db", "again", wrong); err == nil || errors.Is(err, classify.ErrConflict) || errors.Is(err, classify.ErrGone) {
		g.Errorf("what the API server does not take: %v", err)
	}
	must(g.T, objects.PatchPod(g.Context(), "db", "again", uid(is)))
	if err := objects.PatchPod(g.Context(), "db", "again", uid(is)); !errors.Is(err, classify.ErrConflict) {
		g.Errorf("a pod without a gate: %v", err)
	}
	list, err := objects.ReadTopologies(g.Context())
	must(g.T, err)
	old := list[0].DeepCopy()
	list[0].Status.Zones = []string{"elsewhere"}
	must(g.T, objects.WriteTopology(g.Context(), list[0]))
	old.Status.Zones = []string{"nowhere"}
	if err := objects.WriteTopology(g.Context(), old); !errors.Is(err, classify.ErrConflict) {
		g.Errorf("an old copy of a topology: %v", err)
	}
}

var gatedPods = flag.Int("gated-pods", 20, "how many pods TestABurstOfPodsCostsOnePatchEach makes")

// What a pod costs: one patch. With -v and more pods it tells how long a burst takes on a real API server.
func TestABurstOfPodsCostsOnePatchEach(t *testing.T) {
	pods := *gatedPods
	g := newGates(t)
	g.subnet("s-a", "zone-a", "Ready")
	must(t, g.Create(t.Context(), &crd.PodSubnetTopology{ObjectMeta: metav1.ObjectMeta{Name: "db"}, Spec: crd.TopologySpec{Subnets: []crd.Source{{ID: "s-a"}}, Strategy: crd.Strategy{Type: "Elastic"}}}))
	for i := range pods {
		must(t, g.Create(t.Context(), pod("db", fmt.Sprint("p", i), nil)))
	}
	began := time.Now()
	g.run()
	for i := range pods {
		if _, of := g.classified("db", fmt.Sprint("p", i)); of != "db" {
			t.Errorf("p%d has the topology %q", i, of)
		}
	}
	took := time.Since(began)
	g.mu.Lock()
	defer g.mu.Unlock()
	t.Logf("%d pods in %s, %.1f ms each; %d patches of %d bytes, %d reads of topologies", pods, took.Round(time.Millisecond), float64(took.Microseconds())/1000/float64(pods),
		g.requests["patches"], g.bytes/int64(max(1, g.requests["patches"])), g.requests["GET podsubnettopologies"])
	if g.requests["patches"] != pods {
		t.Errorf("%d patches for %d pods", g.requests["patches"], pods)
	}
}
