package kube

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/enipool/enipool/pkg/devices"
	"github.com/enipool/enipool/pkg/health"
)

// kubeletClaims stand for the plugin that the kubelet asks.
type kubeletClaims struct {
	changed    chan struct{}
	mu         sync.Mutex
	registered bool
	claims     []devices.Claim
}

func (k *kubeletClaims) Claims() []devices.Claim {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.claims
}

func (k *kubeletClaims) Registered() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.registered
}

func (k *kubeletClaims) Changed() <-chan struct{} { return k.changed }

func (k *kubeletClaims) set(registered bool, claims ...devices.Claim) {
	k.mu.Lock()
	k.registered, k.claims = registered, claims
	k.mu.Unlock()
	signalChange(k.changed)
}

// deviceRights are those of conf/kubernetes/dra.
var deviceRights = []rbacv1.PolicyRule{
	{APIGroups: []string{"resource.k8s.io"}, Resources: []string{"resourceslices"}, Verbs: []string{"list", "watch", "create", "update", "delete"}},
	{APIGroups: []string{"resource.k8s.io"}, Resources: []string{"resourceclaims"}, Verbs: []string{"get"}},
}

// devicesAgent returns the config of an agent that has those beside its own.
func (c *control) devicesAgent(t *testing.T) *rest.Config {
	t.Helper()
	config := c.agent(t, "agent", rights)
	c.do(t, c.admin.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "devices"}, Rules: deviceRights}))
	c.do(t, c.admin.Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "devices"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "devices"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "agent"}}}))
	return config
}

// runRealWith runs a Node until the test ends or stop is called.
func runRealWith(t *testing.T, config *rest.Config, options Options) (n *Node, stop func()) {
	t.Helper()
	options.Node, options.Config = here, config
	n, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	return n, runNode(t, n)
}

// runNode runs it until the test ends or stop is called.
func runNode(t *testing.T, n *Node) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// slicesOf returns the slices that the API server has.
func (c *control) slicesOf(t *testing.T) []resourcev1.ResourceSlice {
	t.Helper()
	var list resourcev1.ResourceSliceList
	c.do(t, c.admin.List(t.Context(), &list))
	return list.Items
}

// counts returns how many addresses the node's devices have, by name.
func (c *control) counts(t *testing.T) map[string]int64 {
	t.Helper()
	counts := map[string]int64{}
	for _, s := range c.slicesOf(t) {
		for _, d := range s.Spec.Devices {
			q := d.Capacity["addresses"].Value
			counts[d.Name] += q.Value()
		}
	}
	return counts
}

