package main

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/kube/crd"
)

// examples returns the objects that a page shows, each block as it stands there.
func examples(t *testing.T, page string) (blocks []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for part := range strings.SplitSeq(string(text), "\n\n") {
		if strings.HasPrefix(part, "    apiVersion: ") {
			blocks = append(blocks, strings.ReplaceAll("\n"+part, "\n    ", "\n"))
		}
	}
	return blocks
}

// Who writes what the page of topologies shows has what it says: the API server takes it, the topologies are ready, and the pods that they name are theirs.
func TestTheExamplesOfTopologiesDoAsThePageSays(t *testing.T) {
	b := newBed(t)
	b.Kubectl("apply", "--server-side", "--kustomize=../../conf/kubernetes/topologies")
	b.Kubectl("wait", "--for=condition=Established", "crd/podsubnettopologies.enipool.io", "crd/addressclaims.enipool.io")
	blocks := examples(t, "../../conf/kubernetes/topologies/README.md")
	b.Apply(strings.Join(blocks, "\n---\n"))
	ctx := context.Background()
	var topologies crd.PodSubnetTopologyList
	var subnets crd.SubnetList
	b.must(b.objects.List(ctx, &topologies))
	b.must(b.objects.List(ctx, &subnets))
	if len(topologies.Items) == 0 || len(topologies.Items)+len(subnets.Items) != len(blocks) {
		t.Fatalf("%d topologies and %d subnets of\n%s", len(topologies.Items), len(subnets.Items), blocks)
	}
	b.addSubnetsOf(topologies.Items)
	b.addNode("n1", 5)
	b.start("topologies: true")
	for _, id := range b.subnets { // as long as one of them is not known nothing of it is wrong
		b.Eventually("subnet "+id, func() error {
			var s crd.Subnet
			if err := b.objects.Get(ctx, client.ObjectKey{Name: id}, &s); err != nil || s.Status.State != "Ready" {
				return fmt.Errorf("it is %+v %w", s.Status, err)
			}
			return nil
		})
	}
	b.Kubectl("wait", "--for=condition=Ready", "podsubnettopologies", "--all", "--timeout=1m")

	for i := range topologies.Items {
		of := &topologies.Items[i]
		namespace := of.Spec.NamespaceSelector.MatchLabels[corev1.LabelMetadataName]
		b.must(b.objects.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{"enipool.io/topologies": "enabled"}}}))
		for name, labels := range map[string]map[string]string{"named-0": of.Spec.PodSelector.MatchLabels, "other-0": {"app": "other"}} {
			b.addGatedByPolicy(namespace, name, labels)
		}
		b.Eventually("the pods of "+of.Name, func() error {
			for name, want := range map[string]string{"named-0": of.Name, "other-0": ""} {
				var p corev1.Pod
				b.must(b.objects.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &p))
				if is := p.Annotations["enipool.io/topology"]; is != want || len(p.Spec.SchedulingGates) > 0 {
					return fmt.Errorf("pod %s is of topology %q, want %q; its gates are %v", name, is, want, p.Spec.SchedulingGates)
				}
			}
			return nil
		})
	}
	b.must(b.objects.List(ctx, &topologies))
	for _, of := range topologies.Items {
		if !meta.IsStatusConditionTrue(of.Status.Conditions, "Ready") {
			t.Errorf("topology %s: %+v", of.Name, of.Status.Conditions)
		}
	}
}

// addSubnetsOf makes each subnet that topologies name in the cloud, with room for their ranges. Operators use them.
func (b *bed) addSubnetsOf(topologies []crd.PodSubnetTopology) {
	b.Helper()
	for _, of := range topologies {
		for _, from := range of.Spec.Subnets {
			if slices.Contains(b.subnets, from.ID) {
				continue
			}
			at := netip.AddrFrom4([4]byte{10, 200, byte(len(b.subnets)), 0})
			if len(from.Ranges) > 0 {
				at = netip.MustParseAddr(from.Ranges[0].From)
			}
			b.must(b.account.AddSubnet(sim.Subnet{ID: from.ID, V4: netip.PrefixFrom(at, 24).Masked()}))
			b.subnets = append(b.subnets, from.ID)
		}
	}
}

// addGatedByPolicy makes a pod that the API server gates, as soon as it does so.
func (b *bed) addGatedByPolicy(namespace, name string, labels map[string]string) {
	b.Helper()
	ctx := context.Background()
	b.Eventually("the API server gates pods", func() error {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "none:1"}}}}
		b.must(b.objects.Create(ctx, p, client.DryRunAll))
		if len(p.Spec.SchedulingGates) == 0 {
			return fmt.Errorf("pod %s has no gate", name)
		}
		p.ObjectMeta = metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}
		p.Spec.SchedulingGates = nil
		return b.objects.Create(ctx, p)
	})
}
