package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/enipool/enipool/pkg/kube/crd"
)

// DropFinalizer takes a finalizer from a NodeNetwork, whatever else changes in it meanwhile.
func (a *API) DropFinalizer(ctx context.Context, name, finalizer string) error {
	return a.dropFinalizer(ctx, networkKind, name, finalizer)
}

// DropClaimFinalizer does that for an AddressClaim.
func (a *API) DropClaimFinalizer(ctx context.Context, name, finalizer string) error {
	return a.dropFinalizer(ctx, claimKind, name, finalizer)
}

func (a *API) dropFinalizer(ctx context.Context, resource, name, finalizer string) error {
	for {
		var is metav1.PartialObjectMetadata
		text, err := a.networks.Get().Resource(resource).Name(name).Do(ctx).Raw()
		if err == nil {
			err = json.Unmarshal(text, &is)
		}
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return explain(resource, err)
		}
		text, err = json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": is.ResourceVersion,
			"finalizers": slices.DeleteFunc(is.Finalizers, func(f string) bool { return f == finalizer })}})
		if err != nil {
			return err
		}
		err = a.networks.Patch(types.MergePatchType).Resource(resource).Name(name).Body(text).Do(ctx).Error()
		switch {
		case err == nil, apierrors.IsNotFound(err):
			return nil
		case !apierrors.IsConflict(err):
			return fmt.Errorf("write %s %s: %w", resource, name, err)
		}
	}
}

// ListClaimsIfAny is ListClaims for a cluster that may have no topologies, and so no claims.
func (a *API) ListClaimsIfAny(ctx context.Context) ([]crd.AddressClaim, error) {
	if err := a.networks.Get().Resource(claimKind).Param("limit", "1").Do(ctx).Error(); apierrors.IsNotFound(err) {
		return nil, nil
	}
	return a.ListClaims(ctx)
}