// A real API server takes the node's devices, with the rights that the agent has; what a kubelet wipes comes back, and a new agent
// changes nothing that is right.
func TestRealDevices(t *testing.T) {
	c := startControl(t)
	c.newNode(t, here)
	agent := c.devicesAgent(t)
	claims := &kubeletClaims{changed: make(chan struct{}, 1)}
	want := func(what string, counts map[string]int64) {
		t.Helper()
		await(t, what, func() bool { return cmp.Equal(counts, c.counts(t)) })
	}

	options := Options{Claims: claims}
	n, stop := runRealWith(t, agent, options)
	n.Devices().ENIs([]string{"eni-a", "eni-b"}, 15)
	n.Report(health.Report{Capacity: 31})
	await(t, "its pods are known", func() bool { _, known := n.Pods(); return known })
	if n.Offers() {
		t.Error("devices are shown though no kubelet prepares claims")
	}
	claims.set(true)
	want("a device per ENI, and one that may be attached", map[string]int64{"eni0": 15, "eni1": 15, "eni2": 1})
	await(t, "the agent sees it", n.Offers)
	first := c.slicesOf(t)[0]
	if o := first.OwnerReferences; first.Name != here+"-enipool.io" || len(o) != 1 || o[0].UID != c.node(t, here).UID {
		t.Errorf("slice %s belongs to %+v", first.Name, o)
	}
	if a := first.Spec.Devices[1].Attributes["eni"].StringValue; a == nil || *a != "eni-b" {
		t.Errorf("the second device is %+v", first.Spec.Devices[1])
	}
	if is := c.node(t, here); showsResource(is) {
		t.Errorf("the Node counts too: %v", is.Status.Capacity)
	}

	// What is reserved stays on its device when there is less.
	claims.set(true, devices.Claim{UID: "1", Devices: []string{"eni1", "eni1", "eni2"}})
	n.Report(health.Report{Capacity: 10})
	want("fewer addresses", map[string]int64{"eni0": 7, "eni1": 2, "eni2": 1})
	if is := c.slicesOf(t)[0]; is.UID != first.UID || is.Spec.Pool.Generation <= first.Spec.Pool.Generation {
		t.Errorf("another slice, or generation %d after %d", is.Spec.Pool.Generation, first.Spec.Pool.Generation)
	}

	// A kubelet that starts removes what drivers have shown.
	c.do(t, c.admin.DeleteAllOf(t.Context(), &resourcev1.ResourceSlice{}))
	want("it is back", map[string]int64{"eni0": 7, "eni1": 2, "eni2": 1})

	// The agent ends, as by kill -9: what it showed stays, and the next one has nothing to write.
	before := c.slicesOf(t)[0]
	stop()
	n, stop = runRealWith(t, agent, options)
	n.Devices().ENIs([]string{"eni-a", "eni-b"}, 15)
	n.Report(health.Report{Capacity: 10})
	await(t, "the next agent goes on from it", n.Offers)
	n.Report(health.Report{Capacity: 11})
	want("the next agent writes", map[string]int64{"eni0": 8, "eni1": 2, "eni2": 1})
	if is := c.slicesOf(t)[0]; is.UID != before.UID || is.Spec.Pool.Generation != before.Spec.Pool.Generation+1 {
		t.Errorf("generation %d of %s after %d of %s", is.Spec.Pool.Generation, is.UID, before.Spec.Pool.Generation, before.UID)
	}
	stop()

	// The key is false: the slice goes, and the Node counts again.
	n, _ = runRealWith(t, agent, Options{DevicesLeft: true})
	n.Report(health.Report{Capacity: 11})
	await(t, "no slice is left", func() bool { return len(c.slicesOf(t)) == 0 })
	await(t, "the Node counts", func() bool { return offersNumber(c.node(t, here), 11) })
}

// The scheduler's answer is read from the claim itself, and a claim of another pod by the same name is none.
func TestRealClaimIsLookedUp(t *testing.T) {
	c := startControl(t)
	c.newNode(t, here)
	agent := c.devicesAgent(t)
	n, _ := runRealWith(t, agent, Options{Claims: &kubeletClaims{changed: make(chan struct{}, 1)}})
	var space corev1.Namespace
	c.do(t, c.admin.Get(t.Context(), client.ObjectKey{Name: "default"}, &space))
	space.Labels["resource.kubernetes.io/admin-access"] = "true"
	c.do(t, c.admin.Update(t.Context(), &space))
	request := func(name string, admin *bool) resourcev1.DeviceRequest {
		return resourcev1.DeviceRequest{Name: name, Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "pod-address.enipool.io", AdminAccess: admin}}
	}
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "address"}, Spec: resourcev1.ResourceClaimSpec{
		Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{request("address", nil), request("look", new(true))}}}}
	c.do(t, c.admin.Create(t.Context(), claim))
	asked := devices.Claim{UID: string(claim.UID), Namespace: "default", Name: "address"}
	if _, err := n.Devices().Lookup(t.Context(), asked); err == nil {
		t.Error("a claim that is allocated to nothing is taken")
	}
	claim.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
		{Request: "address", Driver: "gpu.example.com", Pool: here, Device: "gpu0"}, {Request: "address", Driver: Driver, Pool: here, Device: "eni1"},
		{Request: "look", Driver: Driver, Pool: here, Device: "eni0", AdminAccess: new(true)}}}} // which takes nothing
	c.do(t, c.admin.Status().Update(t.Context(), claim))
	got, err := n.Devices().Lookup(t.Context(), asked)
	c.do(t, err)
	if want := []string{"eni1"}; !slices.Equal(got.Devices, want) {
		t.Errorf("devices %v, want %v", got.Devices, want)
	}
	asked.UID = "another"
	if _, err := n.Devices().Lookup(t.Context(), asked); err == nil {
		t.Error("another claim of that name is taken")
	}
	asked.Name = "gone"
	if _, err := n.Devices().Lookup(t.Context(), asked); !apierrors.IsNotFound(err) {
		t.Errorf("a claim that is gone: %v", err)
	}
}

