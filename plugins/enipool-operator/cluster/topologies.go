package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator/classify"
)

// Topologies implements classify.Objects with a real API server.
type Topologies struct {
	config *rest.Config
	client client.WithWatch // without a cache
	log    *slog.Logger
}

// NewTopologies prepares all that the methods need. It does not call the API server.
func NewTopologies(config *rest.Config, log *slog.Logger) (*Topologies, error) {
	o, err := New(config, log)
	if err != nil {
		return nil, err
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: o.scheme})
	if err != nil {
		return nil, fmt.Errorf("prepare to talk to the API server: %w", err)
	}
	return &Topologies{config, c, log}, nil
}

// ReadTopologies implements classify.Objects.
func (o *Topologies) ReadTopologies(ctx context.Context) ([]*crd.PodSubnetTopology, error) {
	return readKind(ctx, client.Client(o.client), ofTopologies, page, func(l *crd.PodSubnetTopologyList) []crd.PodSubnetTopology { return l.Items })
}

// WriteTopology implements classify.Objects.
func (o *Topologies) WriteTopology(ctx context.Context, t *crd.PodSubnetTopology) error {
	return ofTopologies.explain(o.client.Status().Update(ctx, t.DeepCopy()))
}

// PatchPod implements classify.Objects.
func (o *Topologies) PatchPod(ctx context.Context, namespace, name string, patch []classify.Operation) error {
	text, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("encode the patch of a pod: %w", err)
	}
	p := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}} // the answer is no whole pod
	p.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	return ofTopologies.explain(o.client.Patch(ctx, p, client.RawPatch(types.JSONPatchType, text)))
}

// Watch implements classify.Objects.
func (o *Topologies) Watch(ctx context.Context, tell func(classify.Event)) {
	pods := make(chan struct{})
	go func() {
		defer close(pods)
		repeat(ctx, o.log, "gated pods can't be watched; it is tried again", func() error { return o.watchPods(ctx, tell) })
	}()
	repeat(ctx, o.log, "topologies can't be watched; it is tried again", func() error { return o.watchKinds(ctx, tell) })
	<-pods
}

// watchKinds watches all but pods until ctx ends, or returns why it can't begin.
func (o *Topologies) watchKinds(ctx context.Context, tell func(classify.Event)) error {
	kinds := []client.Object{&corev1.Namespace{}, &crd.Subnet{}, &crd.AddressClaim{}, &crd.PodSubnetTopology{}}
	return o.watchObjects(ctx, kinds, func(of any, deleted bool) { tellKind(tell, of, deleted) }, func() { tell(classify.Event{Complete: true}) })
}

// watchObjects tells of objects of these kinds, and once of that all that there were at first have been told of, until ctx ends, or returns why it
// can't begin.
func (o *Topologies) watchObjects(ctx context.Context, kinds []client.Object, tell func(of any, deleted bool), complete func()) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	failed := func(ctx context.Context, r *toolscache.Reflector, err error) {
		toolscache.DefaultWatchErrorHandler(ctx, r, ofTopologies.explain(err))
	}
	watched, err := cache.New(o.config, cache.Options{Scheme: o.client.Scheme(), DefaultTransform: cache.TransformStripManagedFields(), DefaultWatchErrorHandler: failed,
		ByObject: map[client.Object]cache.ByObject{&corev1.Namespace{}: {Transform: stripNamespace}}})
	if err != nil {
		return err
	}
	on := toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(of any) { tell(of, false) },
		UpdateFunc: func(_, of any) { tell(of, false) },
		DeleteFunc: func(of any) {
			if last, is := of.(toolscache.DeletedFinalStateUnknown); is {
				of = last.Obj
			}
			tell(of, true)
		},
	}
	var all []toolscache.InformerSynced
	for _, kind := range kinds {
		informer, err := watched.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return err
		}
		begun, err := informer.AddEventHandler(on)
		if err != nil {
			return err
		}
		all = append(all, begun.HasSynced)
	}
	told := make(chan struct{})
	go func() { // each handler has been told of all that its informer had at first
		defer close(told)
		if toolscache.WaitForCacheSync(ctx.Done(), all...) {
			complete()
		}
	}()
	err = watched.Start(ctx)
	stop()
	<-told
	return err
}

// tellKind tells of a change as the informer has it.
func tellKind(tell func(classify.Event), of any, deleted bool) {
	switch of := of.(type) {
	case *corev1.Namespace:
		n := namespaceOf(&of.ObjectMeta)
		tell(classify.Event{Namespace: &n, Deleted: deleted})
	case *crd.Subnet:
		tell(classify.Event{Subnet: of, Deleted: deleted})
	case *crd.AddressClaim:
		tell(classify.Event{Claim: of, Deleted: deleted})
	case *crd.PodSubnetTopology:
		tell(classify.Event{Topology: true})
	}
}

// stripNamespace leaves what topologies select by.
func stripNamespace(of any) (any, error) {
	n, is := of.(*corev1.Namespace)
	if !is {
		return of, nil
	}
	return &corev1.Namespace{TypeMeta: n.TypeMeta, ObjectMeta: metav1.ObjectMeta{Name: n.Name, UID: n.UID, ResourceVersion: n.ResourceVersion, Labels: n.Labels}}, nil
}
