package classify

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/topology"
)

// lines returns a patch as people read one.
func lines(t *testing.T, patch []Operation) string {
	t.Helper()
	text := ""
	for _, o := range patch {
		line, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		text += string(line) + "\n"
	}
	return text
}

func TestOnePatchClassifiesAPod(t *testing.T) {
	plain := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "db", Name: "db-0", UID: "u1"}, Spec: corev1.PodSpec{SchedulingGates: []corev1.PodSchedulingGate{{Name: Gate}}}}
	p, _ := PodOf(plain)
	if diff := cmp.Diff(`{"op":"test","path":"/metadata/uid","value":"u1"}
{"op":"test","path":"/spec/schedulingGates/0/name","value":"enipool.io/topology"}
{"op":"test","path":"/spec/affinity","value":null}
{"op":"add","path":"/spec/affinity","value":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"topology.kubernetes.io/zone","operator":"In","values":["a","b"]}]}]}}}}
{"op":"test","path":"/metadata/labels","value":null}
{"op":"add","path":"/metadata/labels","value":{"enipool.io/topology":"db"}}
{"op":"test","path":"/metadata/annotations","value":null}
{"op":"add","path":"/metadata/annotations","value":{"enipool.io/topology":"db"}}
{"op":"remove","path":"/spec/schedulingGates/0"}
`, lines(t, patchOf(p, "db", []string{"a", "b"}))); diff != "" {
		t.Errorf("a plain pod (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(`{"op":"test","path":"/metadata/uid","value":"u1"}
{"op":"test","path":"/spec/schedulingGates/0/name","value":"enipool.io/topology"}
{"op":"remove","path":"/spec/schedulingGates/0"}
`, lines(t, patchOf(p, "", nil))); diff != "" {
		t.Errorf("one of no topology (-want +got):\n%s", diff)
	}
	full := plain.DeepCopy()
	full.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "other"}, {Name: Gate}}
	full.Labels, full.Annotations = map[string]string{"a": "b"}, map[string]string{"c": "d"}
	p, _ = PodOf(full)
	text := lines(t, patchOf(p, "db", []string{"a"}))
	for _, want := range []string{`{"op":"test","path":"/spec/schedulingGates/1/name","value":"enipool.io/topology"}`, `{"op":"add","path":"/metadata/labels/enipool.io~1topology","value":"db"}`,
		`{"op":"add","path":"/metadata/annotations/enipool.io~1topology","value":"db"}`, `{"op":"remove","path":"/spec/schedulingGates/1"}`} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("%s is not in\n%s", want, text)
		}
	}
}

// A node has to match one term of an affinity, so that each one has to ask for the zones.
func TestZonesAreAskedForBesideAllElse(t *testing.T) {
	exists := func(key string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpExists}}}
	}
	byName := corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"n1"}}}}
	zone := corev1.NodeSelectorRequirement{Key: "topology.kubernetes.io/zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}
	with := func(term corev1.NodeSelectorTerm) corev1.NodeSelectorTerm {
		term.MatchExpressions = append(term.MatchExpressions, zone)
		return term
	}
	required := func(terms ...corev1.NodeSelectorTerm) *corev1.NodeAffinity {
		return &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}
	}
	apart, preferred := &corev1.PodAntiAffinity{}, []corev1.PreferredSchedulingTerm{{Weight: 1, Preference: exists("ssd")}}
	for _, tt := range []struct {
		what     string
		is, want *corev1.Affinity
	}{
		{"none", nil, &corev1.Affinity{NodeAffinity: required(with(corev1.NodeSelectorTerm{}))}},
		{"of pods alone", &corev1.Affinity{PodAntiAffinity: apart}, &corev1.Affinity{PodAntiAffinity: apart, NodeAffinity: required(with(corev1.NodeSelectorTerm{}))}},
		{"that prefers alone", &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: preferred}},
			&corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: preferred,
				RequiredDuringSchedulingIgnoredDuringExecution: required(with(corev1.NodeSelectorTerm{})).RequiredDuringSchedulingIgnoredDuringExecution}}},
		{"of two terms", &corev1.Affinity{NodeAffinity: required(exists("x"), byName)}, &corev1.Affinity{NodeAffinity: required(with(exists("x")), with(byName))}},
		{"with a term that matches nothing", &corev1.Affinity{NodeAffinity: required(corev1.NodeSelectorTerm{}, exists("x"))},
			&corev1.Affinity{NodeAffinity: required(corev1.NodeSelectorTerm{}, with(exists("x")))}},
	} {
		before := tt.is.DeepCopy()
		if diff := cmp.Diff(tt.want, inZones(tt.is, []string{"a"})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.what, diff)
		}
		if diff := cmp.Diff(before, tt.is); diff != "" {
			t.Errorf("%s was changed itself:\n%s", tt.what, diff)
		}
	}
}

func TestWhoseGateThereIs(t *testing.T) {
	p := gated("db", "db-0", "x")
	yes := true
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Other", Name: "o"}, {APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db", UID: "s1", Controller: &yes}}
	is, has := PodOf(p)
	want := Pod{Pod: topology.Pod{Namespace: "db", Name: "db-0", UID: "uid-db-0", Labels: map[string]string{"app": "x"}, StatefulSet: topology.Workload{Name: "db", UID: "s1"}}, gateAt: 1}
	if diff := cmp.Diff(want, is, cmp.AllowUnexported(Pod{})); diff != "" || !has {
		t.Errorf("%t (-want +got):\n%s", has, diff)
	}
	p.OwnerReferences[1].APIVersion = "example.com/v1" // a StatefulSet of somebody else's
	if is, _ := PodOf(p); is.StatefulSet.Name != "" {
		t.Errorf("%+v", is.StatefulSet)
	}
	deleted := p.DeepCopy()
	deleted.DeletionTimestamp = &metav1.Time{}
	if _, has := PodOf(deleted); has {
		t.Error("a pod that is being deleted waits for an address")
	}
	p.Spec.SchedulingGates = p.Spec.SchedulingGates[:1]
	if _, has := PodOf(p); has {
		t.Error("a pod without the gate has it")
	}
}

// BenchmarkClassify is the decision on one pod, of 32 topologies with 1,000 claims each.
func BenchmarkClassify(b *testing.B) {
	k := benchKnown(b)
	for _, tt := range []struct {
		name, pod string
		alike     bool
	}{{"the first of its kind", "new", false}, {"another of it", "new", true}, {"one with a claim", "p-7-1", true}} {
		b.Run(tt.name, func(b *testing.B) {
			p := topology.Pod{Namespace: "db", Name: tt.pod, UID: "u", Labels: map[string]string{"app": "a-7"}}
			for b.Loop() {
				if !tt.alike {
					k.forget()
				}
				if answer, is := k.classify(p); !is || len(answer.class.Zones) != 1 {
					b.Fatalf("%+v", answer)
				}
			}
		})
	}
}

// benchKnown returns what is known of 32 topologies with 1,000 claims each.
func benchKnown(b *testing.B) *known {
	b.Helper()
	k := &newTerm(Options{Families: []eni.Family{eni.IPv4}}).known
	k.namespaces["db"] = Namespace{Labels: map[string]string{"name": "db"}}
	var list []*crd.PodSubnetTopology
	for i := range 32 {
		s := subnetIn(fmt.Sprint("s-", i), fmt.Sprint("zone-", i%3), "Ready")
		s.Status.V4 = fmt.Sprintf("10.%d.0.0/20", i)
		if _, err := k.takeSubnet(s, false); err != nil {
			b.Fatal(err)
		}
		list = append(list, &crd.PodSubnetTopology{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("t-", i), UID: types.UID(fmt.Sprint(i))}, Spec: crd.TopologySpec{
			PodSelector: crd.Selector{MatchLabels: map[string]string{"app": fmt.Sprint("a-", i)}}, Subnets: []crd.Source{{ID: s.Name}}, Strategy: crd.Strategy{Type: "Sticky"}}})
		for n := range 1000 {
			address := fmt.Sprintf("10.%d.%d.%d", i, n/250, n%250+5)
			if _, err := k.takeClaim(&crd.AddressClaim{ObjectMeta: metav1.ObjectMeta{Name: address}, Spec: crd.ClaimSpec{Topology: fmt.Sprint("t-", i), Subnet: s.Name, Address: address,
				Namespace: "db", Pod: fmt.Sprint("p-", i, "-", n), Keep: "TTL", TTL: "1h"}}, false); err != nil {
				b.Fatal(err)
			}
		}
	}
	k.takeTopologies(list)
	return k
}
