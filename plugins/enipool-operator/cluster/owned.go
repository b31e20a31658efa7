package cluster

import (
	"context"
	"net/netip"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/enipool/enipool/pkg/operator/claims"
	"github.com/enipool/enipool/pkg/operator/classify"
	"github.com/enipool/enipool/pkg/topology"
)

// hasTopology selects the pods that belong to a topology.
var hasTopology = client.HasLabels{classify.Gate}

// watchOwned lists the pods of topologies, twice, and tells of their changes until the watch ends. What one list lacks may have been missed.
func (o Claims) watchOwned(ctx context.Context, tell func(claims.Event)) error {
	var version string
	for range 2 {
		all, at, err := o.listOwned(ctx)
		if err != nil {
			return err
		}
		tell(claims.Event{Pods: &all})
		version = at
	}
	for ctx.Err() == nil {
		began := time.Now()
		var err error
		version, err = followPods(ctx, o.client, hasTopology, version, func(p *corev1.Pod, deleted bool) {
			owned := podOf(p)
			tell(claims.Event{Pod: &owned, Deleted: deleted})
		})
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			return nil // what was missed a list tells
		}
		if err != nil || time.Since(began) < again { // a server that ends each at once is asked no faster than one that is away
			return ofTopologies.explain(err)
		}
	}
	return nil
}

// listOwned returns the pods of topologies, and the version of the list. It keeps one page at a time.
func (o Claims) listOwned(ctx context.Context) (all []claims.Pod, version string, err error) {
	for next := ""; ; {
		var list corev1.PodList
		err := o.client.List(ctx, &list, hasTopology, client.Limit(page), client.Continue(next))
		if apierrors.IsResourceExpired(err) && next != "" { // the state that the pages are of is forgotten
			all, next = nil, ""
			continue
		}
		if err != nil {
			return nil, "", ofTopologies.explain(err)
		}
		for i := range list.Items {
			all = append(all, podOf(&list.Items[i]))
		}
		if next = list.Continue; next == "" {
			return all, list.ResourceVersion, nil
		}
	}
}

// ReadPod implements operator.ClaimObjects. A list of one needs no right besides those of the watch.
func (o Claims) ReadPod(ctx context.Context, of claims.Name) (*claims.Pod, error) {
	var list corev1.PodList
	if err := o.client.List(ctx, &list, client.InNamespace(of.Namespace), client.MatchingFields{"metadata.name": of.Name}); err != nil {
		return nil, ofTopologies.explain(err)
	}
	for i := range list.Items {
		p := podOf(&list.Items[i])
		return &p, nil
	}
	return nil, nil
}

// podOf returns a pod as much as claims go by it.
func podOf(p *corev1.Pod) claims.Pod {
	is := claims.Pod{Name: claims.Name{Namespace: p.Namespace, Name: p.Name}, UID: string(p.UID), Node: p.Spec.NodeName, Topology: p.Labels[classify.Gate],
		Ended: p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed || p.Spec.HostNetwork} // on its node's network it needs no address
	for _, ip := range p.Status.PodIPs {
		switch at, err := netip.ParseAddr(ip.IP); {
		case err != nil:
		case at.Is4():
			is.V4 = at
		default:
			is.V6 = at
		}
	}
	if owner := metav1.GetControllerOf(p); owner != nil && owner.Kind == "StatefulSet" && strings.HasPrefix(owner.APIVersion, "apps/") {
		is.StatefulSet = topology.Workload{Name: owner.Name, UID: string(owner.UID)}
	}
	return is
}
