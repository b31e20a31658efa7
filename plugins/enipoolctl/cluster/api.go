package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"github.com/enipool/enipool/pkg/kube"
	"github.com/enipool/enipool/pkg/kube/crd"
)

// API is a cluster's API server, with the rights of whoever asks.
type API struct {
	core, leases, networks *rest.RESTClient
	Namespace              string // of the operators and agents
}

// Open returns the API server that kubectl would call with that kubeconfig and context, "" for what it takes by itself. It does not call it.
func Open(kubeconfig, context, namespace string) (*API, error) {
	config, err := kube.LoadForPeople(kubeconfig, context)
	if err != nil {
		return nil, fmt.Errorf("%w; --kubeconfig names a file, --context one of its contexts", err)
	}
	api := &API{Namespace: namespace}
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.Pod{}, &corev1.PodList{}, &corev1.Node{}, &corev1.NodeList{}, &corev1.Event{}, &corev1.EventList{}, &corev1.ConfigMap{})
	metav1.AddToGroupVersion(scheme, corev1.SchemeGroupVersion)
	scheme.AddKnownTypes(coordinationv1.SchemeGroupVersion, &coordinationv1.Lease{}, &coordinationv1.LeaseList{})
	metav1.AddToGroupVersion(scheme, coordinationv1.SchemeGroupVersion)
	if err := crd.AddToScheme(scheme); err != nil {
		return nil, err
	}
	for _, part := range []struct {
		into    **rest.RESTClient
		version schema.GroupVersion
		path    string
		coded   string
	}{
		{&api.core, corev1.SchemeGroupVersion, "/api", runtime.ContentTypeProtobuf},
		{&api.leases, coordinationv1.SchemeGroupVersion, "/apis", runtime.ContentTypeProtobuf},
		{&api.networks, crd.GroupVersion, "/apis", runtime.ContentTypeJSON}, // custom objects know nothing else
	} {
		c := rest.CopyConfig(config)
		c.UserAgent, c.APIPath, c.GroupVersion, c.QPS, c.Burst = "enipoolctl", part.path, &part.version, 50, 100
		c.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
		c.ContentType, c.AcceptContentTypes = part.coded, part.coded+","+runtime.ContentTypeJSON
		if *part.into, err = rest.RESTClientFor(c); err != nil {
			return nil, fmt.Errorf("prepare to talk to the API server: %w", err)
		}
	}
	return api, nil
}

// page is how many objects a list asks for at once.
const page = 500

// listAll reads all objects of a kind, page by page. If the state that the pages are of is forgotten in between it begins again.
func listAll[L, T any, P interface {
	*L
	runtime.Object
	metav1.ListInterface
}](ctx context.Context, c *rest.RESTClient, resource string, which metav1.ListOptions, items func(P) []T) ([]T, error) {
	var all []T
	for which.Limit = page; ; {
		list := P(new(L)) // one for each page: what has been read is not decoded over
		err := c.Get().Resource(resource).VersionedParams(&which, metav1.ParameterCodec).Do(ctx).Into(list)
		if apierrors.IsResourceExpired(err) && which.Continue != "" {
			all, which.Continue = nil, ""
			continue
		}
		if err != nil {
			return nil, explain(resource, err)
		}
		all = append(all, items(list)...)
		if which.Continue = list.GetContinue(); which.Continue == "" {
			return all, nil
		}
	}
}

// ListAny returns the pages of a list of another group's objects, as JSON, and whether the cluster has their kind.
func (a *API) ListAny(ctx context.Context, group, version, resource string) (pages [][]byte, is bool, err error) {
	for next := ""; ; {
		r := a.networks.Get().AbsPath("/apis", group, version, resource).Param("limit", strconv.Itoa(page))
		if next != "" {
			r = r.Param("continue", next)
		}
		text, err := r.Do(ctx).Raw()
		switch {
		case apierrors.IsResourceExpired(err) && next != "":
			pages, next = nil, ""
			continue
		case apierrors.IsNotFound(err):
			return nil, false, nil
		case err != nil:
			return nil, false, explain(resource, err)
		}
		var list metav1.PartialObjectMetadataList
		if err := json.Unmarshal(text, &list); err != nil {
			return nil, false, explain(resource, err)
		}
		if pages, next = append(pages, text), list.Continue; next == "" {
			return pages, true, nil
		}
	}
}

const (
	networkKind  = "nodenetworks"
	subnetKind   = "subnets"
	topologyKind = "podsubnettopologies"
	claimKind    = "addressclaims"
)

// ListNetworks returns all NodeNetworks.
func (a *API) ListNetworks(ctx context.Context) ([]crd.NodeNetwork, error) {
	return listAll(ctx, a.networks, networkKind, metav1.ListOptions{}, func(l *crd.NodeNetworkList) []crd.NodeNetwork { return l.Items })
}

