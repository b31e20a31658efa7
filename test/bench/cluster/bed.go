package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
	testbed "github.com/enipool/enipool/test/kube"
)

// bed is a control plane, an account, and the nodes of both. What is in it ends with close.
type bed struct {
	sizes
	report *report
	dir    string

	env     *envtest.Environment
	config  *rest.Config
	api     *kubernetes.Clientset
	account *sim.Account
	served  chan error
	address string // of the account

	operators []*operatorProcess
	phases    chan phase
	mu        sync.Mutex
	nodes     []*node

	ctx    context.Context // of the agents
	cancel context.CancelFunc
	life   sync.WaitGroup
}

// The subnet of all nodes, and the one that their type is of.
const (
	subnet = "subnet-a"
	zone   = "region-1a"
	typ    = "m5.24xlarge"
)

// limits are those of an m5.24xlarge: the pods of a node and its spare addresses have room on its first ENI, so that one call
// brings all that a node needs, as the bound has it.
var limits = eni.Limits{ENIs: 15, V4: 50}

// newBed starts a control plane with the kinds, and an account without nodes.
func newBed(ctx context.Context, r *report) (_ *bed, err error) {
	b := &bed{sizes: r.sizes, report: r, served: make(chan error, 1), phases: make(chan phase, 1<<18)}
	b.ctx, b.cancel = context.WithCancel(ctx)
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	if b.dir, err = os.MkdirTemp("", "enipool-cluster"); err != nil {
		return nil, err
	}
	bin, err := testbed.Assets()
	if err != nil {
		return nil, err
	}
	kinds, err := findInTree("conf/kubernetes/crds/crds.yaml")
	if err != nil {
		return nil, err
	}
	env := &envtest.Environment{BinaryAssetsDirectory: bin, CRDDirectoryPaths: []string{kinds}, ErrorIfCRDPathMissing: true, ControlPlaneStartTimeout: time.Minute}
	if b.config, err = env.Start(); err != nil {
		return nil, fmt.Errorf("start the control plane: %w", err)
	}
	b.env = env
	b.config.QPS = -1 // the API server says how fast it is
	if b.api, err = kubernetes.NewForConfig(b.config); err != nil {
		return nil, err
	}
	if err := b.awaitNamespaces(ctx); err != nil {
		return nil, err
	}
	for range writers {
		b.life.Go(b.writePhases)
	}
	return b, b.openAccount()
}

// awaitNamespaces waits for what the API server makes itself.
func (b *bed) awaitNamespaces(ctx context.Context) error {
	return testbed.Wait(time.Minute, func() error {
		for _, name := range []string{metav1.NamespaceDefault, metav1.NamespaceSystem} {
			if _, err := b.api.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{}); err != nil {
				return err
			}
		}
		return nil
	})
}

// buckets returns EC2's, so many times as fast, by what the account calls the requests.
func (s sizes) buckets() map[string]sim.Bucket {
	perSecond := func(burst, rate int) sim.Bucket {
		return sim.Bucket{Burst: burst * s.rates, Every: time.Second / time.Duration(rate*s.rates)}
	}
	return map[string]sim.Bucket{
		sim.ActAssign: perSecond(100, 5), sim.ActUnassign: perSecond(100, 5), sim.ActCreate: perSecond(100, 5), sim.ActDelete: perSecond(100, 5),
		sim.ActModify: perSecond(100, 5), sim.ActAttach: perSecond(50, 5), sim.ActDetach: perSecond(50, 5),
		sim.ActDescribe: perSecond(100, 20), sim.ActSubnets: perSecond(100, 20), sim.ActShape: perSecond(100, 20), sim.ActAlive: perSecond(100, 20),
	}
}

// latencies are how long calls take, as enipoolctl simulate has them; the ways of an ENI take time of their own.
var latencies = map[string]sim.Latency{"": {Base: 100 * time.Millisecond, Jitter: 100 * time.Millisecond},
	sim.ActAssign: {Base: 600 * time.Millisecond, Jitter: 400 * time.Millisecond}, sim.ActUnassign: {Base: 600 * time.Millisecond, Jitter: 400 * time.Millisecond}}

