package kube

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/enipool/enipool/pkg/eni"
)

// view is the last state that the API server told: the node's pods, and the node.
type view struct {
	node    string
	cache   cache.Cache
	changed chan struct{} // for the agent
	moved   chan struct{} // for the keeper
	pods    toolscache.ResourceEventHandlerRegistration
	self    toolscache.ResourceEventHandlerRegistration

	mu    sync.Mutex
	stale bool // last is older than what cache holds
	last  load
	most  int // pods that the node may hold, -1 if that is not known
}

type watchOptions struct {
	http   *http.Client
	scheme *runtime.Scheme
	mapper meta.RESTMapper
	log    *slog.Logger
}

func newView(node string, config *rest.Config, o watchOptions) (*view, error) {
	never := time.Duration(0)
	c, err := cache.New(config, cache.Options{
		HTTPClient:                  o.http,
		Scheme:                      o.scheme,
		Mapper:                      o.mapper,
		SyncPeriod:                  &never, // it would only repeat what is known
		ReaderFailOnMissingInformer: true,
		NewInformer:                 newInformer,
		DefaultWatchErrorHandler: func(_ context.Context, _ *toolscache.Reflector, err error) {
			o.log.Debug("a watch ended", "error", err)
		},
		// The server filters, so that what comes here does not grow with the cluster. A pod
		// that becomes bound to the node comes as added, one that finishes as deleted.
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}: {Transform: stripPod, Field: fields.AndSelectors(
				fields.OneTermEqualSelector("spec.nodeName", node),
				fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
				fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)))},
			&corev1.Node{}: {Transform: stripNode, Field: fields.OneTermEqualSelector("metadata.name", node)},
		},
	})
	if err != nil {
		return nil, err
	}
	v := &view{node: node, cache: c, changed: make(chan struct{}, 1), moved: make(chan struct{}, 1), stale: true, most: -1}
	if v.pods, err = listen(c, &corev1.Pod{}, v.podEvent); err != nil {
		return nil, err
	}
	v.self, err = listen(c, &corev1.Node{}, v.nodeEvent)
	return v, err
}

// listen calls back for every change of an object of a kind, with nil for what was
// not there before or is not after it.
func listen[T client.Object](c cache.Cache, kind T, do func(was, is T)) (toolscache.ResourceEventHandlerRegistration, error) {
	informer, err := c.GetInformer(context.Background(), kind, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, err
	}
	var none T
	return informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(is any) { do(none, is.(T)) },
		UpdateFunc: func(was, is any) { do(was.(T), is.(T)) },
		DeleteFunc: func(was any) {
			if lost, ok := was.(toolscache.DeletedFinalStateUnknown); ok {
				was = lost.Obj
			}
			gone, _ := was.(T)
			do(gone, none)
		},
	})
}

// run watches until ctx ends.
func (v *view) run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, first := range []toolscache.ResourceEventHandlerRegistration{v.pods, v.self} {
		g.Go(func() error {
			select {
			case <-ctx.Done():
			case <-first.HasSyncedChecker().Done(): // no event says so on a node without pods
				v.wake()
			}
			return nil
		})
	}
	g.Go(func() error { return v.cache.Start(ctx) })
	return g.Wait()
}

func (v *view) podEvent(was, is *corev1.Pod) {
	if needOf(was, v.node) == needOf(is, v.node) {
		return // most updates are news of a pod's containers
	}
	v.mu.Lock()
	v.stale = true
	v.mu.Unlock()
	v.wake()
}

func (v *view) nodeEvent(_, is *corev1.Node) {
	poke(v.moved)
	if is == nil {
		return // it may come back, and its pods are still here
	}
	most := -1
	if pods, ok := is.Status.Allocatable[corev1.ResourcePods]; ok {
		most = int(pods.Value())
	}
	v.mu.Lock()
	same := most == v.most
	v.most = most
	v.mu.Unlock()
	if !same {
		v.wake()
	}
}

// wake tells all who want to know that something changed.
func (v *view) wake() {
	poke(v.changed)
	poke(v.moved)
}

// poke fills a channel of capacity 1.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (v *view) maxPods() (int, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return max(v.most, 0), v.most >= 0
}

// load returns what the node's pods need, and whether it is known.
func (v *view) load() (load, bool) {
	if !v.pods.HasSynced() {
		return load{}, false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.stale {
		return v.last, true
	}
	var list corev1.PodList
	if err := v.cache.List(context.Background(), &list, client.UnsafeDisableDeepCopy); err != nil {
		return v.last, false // which it can't be: the cache has been filled
	}
	v.last, v.stale = sum(list.Items, v.node), false
	return v.last, true
}

// read returns the node's object.
func (v *view) read() (*corev1.Node, bool) {
	var node corev1.Node
	if !v.self.HasSynced() || v.cache.Get(context.Background(), client.ObjectKey{Name: v.node}, &node) != nil {
		return nil, false
	}
	return &node, true
}

// reference is the node as events name it. Before it is known its name stands for its UID, as
// in the kubelet's events.
func (v *view) reference() corev1.ObjectReference {
	r := corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: v.node, UID: types.UID(v.node)}
	if node, ok := v.read(); ok {
		r.UID = node.UID
	}
	return r
}

// load is what the pods of a node need. The scheduler counts a pod until it is gone.
type load struct {
	pods   []eni.Pod // but for those that are being deleted
	ending []eni.Pod // those
	asked  int       // addresses that pods ask the scheduler for
	silent int       // pods that need one and did not ask
}

func sum(list []corev1.Pod, node string) load {
	l := load{pods: make([]eni.Pod, 0, len(list))}
	for i := range list {
		n := needOf(&list[i], node)
		if n.pod == (eni.Pod{}) {
			continue
		}
		if n.ending {
			l.ending = append(l.ending, n.pod)
		} else {
			l.pods = append(l.pods, n.pod)
		}
		l.asked += n.asked
		if n.asked == 0 {
			l.silent++
		}
	}
	slices.SortFunc(l.pods, func(a, b eni.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return l
}
