// Package cluster is the operator's API server: the lease by which it leads, and the objects that it reads and writes.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/enipool/enipool/pkg/kube"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator"
)

// page is how many objects a list asks for at once: about 8 MB of nodes that run many pods.
const page = 500

// Objects implements operator.Objects with a real API server.
type Objects struct {
	config *rest.Config
	scheme *runtime.Scheme
	client client.Client // without a cache
	log    *slog.Logger
	silent *silence
}

// New prepares all that the methods need. It does not call the API server.
func New(config *rest.Config, log *slog.Logger) (*Objects, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, crd.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("prepare to talk to the API server: %w", err)
		}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("prepare to talk to the API server: %w", err)
	}
	return &Objects{config, scheme, c, log, &silence{}}, nil
}

// ReadAll implements operator.Objects.
func (o *Objects) ReadAll(ctx context.Context) (all operator.Cluster, err error) {
	nodes, err := readKind(ctx, o.client, ofNodes, page, func(l *corev1.NodeList) []corev1.Node { return l.Items })
	if err != nil {
		return all, err
	}
	for _, n := range nodes {
		all.Nodes = append(all.Nodes, nodeOf(n))
	}
	if all.Networks, err = readKind(ctx, o.client, ofNodes, page, func(l *crd.NodeNetworkList) []crd.NodeNetwork { return l.Items }); err != nil {
		return all, err
	}
	all.Subnets, err = readKind(ctx, o.client, ofNodes, page, func(l *crd.SubnetList) []crd.Subnet { return l.Items })
	return all, err
}

// readKind reads all objects of a kind page by page, and not from the API server's cache. If the state that the pages are of is
// forgotten in between, it begins again.
func readKind[L, T any, P interface {
	*L
	client.ObjectList
}](ctx context.Context, c client.Client, of part, page int64, items func(P) []T) ([]*T, error) {
	var all []*T
	for next := ""; ; {
		list := P(new(L)) // one for each page: what has been read is not decoded over
		err := c.List(ctx, list, client.Limit(page), client.Continue(next))
		if apierrors.IsResourceExpired(err) && next != "" {
			all, next = nil, ""
			continue
		}
		if err != nil {
			return nil, of.explain(err)
		}
		got := items(list)
		for i := range got {
			all = append(all, &got[i])
		}
		if next = list.GetContinue(); next == "" {
			return all, nil
		}
	}
}

// again is how long a watch that can't begin waits.
const again = 2 * time.Second

// Watch implements operator.Objects.
func (o *Objects) Watch(ctx context.Context, tell func(operator.Event)) {
	for said := ""; ctx.Err() == nil; {
		err := o.watchOnce(ctx, tell)
		if err != nil {
			o.silent.note(time.Now(), err)
		}
		if err != nil && ctx.Err() == nil && err.Error() != said {
			said = err.Error()
			o.log.Error("objects can't be watched; it is tried again", "error", ofNodes.explain(err))
		}
		select {
		case <-ctx.Done():
		case <-time.After(again):
		}
	}
}

// Silent implements operator.Watcher.
func (o *Objects) Silent() (since time.Time, why error) { return o.silent.since(time.Now()) }

// watchOnce watches until ctx ends, or returns why it can't begin. Once begun it copes with what happens by itself.
func (o *Objects) watchOnce(ctx context.Context, tell func(operator.Event)) error {
	failed := func(ctx context.Context, r *toolscache.Reflector, err error) {
		o.silent.note(time.Now(), err)
		toolscache.DefaultWatchErrorHandler(ctx, r, ofNodes.explain(err))
	}
	watched, err := cache.New(o.config, cache.Options{Scheme: o.scheme, DefaultTransform: cache.TransformStripManagedFields(), DefaultWatchErrorHandler: failed,
		ByObject: map[client.Object]cache.ByObject{&corev1.Node{}: {Transform: stripNode}}})
	if err != nil {
		return err
	}
	on := toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { tellOf(tell, o, false) },
		UpdateFunc: func(_, o any) { tellOf(tell, o, false) },
		DeleteFunc: func(o any) { tellOf(tell, o, true) },
	}
	for _, kind := range []client.Object{&corev1.Node{}, &crd.NodeNetwork{}, &crd.Subnet{}} {
		informer, err := watched.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return err
		}
		if _, err := informer.AddEventHandler(on); err != nil {
			return err
		}
	}
	return watched.Start(ctx)
}

// tellOf tells of a change as the informer has it.
func tellOf(tell func(operator.Event), of any, deleted bool) {
	if last, is := of.(toolscache.DeletedFinalStateUnknown); is {
		of = last.Obj
	}
	switch of := of.(type) {
	case *corev1.Node:
		n := nodeOf(of)
		tell(operator.Event{Node: &n, Deleted: deleted})
	case *crd.NodeNetwork:
		tell(operator.Event{Network: of, Deleted: deleted})
	case *crd.Subnet:
		tell(operator.Event{Subnet: of, Deleted: deleted})
	}
}

// stripNode leaves of a Node what nodeOf reads: with its images it is ten times as large.
func stripNode(of any) (any, error) {
	n, is := of.(*corev1.Node)
	if !is {
		return of, nil
	}
	return &corev1.Node{TypeMeta: n.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, UID: n.UID, ResourceVersion: n.ResourceVersion, Labels: n.Labels},
		Spec:       corev1.NodeSpec{ProviderID: n.Spec.ProviderID, Taints: slices.DeleteFunc(slices.Clone(n.Spec.Taints), func(t corev1.Taint) bool { return !isCut(t) && !isAgents(t) })},
		Status:     agentsStatus(n)}, nil
}

