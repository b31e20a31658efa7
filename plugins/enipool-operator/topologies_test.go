package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/enipool/enipool/pkg/kube/crd"
)

// addGated makes a pod whose template has the gate.
func (b *bed) addGated(name, app string) {
	b.Helper()
	b.must(b.objects.Create(context.Background(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "db", Name: name, Labels: map[string]string{"app": app}},
		Spec: corev1.PodSpec{SchedulingGates: []corev1.PodSchedulingGate{{Name: "enipool.io/topology"}}, Containers: []corev1.Container{{Name: "c", Image: "none:1"}}}}))
}

func (b *bed) pod(name string) *corev1.Pod {
	b.Helper()
	p := &corev1.Pod{}
	b.must(b.objects.Get(context.Background(), client.ObjectKey{Namespace: "db", Name: name}, p))
	return p
}

// The program classifies pods where operator.yaml says so, with the rights that its roles have, and leaves them alone where it does not.
func TestAnOperatorClassifiesPodsIfItIsTold(t *testing.T) {
	b := newBed(t)
	b.Kubectl("apply", "--server-side", "--kustomize=../../conf/kubernetes/topologies")
	b.Kubectl("wait", "--for=condition=Established", "crd/podsubnettopologies.enipool.io", "crd/addressclaims.enipool.io")
	ctx := context.Background()
	b.must(b.objects.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "db"}}))
	b.must(b.objects.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "db", Name: "default"}}))
	for name, subnet := range map[string]string{"x": "subnet-a", "y": "subnet-none"} {
		b.must(b.objects.Create(ctx, &crd.PodSubnetTopology{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: crd.TopologySpec{
			PodSelector: crd.Selector{MatchLabels: map[string]string{"app": name}}, Subnets: []crd.Source{{ID: subnet}}, Strategy: crd.Strategy{Type: "Elastic"}}}))
	}
	b.addNode("n1", 5)
	b.addGated("first", "x")
	b.addGated("second", "y")
	said, stop := b.start("")
	b.Eventually("an operator without topologies serves nodes", func() error {
		if n := b.network("n1"); n.Status.Slots != 5 {
			return fmt.Errorf("%+v", n.Status)
		}
		return nil
	})
	stop()
	if p := b.pod("first"); len(p.Spec.SchedulingGates) != 1 || strings.Contains(said.text(), "gated") {
		t.Errorf("without topologies: gates %v\n%s", p.Spec.SchedulingGates, said.text())
	}

	said, stop = b.start("topologies: true")
	b.Eventually("the pod is classified", func() error {
		if p := b.pod("first"); len(p.Spec.SchedulingGates) > 0 {
			return fmt.Errorf("%v\n%s", p.Spec.SchedulingGates, said.text())
		}
		return nil
	})
	p := b.pod("first")
	in := p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions[0]
	if p.Annotations["enipool.io/topology"] != "x" || in.Key != corev1.LabelTopologyZone || fmt.Sprint(in.Values) != "[region-1a]" {
		t.Errorf("annotations %v, %+v", p.Annotations, in)
	}
	b.Eventually("why the other waits", func() error { return b.hasEvent("db", "Pod", "second", "TopologyNotReady", 1) })
	b.Eventually("why its topology can't be served", func() error { return b.hasEvent("default", "PodSubnetTopology", "y", "NoSubnet", 1) })
	if p := b.pod("second"); len(p.Spec.SchedulingGates) != 1 {
		t.Error("the other does not wait")
	}
	if code := stop(); code != 0 || strings.Contains(said.text(), "level=ERROR") {
		t.Errorf("exit %d, log:\n%s", code, said.text())
	}
}
