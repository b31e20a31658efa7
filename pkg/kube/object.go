package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/kube/crd/convert"
	"github.com/enipool/enipool/pkg/order"
)

const (
	networks = "nodenetworks"

	// finalizer keeps a NodeNetwork until the operator has done what is to be done about the node's ENIs.
	finalizer = "enipool.io/enis"

	// longestWatch is after how long a watch is begun again: nothing tells of one that has died on its way.
	longestWatch = 10 * time.Minute
)

// Object is the NodeNetwork of one node, as its agent reads and writes it. Its methods may be called from several goroutines.
//
// It is no informer: that may begin with a list of a replica that lags, and what an agent adopts from a state before a
// release would be served to pods.
type Object struct {
	node string
	rest *rest.RESTClient
	view *view // of the Node, who owns the object
	log  *slog.Logger

	asked   chan struct{} // closed when somebody asks for the first copy
	again   chan struct{} // gets a value when that is to be read once more
	wanted  chan struct{} // closed when somebody asks for the newest one
	first   sync.Once
	once    sync.Once
	changed chan struct{}

	mu      sync.Mutex
	read    bool
	newest  order.Object
	was     crd.NodeNetworkSpec // of the newest copy
	unowned bool                // the newest copy belongs to nobody
	wrong   error               // why it can't be read now
	putBack int                 // how often the store was put back
}

// newObject returns what reads and writes the node's object. It does not call the API server.
func newObject(node string, config *rest.Config, v *view, log *slog.Logger) (*Object, error) {
	scheme := runtime.NewScheme()
	if err := crd.AddToScheme(scheme); err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.UserAgent, config.APIPath, config.GroupVersion = "enipool-agent", "/apis", &crd.GroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, "" // custom objects know nothing else
	c, err := rest.RESTClientFor(config)
	return &Object{node: node, rest: c, view: v, log: log, asked: make(chan struct{}), again: make(chan struct{}, 1), wanted: make(chan struct{}), changed: make(chan struct{}, 1)}, err
}

// Newest returns the newest copy that is known, of version "" if there is no object, and false until the first read. From
// the first call on the object is watched.
func (o *Object) Newest() (order.Object, bool) {
	o.once.Do(func() { close(o.wanted) })
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.newest, o.read
}

// Changed returns the channel that gets a value when Newest has another answer.
func (o *Object) Changed() <-chan struct{} { return o.changed }

// refresh reads the object from the store itself, whatever caches lag. It returns from where on to watch.
func (o *Object) refresh(ctx context.Context) (version string, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	o.mu.Lock()
	before := o.newest.Version
	o.mu.Unlock()
	var list crd.NodeNetworkList // which has a version where there is no object, too
	which := metav1.ListOptions{FieldSelector: o.selector()}
	if err := o.rest.Get().Resource(networks).VersionedParams(&which, metav1.ParameterCodec).Do(ctx).Into(&list); err != nil {
		return "", err
	}
	back := older(list.ResourceVersion, before) // the store was put back: what is there now counts
	for i := range list.Items {
		return list.ResourceVersion, o.take(&list.Items[i], back)
	}
	o.forget(list.ResourceVersion, back)
	return list.ResourceVersion, nil
}

func (o *Object) selector() string {
	return fields.OneTermEqualSelector("metadata.name", o.node).String()
}

