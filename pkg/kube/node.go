// Package kube connects the agent with its Kubernetes cluster: it watches the pods
// of one node, and tells the cluster how that node does. It works on from the last
// state while the API server is away.
package kube

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/health"
)

// Options says whose node this is and how its cluster is reached.
type Options struct {
	Node   string       // the name of the Node object
	Config *rest.Config // see Load
	Log    *slog.Logger // nil: nothing is logged
	Taint  bool         // the node may be tainted; without it a taint of an earlier agent is removed
	// Claims knows the claims that reserve addresses, where a ResourceSlice tells the scheduler of them; nil: the Node does.
	Claims Claims
	// DevicesLeft has the ResourceSlice of an agent before deleted, where Claims is nil.
	DevicesLeft bool
}

// Node is one node of a cluster, as the API server tells it. Its methods may be
// called from several goroutines, before Run begins too.
type Node struct {
	view   *view
	keeper *keeper
	events *events
	object *Object
	slice  *Devices // nil: there is none, and none of before
}

// New prepares all that Run needs. It does not call the API server.
func New(options Options) (*Node, error) {
	if err := options.validate(); err != nil {
		return nil, fmt.Errorf("watch the node's pods: %w", err)
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	n, err := assembleNode(options)
	if err != nil {
		return nil, fmt.Errorf("prepare to talk to the API server: %w", err)
	}
	return n, nil
}

func (o Options) validate() error {
	switch {
	case o.Node == "":
		return errors.New("the node has no name; give the agent the name of its Node object")
	case o.Config == nil:
		return errors.New("no API server is named")
	}
	return nil
}

func assembleNode(options Options) (*Node, error) {
	config := rest.CopyConfig(options.Config)
	config.Wrap((&link{log: options.Log}).wrapTransport)
	server, err := newAPI(config)
	if err != nil {
		return nil, err
	}
	view, err := newView(options.Node, server, options.Log)
	if err != nil {
		return nil, err
	}
	object, err := newObject(options.Node, config, view, options.Log)
	if err != nil {
		return nil, err
	}
	var slice *Devices
	if options.Claims != nil || options.DevicesLeft {
		if slice, err = newDevices(options, config, view); err != nil {
			return nil, err
		}
	}
	events := newEvents(options.Node, server, options.Log)
	keeper := newKeeper(view, server, events, options)
	if options.Claims != nil {
		view.claims, keeper.slice = options.Claims, slice
	}
	return &Node{view, keeper, events, object, slice}, nil
}

// Run watches and tells until ctx ends. It needs no API server to begin, and waits
// for one that is away as long as it takes. What it told stays in the cluster when
// it ends: the next agent takes it over.
func (n *Node) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return n.view.run(ctx) })
	group.Go(func() error { n.keeper.run(ctx); return nil })
	group.Go(func() error { n.events.run(ctx); return nil })
	group.Go(func() error { n.object.run(ctx); return nil })
	if n.slice != nil {
		group.Go(func() error { n.slice.watch.RunWithContext(ctx); return nil })
		group.Go(func() error { n.slice.run(ctx); return nil })
	}
	return group.Wait()
}

// Pods returns the pods of the node that need an address, sorted by namespace and
// name, and whether they are known: not before the API server told them for the
// first time. After that it is the last state that it told. A pod that is being
// deleted is not among them: it gets no address any more, and the one that it has is in
// the node cache. The slice may be kept but not changed.
func (n *Node) Pods() (list []eni.Pod, known bool) {
	needed, known := n.view.currentLoad()
	return needed.pods, known
}

// Ending returns those that Pods leaves out because they are being deleted, in no order: they
// may hold addresses until they are gone. The slice may be kept but not changed.
func (n *Node) Ending() []eni.Pod {
	needed, _ := n.view.currentLoad()
	return needed.ending
}

// TopologyPods returns the pods of topologies, which are in none of the other lists, sorted by namespace and name. The slice may be kept but not
// changed.
func (n *Node) TopologyPods() []eni.TopologyPod {
	needed, _ := n.view.currentLoad()
	return needed.kept
}

// Object returns the node's NodeNetwork. The API server is not asked for it before it is used.
func (n *Node) Object() *Object { return n.object }

// PodIPs returns the addresses that the kubelet shows of the node's pods, whichever plugin gave them: the first
// of each pod that has one. The map may be kept but not changed.
func (n *Node) PodIPs() map[eni.Pod]netip.Addr {
	needed, _ := n.view.currentLoad()
	return needed.addrs
}

// MaxPods returns how many pods the node may hold, those in the host's network
// among them, and whether that is known.
func (n *Node) MaxPods() (most int, known bool) { return n.view.maxPods() }

// Changed returns the channel that gets a value when Pods or MaxPods may have
// another answer. Changes that come together are one.
func (n *Node) Changed() <-chan struct{} { return n.view.changed }

// Report says what the cluster is to know of the node's addresses from now on: Run
// brings the node's condition, its taint and its capacity there, and keeps them
// there. It returns at once.
func (n *Node) Report(r health.Report) { n.keeper.report(r) }

// ReportNetwork says whether pods of the node can have networks of enipool, which Run brings to the node's condition NetworkReady and
// keeps there. Before the first call that stays what it is, so that a start of the agent changes nothing. It returns at once.
func (n *Node) ReportNetwork(w Network) { n.keeper.reportNetwork(w) }

// Offers tells whether the Node object, or the node's ResourceSlice, shows an address for a pod, as it is watched. Changed gets a
// value when it begins to.
func (n *Node) Offers() bool {
	if slice := n.keeper.slice; slice != nil {
		if counts, _ := slice.leavesIt(time.Now()); !counts {
			return slice.shown()
		}
	}
	return n.view.offers()
}

// Devices returns what keeps the node's ResourceSlice, nil where there is none to keep.
func (n *Node) Devices() *Devices { return n.slice }

// Withhold says whether the cluster is to know nothing of the node's addresses: then Run takes the
// condition and the taint off the Node object, and what is reported shows only once that has ended. The
// resource stays as it is: no pod that asks for an address would fit on the node without it. It
// returns at once.
func (n *Node) Withhold(is bool) { n.keeper.withhold(is) }

// Name returns the name of the Node object.
func (n *Node) Name() string { return n.view.node }

// Warn writes an event that says what is wrong with a pod. Repeated ones become
// one with a count, and what is too much is dropped. It returns at once.
func (n *Node) Warn(pod eni.Pod, reason, message string) {
	n.events.queueEvent(event{about: podReference(pod), kind: corev1.EventTypeWarning, reason: reason, message: message})
}

// Tell writes an event about the node itself: a warning, or what is well again. It returns at once.
func (n *Node) Tell(warning bool, reason, message string) {
	kind := corev1.EventTypeNormal
	if warning {
		kind = corev1.EventTypeWarning
	}
	n.events.queueEvent(event{about: n.view.nodeReference(), kind: kind, reason: reason, message: message})
}