// A kubelet that knows no dynamic resource allocation never asks for the plugin: the Node counts as it does without devices, until there is
// another kubelet.
func TestRealNodeCountsWhereTheKubeletKnowsNoDevices(t *testing.T) {
	c := startControl(t)
	c.newNode(t, here)
	claims := &kubeletClaims{changed: make(chan struct{}, 1)}
	n, err := New(Options{Node: here, Config: c.devicesAgent(t), Claims: claims})
	c.do(t, err)
	n.slice.since = n.slice.since.Add(-unregistered)
	runNode(t, n)
	n.Devices().ENIs([]string{"eni-a"}, 15)
	n.Report(health.Report{Capacity: 11})
	await(t, "the Node counts", func() bool { return offersNumber(c.node(t, here), 11) && n.Offers() })
	c.runPod(t, "asks", here, func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: resourceQuantity(1), Limits: resourceQuantity(1)}
	})
	n.Report(health.Report{Capacity: 12})
	await(t, "the scheduler takes the pod off the Node's number, and nobody else", func() bool { return offersNumber(c.node(t, here), 12) })
	claims.set(true)
	await(t, "the devices count", func() bool {
		return cmp.Equal(map[string]int64{"eni0": 11}, c.counts(t)) && !showsResource(c.node(t, here))
	})
}

// An API server whose gate is off drops what makes a device one of several pods, and says nothing of it.
func TestRealNodeCountsWhereTheAPIServerLetsOnePodAloneTakeADevice(t *testing.T) {
	c := startControl(t, "DRAConsumableCapacity=false")
	c.newNode(t, here)
	n, err := New(Options{Node: here, Config: c.devicesAgent(t), Claims: &kubeletClaims{registered: true, changed: make(chan struct{}, 1)}})
	c.do(t, err)
	runNode(t, n)
	n.Devices().ENIs([]string{"eni-a"}, 15)
	n.Report(health.Report{Capacity: 11})
	await(t, "the Node counts, and there are no devices", func() bool {
		return offersNumber(c.node(t, here), 11) && n.Offers() && len(c.counts(t)) == 0
	})
	n.Report(health.Report{Capacity: 12})
	await(t, "it goes on", func() bool { return offersNumber(c.node(t, here), 12) && len(c.counts(t)) == 0 })
}

func TestTheNodeCountsWhereNoKubeletAsksForDevices(t *testing.T) {
	began := time.Now()
	for _, tt := range []struct {
		name       string
		offers     bool
		registered bool
		claims     []devices.Claim
		waited     time.Duration
		is         bool
		after      time.Duration
	}{
		{"it may come yet", false, false, nil, 10 * time.Second, false, 20 * time.Second},
		{"it has not come", false, false, nil, time.Minute, true, 0},
		{"it has come", false, true, nil, time.Minute, false, 0},
		{"the devices of before are shown", true, false, nil, time.Minute, false, 0},
		{"claims of before are prepared", false, false, []devices.Claim{{UID: "1"}}, time.Minute, false, 0},
	} {
		d := &Devices{offers: tt.offers, since: began, claims: &kubeletClaims{registered: tt.registered, claims: tt.claims}}
		if is, after := d.leavesIt(began.Add(tt.waited)); is != tt.is || after != tt.after {
			t.Errorf("%s: %v after %v, want %v after %v", tt.name, is, after, tt.is, tt.after)
		}
	}
}
