package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/enipool/enipool/pkg/devices"
)

const slicesResource = "resourceslices"

// unregistered is how long a kubelet may take to find the plugin. One that has not by then knows no dynamic resource allocation.
const unregistered = 30 * time.Second

// Claims is who knows the claims of the node's pods: the plugin that the kubelet asks.
type Claims interface {
	Claims() []devices.Claim
	// Registered tells whether the kubelet has claims prepared: without it pods with claims would be stuck here.
	Registered() bool
	// Changed returns the channel that gets a value when one of them has another answer.
	Changed() <-chan struct{}
}

// Devices keeps the node's ResourceSlice, by which the scheduler counts its addresses where dynamic resource allocation does
// that. Its methods may be called from several goroutines.
type Devices struct {
	node   string
	rest   *rest.RESTClient
	view   *view // of the Node, who owns the slice
	log    *slog.Logger
	claims Claims
	off    bool // what an agent before has shown is taken away

	watch  toolscache.SharedIndexInformer
	first  toolscache.ResourceEventHandlerRegistration
	moved  chan struct{}
	failed string // the last error, once it is in the log

	mu     sync.Mutex
	total  bool // it is known how many pods can have addresses
	told   bool // and which ENIs there are
	is     devices.Node
	own    *resourcev1.ResourceSlice // as our last write left it
	offers bool                      // the slice has an address
	single bool                      // the API server has one pod alone take a device: devices can't count addresses there
	since  time.Time                 // since when that is so, or not so
}

// newResourceAPI returns what asks the API server for the kinds of dynamic resource allocation. It does not call it.
func newResourceAPI(config *rest.Config) (*rest.RESTClient, error) {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(resourcev1.SchemeGroupVersion, &resourcev1.ResourceSlice{}, &resourcev1.ResourceSliceList{}, &resourcev1.ResourceClaim{})
	metav1.AddToGroupVersion(scheme, resourcev1.SchemeGroupVersion)
	config = rest.CopyConfig(config)
	config.UserAgent, config.APIPath, config.GroupVersion = "enipool-agent", "/apis", &resourcev1.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	return rest.RESTClientFor(config)
}

// newDevices prepares the watch of the slices that are ours.
func newDevices(options Options, config *rest.Config, v *view) (*Devices, error) {
	client, err := newResourceAPI(config)
	if err != nil {
		return nil, err
	}
	d := &Devices{node: options.Node, rest: client, view: v, log: options.Log, claims: options.Claims, off: options.Claims == nil, moved: make(chan struct{}, 1), since: time.Now()}
	which := fields.AndSelectors(fields.OneTermEqualSelector(resourcev1.ResourceSliceSelectorNodeName, options.Node),
		fields.OneTermEqualSelector(resourcev1.ResourceSliceSelectorDriver, Driver))
	d.watch, d.first, err = newWatch(toolscache.NewListWatchFromClient(client, slicesResource, metav1.NamespaceAll, which),
		&resourcev1.ResourceSlice{}, func(in any) (any, error) { return in, nil }, d.sliceEvent, options.Log)
	return d, err
}

// sliceEvent hears of what the agent, or a kubelet that starts, did to a slice.
func (d *Devices) sliceEvent(was, is *resourcev1.ResourceSlice) {
	if is == nil && was != nil {
		d.mu.Lock()
		if d.own != nil && !older(was.ResourceVersion, d.own.ResourceVersion) {
			d.own = nil
		}
		d.mu.Unlock()
	}
	signalChange(d.moved)
}

// ENIs says which ENIs the node has: the IDs of those that have addresses for pods, in allocation order, and the slots of each.
func (d *Devices) ENIs(ids []string, perENI int) {
	d.mu.Lock()
	changed := !d.told || perENI != d.is.PerENI || !slices.Equal(ids, d.is.ENIs)
	d.told, d.is.ENIs, d.is.PerENI = true, ids, perENI
	d.mu.Unlock()
	if changed {
		signalChange(d.moved)
	}
}

// setTotal says how many pods can have addresses.
func (d *Devices) setTotal(n int) {
	d.mu.Lock()
	changed := !d.total || d.is.Total != n
	d.total, d.is.Total = true, n
	d.mu.Unlock()
	if changed {
		signalChange(d.moved)
	}
}

// shown tells whether the slice has an address, so that the scheduler need not count by the Node.
func (d *Devices) shown() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.offers
}

// leavesIt tells whether the Node is to count in place of devices, because its kubelet has no claims prepared, or the API server lets one pod alone take
// a device, and after how long that may be so, 0 if time alone does not make it so.
func (d *Devices) leavesIt(now time.Time) (is bool, after time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.offers || len(d.claims.Claims()) > 0 {
		return false, 0
	} else if d.single {
		return true, 0
	} else if d.claims.Registered() {
		return false, 0
	}
	after = max(d.since.Add(unregistered).Sub(now), 0)
	return after == 0, after
}

// run brings the slice to what it should be, and back when others change it, until ctx ends. What it showed stays: the
// next agent goes on from it, and if there is none the kubelet takes it away half a minute later.
func (d *Devices) run(ctx context.Context) {
	var claims <-chan struct{}
	if !d.off {
		claims = d.claims.Changed()
	}
	select {
	case <-ctx.Done():
		return
	case <-d.first.HasSyncedChecker().Done():
	}
	backoff := retry
	for ctx.Err() == nil {
		err := d.writeDue(ctx)
		d.logFailure(err)
		wait := (<-chan time.Time)(nil)
		moved := (<-chan struct{})(d.moved)
		if err != nil {
			wait, moved = time.After(backoff.Step()), nil // however often it changes meanwhile
		} else {
			backoff = retry
		}
		select {
		case <-ctx.Done():
		case <-claims:
			d.view.recount() // who has an address reserved
		case <-moved:
		case <-wait:
		}
	}
}

// logFailure logs what keeps the slice from being written, unless that passes by itself.
func (d *Devices) logFailure(err error) {
	text := ""
	if err != nil && !isPassing(err) && !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
		text = err.Error()
	}
	if text != "" && text != d.failed {
		d.log.Warn("the node's ResourceSlice can't be written", "error", err, "todo", "see that conf/kubernetes/dra is applied")
	}
	d.failed = text
}

// Lookup returns a claim with the devices that the scheduler has allocated to it, as the API server has it.
func (d *Devices) Lookup(ctx context.Context, claim devices.Claim) (devices.Claim, error) {
	var is resourcev1.ResourceClaim
	if err := d.rest.Get().Namespace(claim.Namespace).Resource("resourceclaims").Name(claim.Name).Do(ctx).Into(&is); err != nil {
		return claim, fmt.Errorf("read the ResourceClaim %s of %s: %w", claim.Name, claim.Namespace, err)
	}
	if string(is.UID) != claim.UID {
		return claim, fmt.Errorf("read the ResourceClaim %s of %s: it is another one by now", claim.Name, claim.Namespace)
	}
	if is.Status.Allocation == nil {
		return claim, errors.New("the ResourceClaim is allocated to nothing")
	}
	for _, r := range is.Status.Allocation.Devices.Results {
		looks := r.AdminAccess != nil && *r.AdminAccess // the scheduler counts it as nothing taken
		if r.Driver == Driver && cmp.Or(r.Pool, d.node) == d.node && !looks {
			claim.Devices = append(claim.Devices, r.Device)
		}
	}
	return claim, nil
}
