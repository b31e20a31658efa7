package cluster

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator/claims"
)

// Claims implements operator.ClaimObjects with a real API server.
type Claims struct{ *Topologies }

// WatchClaims implements operator.ClaimObjects.
func (o Claims) WatchClaims(ctx context.Context, tell func(claims.Event)) {
	pods := make(chan struct{})
	go func() {
		defer close(pods)
		repeat(ctx, o.log, "pods of topologies can't be watched; it is tried again", func() error { return o.watchOwned(ctx, tell) })
	}()
	repeat(ctx, o.log, "claims can't be watched; it is tried again", func() error { return o.watchBoth(ctx, tell) })
	<-pods
}

// watchBoth watches claims and topologies until ctx ends, or returns why it can't begin.
func (o Claims) watchBoth(ctx context.Context, tell func(claims.Event)) error {
	kinds := []client.Object{&crd.AddressClaim{}, &crd.PodSubnetTopology{}}
	return o.watchObjects(ctx, kinds, func(of any, deleted bool) { tellClaim(tell, of, deleted) }, func() { tell(claims.Event{Complete: true}) })
}

// tellClaim tells of a change as the informer has it.
func tellClaim(tell func(claims.Event), of any, deleted bool) {
	switch of := of.(type) {
	case *crd.AddressClaim:
		tell(claims.Event{Claim: of, Deleted: deleted})
	case *crd.PodSubnetTopology:
		tell(claims.Event{Topology: of, Deleted: deleted})
	}
}

// ReadSets implements operator.ClaimObjects.
func (o Claims) ReadSets(ctx context.Context) (names []claims.Name, err error) {
	for next := ""; ; {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("StatefulSetList"))
		err := o.client.List(ctx, list, client.Limit(page), client.Continue(next))
		if apierrors.IsResourceExpired(err) && next != "" { // the state that the pages are of is forgotten
			names, next = nil, ""
			continue
		}
		if err != nil {
			return nil, ofTopologies.explain(err)
		}
		for i := range list.Items {
			names = append(names, claims.Name{Namespace: list.Items[i].Namespace, Name: list.Items[i].Name})
		}
		if next = list.Continue; next == "" {
			return names, nil
		}
	}
}

// CreateClaim implements operator.ClaimObjects.
func (o Claims) CreateClaim(ctx context.Context, c *crd.AddressClaim) (*crd.AddressClaim, error) {
	c = c.DeepCopy() // the answer is decoded into it
	if err := o.client.Create(ctx, c); err != nil {
		return nil, ofTopologies.explain(err)
	}
	return c, nil
}

// ReadClaim implements operator.ClaimObjects.
func (o Claims) ReadClaim(ctx context.Context, name string) (*crd.AddressClaim, error) {
	c := &crd.AddressClaim{}
	if err := o.client.Get(ctx, client.ObjectKey{Name: name}, c); err != nil {
		return nil, ofTopologies.explain(err)
	}
	return c, nil
}

// WriteClaim implements operator.ClaimObjects.
func (o Claims) WriteClaim(ctx context.Context, c *crd.AddressClaim) (*crd.AddressClaim, error) {
	c = c.DeepCopy()
	if err := o.client.Status().Update(ctx, c); err != nil {
		return nil, ofTopologies.explain(err)
	}
	return c, nil
}

// DeleteClaim implements operator.ClaimObjects.
func (o Claims) DeleteClaim(ctx context.Context, c *crd.AddressClaim) error {
	return ofTopologies.explain(o.client.Delete(ctx, c.DeepCopy(), client.Preconditions{UID: &c.UID}))
}

// DropClaim implements operator.ClaimObjects.
func (o Claims) DropClaim(ctx context.Context, c *crd.AddressClaim) error {
	next := c.DeepCopy()
	next.Finalizers = slices.DeleteFunc(next.Finalizers, func(f string) bool { return f == claims.Finalizer })
	return ofTopologies.explain(o.client.Patch(ctx, next, client.MergeFromWithOptions(c, client.MergeFromWithOptimisticLock{})))
}