// ListSubnets returns all Subnets.
func (a *API) ListSubnets(ctx context.Context) ([]crd.Subnet, error) {
	return listAll(ctx, a.networks, subnetKind, metav1.ListOptions{}, func(l *crd.SubnetList) []crd.Subnet { return l.Items })
}

// ListTopologies returns all PodSubnetTopologies.
func (a *API) ListTopologies(ctx context.Context) ([]crd.PodSubnetTopology, error) {
	return listAll(ctx, a.networks, topologyKind, metav1.ListOptions{}, func(l *crd.PodSubnetTopologyList) []crd.PodSubnetTopology { return l.Items })
}

// ListClaims returns all AddressClaims.
func (a *API) ListClaims(ctx context.Context) ([]crd.AddressClaim, error) {
	return listAll(ctx, a.networks, claimKind, metav1.ListOptions{}, func(l *crd.AddressClaimList) []crd.AddressClaim { return l.Items })
}

// ListNodes returns all Nodes.
func (a *API) ListNodes(ctx context.Context) ([]corev1.Node, error) {
	return listAll(ctx, a.core, "nodes", metav1.ListOptions{}, func(l *corev1.NodeList) []corev1.Node { return l.Items })
}

// GetNetwork returns a node's NodeNetwork, nil if there is none.
func (a *API) GetNetwork(ctx context.Context, name string) (*crd.NodeNetwork, error) {
	n := &crd.NodeNetwork{}
	err := a.networks.Get().Resource(networkKind).Name(name).Do(ctx).Into(n)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, explain(networkKind, err)
	}
	return n, nil
}

// GetNode returns a Node, nil if there is none.
func (a *API) GetNode(ctx context.Context, name string) (*corev1.Node, error) {
	n := &corev1.Node{}
	err := a.core.Get().Resource("nodes").Name(name).Do(ctx).Into(n)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, explain("nodes", err)
	}
	return n, nil
}

// ListPods returns the pods of a program in the namespace, on one node or, with "", on all.
func (a *API) ListPods(ctx context.Context, program, node string) ([]corev1.Pod, error) {
	which := metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=" + program}
	if node != "" {
		which.FieldSelector = "spec.nodeName=" + node
	}
	var list corev1.PodList
	if err := a.core.Get().Namespace(a.Namespace).Resource("pods").VersionedParams(&which, metav1.ParameterCodec).Do(ctx).Into(&list); err != nil {
		return nil, explain("pods", err)
	}
	return list.Items, nil
}

// DeletePod deletes a pod of the namespace, if it is still that one.
func (a *API) DeletePod(ctx context.Context, p *corev1.Pod) error {
	which := &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(p.UID))}
	err := a.core.Delete().Namespace(a.Namespace).Resource("pods").Name(p.Name).Body(which).Do(ctx).Error()
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete pod %s: %w", p.Name, err)
	}
	return nil
}

// GetFile returns a key of a ConfigMap of the namespace.
func (a *API) GetFile(ctx context.Context, name, key string) (string, error) {
	m := &corev1.ConfigMap{}
	if err := a.core.Get().Namespace(a.Namespace).Resource("configmaps").Name(name).Do(ctx).Into(m); err != nil {
		return "", explain("configmaps", err)
	}
	text, is := m.Data[key]
	if !is {
		return "", fmt.Errorf("read ConfigMap %s: it has no %s", name, key)
	}
	return text, nil
}

// ListEvents returns the events about a NodeNetwork, the newest last.
func (a *API) ListEvents(ctx context.Context, node string) ([]corev1.Event, error) {
	which := metav1.ListOptions{FieldSelector: "involvedObject.kind=NodeNetwork,involvedObject.name=" + node}
	var list corev1.EventList
	if err := a.core.Get().Namespace(metav1.NamespaceDefault).Resource("events").VersionedParams(&which, metav1.ParameterCodec).Do(ctx).Into(&list); err != nil {
		return nil, explain("events", err)
	}
	return list.Items, nil
}

// watchNetworks sends something each time that an object of one of our kinds changes, until ctx ends.
func (a *API) watchNetworks(ctx context.Context, resource string, changed chan<- struct{}) {
	for ctx.Err() == nil {
		which := metav1.ListOptions{ResourceVersion: "0", Watch: true}
		w, err := a.networks.Get().Resource(resource).VersionedParams(&which, metav1.ParameterCodec).Watch(ctx)
		if err == nil {
			for range w.ResultChan() {
				select {
				case changed <- struct{}{}:
				default: // it is known already that something has changed
				}
			}
			w.Stop()
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// Raw returns what the API server says at a path, as it says it. query are names and values in turn.
func (a *API) Raw(ctx context.Context, path string, query ...string) ([]byte, error) {
	r := a.networks.Get().AbsPath(path).SetHeader("Accept", runtime.ContentTypeJSON+", */*")
	for i := 0; i+1 < len(query); i += 2 {
		r = r.Param(query[i], query[i+1])
	}
	text, err := r.Do(ctx).Raw()
	if err != nil {
		return nil, explainAs(path, err, said(err, text))
	}
	return text, nil
}
