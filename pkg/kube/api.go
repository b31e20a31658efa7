package kube

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
)

// api is the API server, of which the agent needs three kinds. The libraries that know all
// kinds of Kubernetes keep some megabytes of them in the memory of every node.
type api struct{ rest *rest.RESTClient }

// newAPI returns what asks the API server itself. It does not call it.
func newAPI(config *rest.Config) (api, error) {
	config.UserAgent, config.APIPath, config.GroupVersion = "enipool-agent", "/api", &corev1.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(newScheme()).WithoutConversion()
	if config.ContentType == "" { // JSON is for tests
		config.ContentType = runtime.ContentTypeProtobuf
		config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	}
	c, err := rest.RESTClientFor(config)
	return api{c}, err
}

// newScheme are the only kinds that are read or written here.
func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(corev1.SchemeGroupVersion,
		&corev1.Pod{}, &corev1.PodList{}, &corev1.Node{}, &corev1.NodeList{}, &corev1.Event{}, &corev1.EventList{})
	metav1.AddToGroupVersion(scheme, corev1.SchemeGroupVersion)
	return scheme
}

// listWatch returns what lists and watches the objects that a selector finds.
func (a api) listWatch(resource string, which fields.Selector) toolscache.ListerWatcher {
	return toolscache.NewListWatchFromClient(a.rest, resource, metav1.NamespaceAll, which)
}

// findNode lists the node of that name; the agent has no right to get it.
func (a api) findNode(ctx context.Context, name string) ([]corev1.Node, error) {
	var list corev1.NodeList
	which := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()}
	err := a.rest.Get().Resource("nodes").VersionedParams(&which, metav1.ParameterCodec).Do(ctx).Into(&list)
	return list.Items, err
}

// patchNode patches the node, or the part of it that is named, and returns it as it is then.
func (a api) patchNode(ctx context.Context, name string, kind types.PatchType, patch []byte, part ...string) (*corev1.Node, error) {
	var node corev1.Node
	err := a.rest.Patch(kind).Resource("nodes").Name(name).SubResource(part...).Body(patch).Do(ctx).Into(&node)
	return &node, err
}

func (a api) patchEvent(ctx context.Context, e *corev1.Event, patch []byte) error {
	return a.rest.Patch(types.StrategicMergePatchType).Namespace(e.Namespace).Resource("events").Name(e.Name).Body(patch).Do(ctx).Error()
}

func (a api) createEvent(ctx context.Context, e *corev1.Event) error {
	return a.rest.Post().Namespace(e.Namespace).Resource("events").Body(e).Do(ctx).Error()
}
