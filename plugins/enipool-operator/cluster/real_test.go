package cluster

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator"
	testbed "github.com/enipool/enipool/test/kube"
)

// server starts a real API server, with the kinds if folder says where they are.
func server(t *testing.T, folder ...string) *rest.Config {
	t.Helper()
	testbed.Need(t)
	assets, err := testbed.Assets()
	if err != nil {
		t.Fatal(err)
	}
	env := &envtest.Environment{BinaryAssetsDirectory: assets, CRDDirectoryPaths: folder, ErrorIfCRDPathMissing: true,
		ControlPlaneStartTimeout: testbed.Patience, ControlPlaneStopTimeout: testbed.Patience}
	config, err := env.Start()
	if err != nil {
		t.Fatalf("start the API server: %v", err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Errorf("stop the API server: %v", err)
		}
	})
	return config
}

const (
	kinds         = "../../../conf/kubernetes/crds/crds.yaml"
	topologyKinds = "../../../conf/kubernetes/topologies/crds.yaml"
)

// soon waits until done is content.
func soon(t *testing.T, what string, done func() error) {
	t.Helper()
	if err := testbed.Wait(time.Minute, done); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func TestObjectsAreReadWrittenAndToldOf(t *testing.T) {
	config := server(t, kinds, topologyKinds)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	set, err := kubernetes.NewForConfig(config)
	must(t, err)
	_, err = set.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{
		corev1.LabelInstanceTypeStable: "m5.large", corev1.LabelTopologyZone: "zone-a"}},
		Spec: corev1.NodeSpec{ProviderID: "aws:///zone-a/i-0a1"}}, metav1.CreateOptions{})
	must(t, err)
	o, err := New(config, slog.New(slog.DiscardHandler))
	must(t, err)
	n := &crd.NodeNetwork{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Spec: crd.NodeNetworkSpec{Mode: crd.Operator, Slots: 16}}
	must(t, o.client.Create(ctx, n))
	made, err := o.CreateSubnet(ctx, &crd.Subnet{ObjectMeta: metav1.ObjectMeta{Name: "subnet-1"}, Spec: crd.SubnetSpec{Use: "Shared"}})
	must(t, err)
	if _, err := o.CreateSubnet(ctx, &crd.Subnet{ObjectMeta: metav1.ObjectMeta{Name: "subnet-1"}, Spec: crd.SubnetSpec{Use: "Shared"}}); !errors.Is(err, operator.ErrConflict) {
		t.Errorf("made twice: %v", err)
	}
	all, err := o.ReadAll(ctx)
	must(t, err)
	if len(all.Nodes) != 1 || len(all.Networks) != 1 || len(all.Subnets) != 1 || all.Networks[0].Spec.Slots != 16 ||
		all.Nodes[0].Instance != "i-0a1" || all.Nodes[0].Type != "m5.large" || all.Nodes[0].Zone != "zone-a" {
		t.Errorf("read %+v", all)
	}

	events := make(chan operator.Event, 100)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		o.Watch(ctx, func(e operator.Event) { events <- e })
	}()
	waitFor := func(what string, is func(operator.Event) bool) {
		t.Helper()
		soon(t, what, func() error {
			for {
				select {
				case e := <-events:
					if is(e) {
						return nil
					}
				default:
					return errors.New("not told of")
				}
			}
		})
	}
	waitFor("the node", func(e operator.Event) bool {
		return e.Node != nil && e.Node.Instance == "i-0a1" && e.Node.Zone == "zone-a"
	})

	// Of two who write from one copy one is refused; what it returns is the next to write from.
	n.Status.Epoch, n.Status.Slots = 2, 9
	next, err := o.WriteNode(ctx, n)
	must(t, err)
	if next.ResourceVersion == n.ResourceVersion || next.Status.Slots != 9 {
		t.Errorf("written: %+v", next)
	}
	if _, err := o.WriteNode(ctx, n); !errors.Is(err, operator.ErrConflict) {
		t.Errorf("an old copy: %v", err)
	}
	waitFor("the status", func(e operator.Event) bool { return e.Network != nil && e.Network.Status.Slots == 9 && !e.Deleted })
	late := next.DeepCopy()
	late.Status.Epoch = 1
	if _, err := o.WriteNode(ctx, late); !errors.Is(err, operator.ErrConflict) {
		t.Errorf("an older leader: %v", err)
	}
	made.Status.State = "Ready"
	if made, err = o.WriteSubnet(ctx, made); err != nil || made.Status.State != "Ready" {
		t.Errorf("the subnet: %+v, %v", made, err)
	}
	next.Finalizers = []string{operator.Finalizer}
	must(t, o.client.Update(ctx, next))
	must(t, o.client.Delete(ctx, next))
	if err := o.DropFinalizer(ctx, next); !errors.Is(err, operator.ErrConflict) {
		t.Errorf("an old copy loses its finalizer: %v", err)
	}
	next, err = o.ReadNode(ctx, "n1") // it waits for whom the finalizer is
	must(t, err)
	must(t, o.DropFinalizer(ctx, next))
	waitFor("the end", func(e operator.Event) bool { return e.Network != nil && e.Deleted })
	if _, err := o.WriteNode(ctx, next); !errors.Is(err, operator.ErrGone) {
		t.Errorf("what is gone is written: %v", err)
	}
	if _, err := o.ReadNode(ctx, "n1"); !errors.Is(err, operator.ErrGone) {
		t.Errorf("what is gone is read: %v", err)
	}
	cancel()
	<-ended
	t.Run("each right is needed", func(t *testing.T) { eachRightIsNeeded(t, config) }) // here, since a server of its own takes long to start
}

// Objects that are more than a page are all read, each once.
func TestAListOfManyPagesIsWhole(t *testing.T) {
	config := server(t, kinds)
	ctx := context.Background()
	o, err := New(config, slog.New(slog.DiscardHandler))
	must(t, err)
	want := map[string]bool{}
	for _, name := range names(7) {
		want[name] = true
		_, err := o.CreateSubnet(ctx, &crd.Subnet{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: crd.SubnetSpec{Use: "Shared"}})
		must(t, err)
	}
	got, err := readKind(ctx, o.client, ofNodes, 3, func(l *crd.SubnetList) []crd.Subnet { return l.Items })
	must(t, err)
	for _, s := range got {
		if !want[s.Name] {
			t.Errorf("%s is there, or twice", s.Name)
		}
		delete(want, s.Name)
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
}

// Without the kinds nothing can be done, and the error says what to install.
func TestWithoutTheKindsTheErrorSaysWhatToInstall(t *testing.T) {
	o, err := New(server(t), slog.New(slog.DiscardHandler))
	must(t, err)
	_, err = o.ReadAll(context.Background())
	if err == nil || !contains(err, "kubectl apply --server-side --kustomize conf/kubernetes/crds") || errors.Is(err, operator.ErrGone) {
		t.Errorf("%v", err)
	}
}
