package kube

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/enipool/enipool/pkg/devices"
	"github.com/enipool/enipool/pkg/eni"
)

// view is the last state that the API server told: the node's pods, and the node.
type view struct {
	node      string
	changed   chan struct{} // for the agent
	moved     chan struct{} // for the keeper
	pods      toolscache.SharedIndexInformer
	self      toolscache.SharedIndexInformer
	claims    Claims                                      // nil: the scheduler counts what pods ask for by the Node
	allPods   toolscache.ResourceEventHandlerRegistration // done once what there was at first has been told
	firstSelf toolscache.ResourceEventHandlerRegistration

	mu      sync.Mutex
	stale   bool // last is older than what pods holds
	last    load
	counted devices.Memory
	most    int    // pods that the node may hold, -1 if that is not known
	version string // of the node, as it was told last
	offered bool   // the node shows addresses for pods
	past    bool   // the cluster has gone back to an earlier state of it since somebody asked
}

// newView prepares the watches. The server filters, so that what comes here does not grow with
// the cluster. A pod that becomes bound to the node comes as added, one that finishes as deleted.
func newView(node string, server api, log *slog.Logger) (v *view, err error) {
	v = &view{node: node, changed: make(chan struct{}, 1), moved: make(chan struct{}, 1), stale: true, most: -1}
	pods := server.listWatch("pods", fields.AndSelectors(
		fields.OneTermEqualSelector("spec.nodeName", node),
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed))))
	self := server.listWatch("nodes", fields.OneTermEqualSelector("metadata.name", node))
	if v.pods, v.allPods, err = newWatch(pods, &corev1.Pod{}, stripPod, v.podEvent, log); err != nil {
		return nil, err
	}
	v.self, v.firstSelf, err = newWatch(self, &corev1.Node{}, stripNode, v.nodeEvent, log)
	return v, err
}

// newWatch calls back for every change of an object of a kind, with nil for what was
// not there before or is not after it.
func newWatch[T runtime.Object](from toolscache.ListerWatcher, kind T, strip toolscache.TransformFunc, do func(was, is T), log *slog.Logger) (
	informer toolscache.SharedIndexInformer, first toolscache.ResourceEventHandlerRegistration, err error) {
	informer = newInformer(from, kind)
	err = errors.Join(informer.SetTransform(strip), informer.SetWatchErrorHandler(func(_ *toolscache.Reflector, err error) {
		log.Debug("a watch ended", "error", err)
	}))
	if err != nil {
		return nil, nil, err
	}
	var none T
	first, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
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
	return informer, first, err
}

// run watches until ctx ends.
func (v *view) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, first := range []toolscache.ResourceEventHandlerRegistration{v.allPods, v.firstSelf} {
		group.Go(func() error {
			select {
			case <-ctx.Done():
			case <-first.HasSyncedChecker().Done(): // no event says so on a node without pods
				v.signalAll()
			}
			return nil
		})
	}
	for _, informer := range []toolscache.SharedIndexInformer{v.pods, v.self} {
		group.Go(func() error { informer.RunWithContext(ctx); return nil })
	}
	return group.Wait()
}

func (v *view) podEvent(was, is *corev1.Pod) {
	before, after := needOf(was, v.node), needOf(is, v.node)
	if v.claims != nil && reservationOf(was, v.node) != reservationOf(is, v.node) {
		v.recount()
	}
	if before == after {
		return // most updates are news of a pod's containers
	}
	v.mu.Lock()
	v.stale = true
	v.mu.Unlock()
	if before.addr = after.addr; before != after { // nobody waits for what it has
		v.signalAll()
	}
}

// recount has the load added up once more, since reservations have changed.
func (v *view) recount() {
	v.mu.Lock()
	v.stale = true
	v.mu.Unlock()
	signalChange(v.moved)
}

// older tells whether one state of the cluster is from before another, as far as that is known.
func older(one, other string) bool {
	order, err := resourceversion.CompareResourceVersion(one, other)
	return err == nil && order < 0
}