// follow takes in what a watch tells until that ends.
func (o *Object) follow(ctx context.Context, version string) error {
	lasts := int64(longestWatch / time.Second)
	which := metav1.ListOptions{FieldSelector: o.selector(), ResourceVersion: version, Watch: true, TimeoutSeconds: &lasts}
	w, err := o.rest.Get().Resource(networks).VersionedParams(&which, metav1.ParameterCodec).Timeout(longestWatch).Watch(ctx)
	if err != nil {
		return err
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		n, is := e.Object.(*crd.NodeNetwork)
		switch {
		case e.Type == watch.Error:
			return apierrors.FromObject(e.Object)
		case !is:
		case e.Type == watch.Deleted:
			o.forget(n.ResourceVersion, false)
		default:
			if err := o.take(n, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// take takes a copy in, unless a newer one is known and nobody put the store back.
func (o *Object) take(n *crd.NodeNetwork, back bool) error {
	is, err := convert.Object(n)
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !back && o.newest.Version != "" && !older(o.newest.Version, is.Version) {
		return nil
	}
	// With later versions than before, too, what can only grow shows it.
	if is.UID == o.newest.UID && (back || is.Generation < o.newest.Generation || is.Status.Revision < o.newest.Status.Revision) {
		o.putBack++
	}
	is.PutBack = o.putBack
	o.read, o.newest, o.was, o.unowned = true, is, n.Spec, len(n.OwnerReferences) == 0
	signalChange(o.changed)
	return nil
}

// forget takes in that there was no object at a version of the store. It may have been made since.
func (o *Object) forget(at string, back bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.read || o.newest.Version != "" && (back || older(o.newest.Version, at)) {
		o.read, o.newest, o.was = true, order.Object{}, crd.NodeNetworkSpec{}
		signalChange(o.changed)
	}
}

// Write writes the spec where the object still has the version of from, makes the object where that is "", and returns the
// copy that it made. order.ErrConflict: it has another version by now, which Newest has.
func (o *Object) Write(ctx context.Context, from order.Object, spec order.Spec, asks order.Asks) (order.Object, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var n *crd.NodeNetwork
	var err error
	if from.Version == "" {
		n, err = o.create(ctx, convert.ToSpec(spec, asks, crd.NodeNetworkSpec{}))
	} else {
		n, err = o.patch(ctx, from.Version, convert.ToSpec(spec, asks, o.specBefore()))
	}
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) && from.Version != "" {
		_, again := o.refresh(ctx)
		return order.Object{}, errors.Join(order.ErrConflict, again)
	}
	if err != nil {
		if apierrors.IsNotFound(err) { // what can't be made is no object that has gone
			err = withoutKinds(err)
		}
		return order.Object{}, fmt.Errorf("write the node's NodeNetwork: %w", err)
	}
	if err := o.take(n, false); err != nil {
		return order.Object{}, err
	}
	return convert.Object(n)
}

// specBefore returns what the newest copy has of what an agent leaves as it is.
func (o *Object) specBefore() crd.NodeNetworkSpec {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.was
}

// create makes the object. It belongs to the Node, and goes with it once the operator allows that.
func (o *Object) create(ctx context.Context, spec crd.NodeNetworkSpec) (*crd.NodeNetwork, error) {
	owners := o.owners()
	switch {
	case owners == nil && o.view.firstSelf.HasSynced(): // a new node's agent may be there before its Node
		return nil, fmt.Errorf("the cluster has no Node %s: if `kubectl get nodes` has this node by another name, give that to the key node of agent.yaml, or to NODE_NAME of the agent's environment", o.node)
	case owners == nil:
		return nil, errors.New("the Node, to which it is to belong, is not known yet")
	}
	n := &crd.NodeNetwork{TypeMeta: metav1.TypeMeta{APIVersion: crd.GroupVersion.String(), Kind: "NodeNetwork"}, Spec: spec,
		ObjectMeta: metav1.ObjectMeta{Name: o.node, Finalizers: []string{finalizer}, OwnerReferences: owners}}
	var made crd.NodeNetwork
	err := o.rest.Post().Resource(networks).Body(n).Do(ctx).Into(&made)
	return &made, err
}

// owners returns to whom the object belongs, nil as long as the Node is not known.
func (o *Object) owners() []metav1.OwnerReference {
	node, known := o.view.readNode()
	if !known {
		return nil
	}
	return []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}}
}

// lackingOwners returns the owners that the newest copy lacks. Tools bring objects back from a backup without any, and such a one would be there for ever.
func (o *Object) lackingOwners() []metav1.OwnerReference {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.unowned {
		return nil
	}
	return o.owners()
}

// patch replaces the spec of that version of the object, and lets it belong to its Node if it is nobody's. What the cluster's policies say against the
// latter, as those of the release before do, keeps no spec from being written.
func (o *Object) patch(ctx context.Context, version string, spec crd.NodeNetworkSpec) (*crd.NodeNetwork, error) {
	if owners := o.lackingOwners(); owners != nil {
		n, err := o.patchWith(ctx, version, spec, operation{"add", "/metadata/ownerReferences", owners})
		if !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
			return n, err
		}
	}
	return o.patchWith(ctx, version, spec)
}

// patchWith is that with what else is to be changed. With that the API server forgets who wrote which field before: each field has one
// writer and each write names its version, so nobody asks for it, and it is a third of all that goes over the wire with each write.
func (o *Object) patchWith(ctx context.Context, version string, spec crd.NodeNetworkSpec, more ...operation) (*crd.NodeNetwork, error) {
	forgotten := []metav1.ManagedFieldsEntry{{}}
	data, err := json.Marshal(append([]operation{{"replace", "/metadata/resourceVersion", version}, {"add", "/metadata/managedFields", forgotten}, {"replace", "/spec", spec}}, more...))
	if err != nil {
		return nil, err
	}
	var n crd.NodeNetwork
	err = o.rest.Patch(types.JSONPatchType).Resource(networks).Name(o.node).Body(data).Do(ctx).Into(&n)
	return &n, err
}