// openAccount serves an account on a loopback address.
func (b *bed) openAccount() error {
	b.account = sim.NewAccount(sim.Options{VPC: sim.VPC{ID: "vpc", V4: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}, Seed: 1, Reuse: sim.ReuseOldest,
		Lag: 500 * time.Millisecond, CreateTime: time.Second, AttachTime: 2 * time.Second, DetachTime: 2 * time.Second, Latency: latencies, Buckets: b.buckets()})
	if err := b.account.AddSubnet(sim.Subnet{ID: subnet, V4: netip.MustParsePrefix("10.0.0.0/12")}); err != nil {
		return err
	}
	b.account.AddType(sim.Type{Name: typ, ENIs: limits.ENIs, V4: limits.V4, V6: limits.V4})
	if _, err := b.account.AddInstance(sim.Instance{ID: "i-operator", Type: typ, Subnet: subnet}); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	b.address = l.Addr().String()
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.ctx))
	go func() { b.served <- b.account.Serve(ctx, l, b.account.Handler()) }()
	context.AfterFunc(b.ctx, func() { // the operators have ended when the agents have
		b.life.Wait()
		cancel()
	})
	return nil
}

// close ends all, and tells what does not add up.
func (b *bed) close() error {
	var errs []error
	for _, o := range b.operators {
		o.Kill()
	}
	b.cancel()
	b.life.Wait()
	if b.address != "" {
		errs = append(errs, <-b.served, b.account.Check())
	}
	if b.env != nil {
		errs = append(errs, b.env.Stop())
	}
	return errors.Join(append(errs, os.RemoveAll(b.dir))...)
}

// phase is a pod that has its address.
type phase struct{ namespace, name, uid, address string }

// writePhases writes what a kubelet writes of pods that run, until the bed ends.
func (b *bed) writePhases() {
	for {
		select {
		case <-b.ctx.Done():
			return
		case p := <-b.phases:
			patch := fmt.Sprintf(`{"metadata":{"uid":%q},"status":{"phase":"Running","podIP":%q,"podIPs":[{"ip":%[2]q}]}}`, p.uid, p.address)
			_, err := b.api.CoreV1().Pods(p.namespace).Patch(b.ctx, p.name, mergePatch, []byte(patch), metav1.PatchOptions{}, "status")
			b.report.noteWrong(cmp.Or(b.ctx.Err(), err))
		}
	}
}

// addNode makes an instance and its Node, as a kubelet registers it.
func (b *bed) addNode(ctx context.Context, i int) (*node, error) {
	name := fmt.Sprintf("node-%04d", i)
	if _, err := b.account.AddInstance(sim.Instance{ID: "i-" + name, Type: typ, Subnet: subnet}); err != nil {
		return nil, err
	}
	room := roomFor(maxPods)
	_, err := b.api.CoreV1().Nodes().Create(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelInstanceTypeStable: typ, corev1.LabelTopologyZone: zone}},
		Spec:       corev1.NodeSpec{ProviderID: "sim:///" + zone + "/i-" + name},
		Status: corev1.NodeStatus{Capacity: room, Allocatable: room,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("make Node %s: %w", name, err)
	}
	n, err := newNode(b, name, uint64(i))
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	b.nodes = append(b.nodes, n)
	b.mu.Unlock()
	return n, nil
}

// bindPods makes pods that are bound to a node.
func (b *bed) bindPods(ctx context.Context, n *node, count int) error {
	n.wants(count)
	for i := range count {
		_, err := b.api.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%02d", n.name, i), Labels: map[string]string{"app": "web"}},
			Spec:       corev1.PodSpec{NodeName: n.name, Containers: []corev1.Container{{Name: "web", Image: "registry.example.com/team/web:v1"}}},
		}, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("make a pod on %s: %w", n.name, err)
		}
	}
	return nil
}

// all returns the nodes so far.
func (b *bed) all() []*node {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]*node(nil), b.nodes...)
}