// agentsStatus returns what agents have put into the status of a Node.
func agentsStatus(n *corev1.Node) (s corev1.NodeStatus) {
	for _, c := range n.Status.Conditions {
		if c.Type == kube.Condition || c.Type == kube.NetworkReady {
			s.Conditions = append(s.Conditions, corev1.NodeCondition{Type: c.Type}) // whatever it says: that changes often
		}
	}
	if _, has := n.Status.Capacity[kube.Resource]; has {
		s.Capacity = corev1.ResourceList{kube.Resource: resource.Quantity{}}
	}
	return s
}

func isAgents(t corev1.Taint) bool { return t.Key == kube.Taint }

// hasAgent tells whether an agent tells on the Node how its pool is. A node of another CNI has none of that.
func hasAgent(n *corev1.Node) bool {
	s := agentsStatus(n)
	return len(s.Conditions)+len(s.Capacity) > 0 || slices.ContainsFunc(n.Spec.Taints, isAgents)
}

func nodeOf(n *corev1.Node) operator.Node {
	return operator.Node{Name: n.Name, Instance: operator.InstanceOf(n.Spec.ProviderID), Type: n.Labels[corev1.LabelInstanceTypeStable],
		Zone: n.Labels[corev1.LabelTopologyZone], Labels: n.Labels, Agent: hasAgent(n), Cut: slices.ContainsFunc(n.Spec.Taints, isCut)}
}

// isCut tells whether the taint says that the cluster does not reach the node. The cluster sets the first one when its kubelet has told nothing for
// a while, and people the other; a fresh node, which waits for its first addresses, has neither.
func isCut(t corev1.Taint) bool {
	return t.Key == corev1.TaintNodeUnreachable || t.Key == corev1.TaintNodeOutOfService
}

// ReadNode implements operator.Objects.
func (o *Objects) ReadNode(ctx context.Context, name string) (*crd.NodeNetwork, error) {
	n := &crd.NodeNetwork{}
	if err := o.client.Get(ctx, client.ObjectKey{Name: name}, n); err != nil {
		return nil, ofNodes.explain(err)
	}
	return n, nil
}

// WriteNode implements operator.Objects.
func (o *Objects) WriteNode(ctx context.Context, n *crd.NodeNetwork) (*crd.NodeNetwork, error) {
	n = n.DeepCopy() // the answer is decoded into it
	if err := o.client.Status().Update(ctx, n); err != nil {
		return nil, ofNodes.explain(err)
	}
	return n, nil
}

// DropFinalizer implements operator.Objects.
func (o *Objects) DropFinalizer(ctx context.Context, n *crd.NodeNetwork) error {
	next := n.DeepCopy()
	next.Finalizers = slices.DeleteFunc(next.Finalizers, func(f string) bool { return f == operator.Finalizer })
	return ofNodes.explain(o.client.Patch(ctx, next, client.MergeFromWithOptions(n, client.MergeFromWithOptimisticLock{})))
}

// WriteSubnet implements operator.Objects.
func (o *Objects) WriteSubnet(ctx context.Context, s *crd.Subnet) (*crd.Subnet, error) {
	s = s.DeepCopy()
	if err := o.client.Status().Update(ctx, s); err != nil {
		return nil, ofNodes.explain(err)
	}
	return s, nil
}

// CreateSubnet implements operator.Objects.
func (o *Objects) CreateSubnet(ctx context.Context, s *crd.Subnet) (*crd.Subnet, error) {
	s = s.DeepCopy()
	if err := o.client.Create(ctx, s); err != nil {
		return nil, ofNodes.explain(err)
	}
	return s, nil
}

// olderLeader is what the schema says of a status with an epoch below the one that is there.
const olderLeader = "an older leader"

// part is what of conf/kubernetes the API server must have for some objects.
type part struct{ kinds, role string }

var (
	ofNodes      = part{"conf/kubernetes/crds", "enipool-operator of conf/kubernetes/operator"}
	ofTopologies = part{"conf/kubernetes/topologies", "enipool-operator-topologies of conf/kubernetes/topologies"}
)

// explain tells errors apart as operator.Objects and classify.Objects promise, and says what people can do.
func (p part) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), isFailedTest(err), apierrors.IsInvalid(err) && strings.Contains(err.Error(), olderLeader):
		return fmt.Errorf("%w: %w", operator.ErrConflict, err)
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err) && !isObject(err):
		return fmt.Errorf("%w; install the kinds: kubectl apply --server-side --kustomize %s", err, p.kinds)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w: %w", operator.ErrGone, err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w; the role %s allows it, unless a policy of the cluster's refuses it", err, p.role)
	}
	return err
}

// isFailedTest tells whether an object is not as a JSON patch says that it is. What the API server does not take of a patched one it names.
func isFailedTest(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsInvalid(err) && errors.As(err, &status) && (status.Status().Details == nil || len(status.Status().Details.Causes) == 0)
}

// isObject tells whether what was not found is an object. A kind that the API server does not know has no name.
func isObject(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Name != ""
}
