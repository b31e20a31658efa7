package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ListFinalized returns the names of the objects of one of our kinds that have a finalizer, and how many objects there are. A cluster without the kind has none.
func (a *API) ListFinalized(ctx context.Context, resource, finalizer string) (names []string, all int, err error) {
	pages, _, err := a.ListAny(ctx, "enipool.io", "v1alpha1", resource)
	if err != nil {
		return nil, 0, err
	}
	for _, text := range pages {
		var list metav1.PartialObjectMetadataList
		if err := json.Unmarshal(text, &list); err != nil {
			return nil, 0, explain(resource, err)
		}
		for i := range list.Items {
			if all++; slices.Contains(list.Items[i].Finalizers, finalizer) {
				names = append(names, list.Items[i].Name)
			}
		}
	}
	return names, all, nil
}

// DropFinalizer takes a finalizer from an object of one of our kinds, whatever else changes in it meanwhile.
func (a *API) DropFinalizer(ctx context.Context, resource, name, finalizer string) error {
	for {
		text, err := a.networks.Get().Resource(resource).Name(name).Do(ctx).Raw()
		if apierrors.IsNotFound(err) {
			return nil
		}
		var is metav1.PartialObjectMetadata
		if err == nil {
			err = json.Unmarshal(text, &is)
		}
		if err != nil {
			return explain(resource, err)
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": is.ResourceVersion,
			"finalizers": slices.DeleteFunc(is.Finalizers, func(f string) bool { return f == finalizer })}})
		if err != nil {
			return err
		}
		err = a.networks.Patch(types.MergePatchType).Resource(resource).Name(name).Body(patch).Do(ctx).Error()
		switch {
		case err == nil, apierrors.IsNotFound(err):
			return nil
		case !apierrors.IsConflict(err):
			return fmt.Errorf("write %s %s: %w", resource, name, err)
		}
	}
}
