package cluster

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/enipool/enipool/pkg/operator/classify"
)

// mostNamed is how many namespaces are read each by its name. All of them cost a request less than one more.
const mostNamed = 8

// ReadNamespaces implements classify.Objects. A list of one is a read of one for the API server, and needs no right besides those of the watch.
func (o *Topologies) ReadNamespaces(ctx context.Context, names []string) (list []classify.Namespace, err error) {
	if len(names) > mostNamed {
		all, err := o.listNamespaces(ctx, client.Limit(page))
		return slices.DeleteFunc(all, func(n classify.Namespace) bool { return !slices.Contains(names, n.Name) }), err
	}
	for _, name := range names {
		one, err := o.listNamespaces(ctx, client.MatchingFields{"metadata.name": name})
		if err != nil {
			return nil, err
		}
		list = append(list, one...)
	}
	return list, nil
}

// listNamespaces returns those that are selected, page by page.
func (o *Topologies) listNamespaces(ctx context.Context, selected client.ListOption) (all []classify.Namespace, err error) {
	for next := ""; ; {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
		err := o.client.List(ctx, list, selected, client.Continue(next))
		if apierrors.IsResourceExpired(err) && next != "" { // the state that the pages are of is forgotten
			all, next = nil, ""
			continue
		}
		if err != nil {
			return nil, ofTopologies.explain(err)
		}
		for i := range list.Items {
			all = append(all, namespaceOf(&list.Items[i].ObjectMeta))
		}
		if next = list.Continue; next == "" {
			return all, nil
		}
	}
}

// namespaceOf returns a namespace as topologies select by it.
func namespaceOf(n *metav1.ObjectMeta) classify.Namespace {
	return classify.Namespace{Name: n.Name, UID: string(n.UID), Version: n.ResourceVersion, Labels: n.Labels}
}
