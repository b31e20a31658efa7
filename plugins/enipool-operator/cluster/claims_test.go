package cluster

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator/claims"
	"github.com/enipool/enipool/pkg/operator/classify"
)

// A real API server tells of all pods of topologies, claims and topologies, and then of changes; StatefulSets are listed.
func TestClaimsAreToldOfWhatTheyNeed(t *testing.T) {
	g := newGates(t)
	of := func(name, topology string) *corev1.Pod {
		return pod("web", name, func(p *corev1.Pod) {
			if topology != "" {
				p.Labels = map[string]string{classify.Gate: topology}
			}
			controls := true
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "set", UID: "1", Controller: &controls}}
			p.Spec.NodeName = "n"
		})
	}
	must(t, g.Create(t.Context(), of("first", "x")))
	must(t, g.Create(t.Context(), of("other", "")))
	must(t, g.Create(t.Context(), &crd.PodSubnetTopology{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Spec: crd.TopologySpec{Subnets: []crd.Source{{ID: "s"}}, Strategy: crd.Strategy{Type: "Elastic"}}}))
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	must(t, g.admin().Create(t.Context(), &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "set"}, Spec: appsv1.StatefulSetSpec{Selector: selector,
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: selector.MatchLabels}, Spec: of("", "").Spec}}}))

	topologies, err := NewTopologies(g.config, slog.New(slog.DiscardHandler))
	must(t, err)
	o := Claims{topologies}
	if sets, err := o.ReadSets(t.Context()); err != nil || fmt.Sprint(sets) != "[{web set}]" {
		t.Errorf("StatefulSets %v, %v", sets, err)
	}
	p, err := o.ReadPod(t.Context(), claims.Name{Namespace: "web", Name: "first"})
	if err != nil || p == nil || p.Node != "n" || p.Topology != "x" || p.StatefulSet.Name != "set" {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err := o.ReadPod(t.Context(), claims.Name{Namespace: "web", Name: "other"}); err != nil || p == nil || p.Node != "n" || p.Topology != "" {
		t.Errorf("a pod of no topology: %+v, %v", p, err)
	}
	if p, err := o.ReadPod(t.Context(), claims.Name{Namespace: "web", Name: "none"}); err != nil || p != nil {
		t.Errorf("no pod: %+v, %v", p, err)
	}

	var mu sync.Mutex
	var lists [][]claims.Pod
	told := map[string]bool{}
	go o.WatchClaims(t.Context(), func(e claims.Event) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case e.Pods != nil:
			lists = append(lists, *e.Pods)
		case e.Pod != nil:
			told[fmt.Sprint("pod ", e.Pod.Name.Name, " ", e.Deleted)] = true
		case e.Topology != nil:
			told["topology "+e.Topology.Name] = true
		case e.Claim != nil:
			told[fmt.Sprint("claim ", e.Claim.Name, " ", e.Deleted)] = true
		case e.Complete:
			told["complete"] = true
		}
	})
	has := func(words ...string) {
		t.Helper()
		soon(t, fmt.Sprint(words), func() error {
			mu.Lock()
			defer mu.Unlock()
			for _, word := range words {
				if !told[word] {
					return fmt.Errorf("no %q in %v", word, told)
				}
			}
			if len(lists) < 2 || len(lists[1]) != 1 || lists[1][0].Name.Name != "first" {
				return errors.New("the lists of pods are not told")
			}
			return nil
		})
	}
	has("topology x", "complete")
	second := of("second", "x")
	must(t, g.Create(t.Context(), second))
	claim := &crd.AddressClaim{ObjectMeta: metav1.ObjectMeta{Name: "10.0.0.9"}, Spec: crd.ClaimSpec{Topology: "x", Subnet: "s", Address: "10.0.0.9", Namespace: "web", Pod: "p", Keep: "TTL", TTL: "1h"}}
	must(t, g.Create(t.Context(), claim))
	has("pod second false", "claim 10.0.0.9 false")
	must(t, g.Delete(t.Context(), second, client.GracePeriodSeconds(0)))
	must(t, g.Delete(t.Context(), claim))
	has("pod second true", "claim 10.0.0.9 true")
}

// admin returns a client that knows StatefulSets too.
func (g *gates) admin() client.Client {
	g.Helper()
	c, err := client.New(g.config, client.Options{})
	must(g.T, err)
	return c
}