// wentBack tells, once, that the cluster was brought back to an earlier state, as from a backup of it.
// That is the only cause for which a node that is told is older than the one told before.
func (v *view) wentBack() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	past := v.past
	v.past = false
	return past
}

func (v *view) nodeEvent(_, is *corev1.Node) {
	defer signalChange(v.moved)
	if is == nil {
		return // it may come back, and its pods are still here
	}
	most := -1
	if pods, ok := is.Status.Allocatable[corev1.ResourcePods]; ok {
		most = int(pods.Value())
	}
	v.mu.Lock()
	v.past = v.past || older(is.ResourceVersion, v.version)
	v.version = is.ResourceVersion
	shown := is.Status.Allocatable[Resource]
	same := most == v.most && v.offered == (shown.Value() > 0)
	v.most, v.offered = most, shown.Value() > 0
	v.mu.Unlock()
	if !same {
		v.signalAll()
	}
}

// offers tells whether the node shows an address for a pod.
func (v *view) offers() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.offered
}

// signalAll tells all who want to know that something changed.
func (v *view) signalAll() {
	signalChange(v.changed)
	signalChange(v.moved)
}

// signalChange fills a channel of capacity 1.
func signalChange(c chan struct{}) {
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

// currentLoad returns what the node's pods need, and whether it is known.
func (v *view) currentLoad() (load, bool) {
	if !v.allPods.HasSynced() {
		return load{}, false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.stale {
		return v.last, true
	}
	list := v.pods.GetStore().List()
	v.last, v.stale = sumLoad(list, v.node), false
	if v.claims != nil {
		v.last.reserved, v.last.unreserved = v.counted.Count(reservations(list, v.node), v.claims.Claims())
	}
	return v.last, true
}

// readNode returns the node's object, which is not to be changed.
func (v *view) readNode() (*corev1.Node, bool) {
	if !v.firstSelf.HasSynced() {
		return nil, false
	}
	object, there, err := v.self.GetStore().GetByKey(v.node)
	if err != nil || !there {
		return nil, false
	}
	node, is := object.(*corev1.Node)
	return node, is
}

// nodeReference is the node as events name it. Before it is known its name stands for its UID, as
// in the kubelet's events.
func (v *view) nodeReference() corev1.ObjectReference {
	r := corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: v.node, UID: types.UID(v.node)}
	if node, ok := v.readNode(); ok {
		r.UID = node.UID
	}
	return r
}

// load is what the pods of a node need. The scheduler counts a pod until it is gone.
type load struct {
	pods   []eni.Pod              // but for those that are being deleted
	ending []eni.Pod              // those
	kept   []eni.TopologyPod      // of topologies, which are none of the others
	addrs  map[eni.Pod]netip.Addr // that the kubelet shows of pods, whoever's they are
	asked  int                    // addresses that pods ask the scheduler for
	silent int                    // pods that need one and did not ask
	// Where there may be devices: the addresses that pods have reserved of them, and the pods that need one and have not.
	reserved, unreserved int
}

// sumLoad adds up what pods need.
func sumLoad(list []any, node string) load {
	needed := load{pods: make([]eni.Pod, 0, len(list)), addrs: make(map[eni.Pod]netip.Addr, len(list))}
	for _, object := range list {
		pod, _ := object.(*corev1.Pod)
		n := needOf(pod, node)
		if n.pod == (eni.Pod{}) {
			continue
		}
		switch {
		case n.of != "": // no more addresses for any pod would help it
			if !n.ending {
				needed.kept = append(needed.kept, eni.TopologyPod{Pod: n.pod, Topology: n.of})
			}
		case n.ending:
			needed.ending = append(needed.ending, n.pod)
		default:
			needed.pods = append(needed.pods, n.pod)
		}
		if n.addr.IsValid() {
			needed.addrs[n.pod] = n.addr
		}
		needed.asked += n.asked
		if n.asked == 0 && n.of == "" {
			needed.silent++
		}
	}
	slices.SortFunc(needed.pods, comparePods)
	slices.SortFunc(needed.kept, func(a, b eni.TopologyPod) int { return comparePods(a.Pod, b.Pod) })
	return needed
}

func comparePods(a, b eni.Pod) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
