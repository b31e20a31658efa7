package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator"
	"github.com/enipool/enipool/plugins/enipool-operator/cluster"
	"github.com/enipool/enipool/test/kube"
)

// bed is a real API server with the kinds, and an account that another process could serve.
type bed struct {
	*testing.T
	*kube.Cluster
	objects client.Client
	account *sim.Account
	subnets []string // those that operators use
	dir     string

	kubeconfig string // of who runs operators
}

func newBed(t *testing.T) *bed {
	t.Helper()
	kube.Need(t)
	b := &bed{T: t, Cluster: kube.Start(t, kube.Options{}), subnets: []string{"subnet-a"}, dir: t.TempDir()}
	b.Kubectl("apply", "--server-side", "--kustomize=../../conf/kubernetes/crds")
	b.Kubectl("apply", "--server-side", "--kustomize=../../conf/kubernetes/operator")
	b.Kubectl("wait", "--for=condition=Established", "crd/nodenetworks.enipool.io", "crd/subnets.enipool.io")
	b.kubeconfig = b.ServiceAccountKubeconfig("kube-system", "enipool-operator") // its rights, and no others
	scheme := runtime.NewScheme()
	b.must(corev1.AddToScheme(scheme))
	b.must(crd.AddToScheme(scheme))
	config, err := clientcmd.BuildConfigFromFlags("", b.Kubeconfig("admin"))
	b.must(err)
	b.objects, err = client.New(config, client.Options{Scheme: scheme})
	b.must(err)

	b.account = sim.NewAccount(sim.Options{VPC: sim.VPC{ID: "vpc", V4: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}})
	b.must(b.account.AddSubnet(sim.Subnet{ID: "subnet-a", V4: netip.MustParsePrefix("10.0.0.0/24")}))
	b.account.AddType(sim.Type{Name: "small", ENIs: 4, V4: 10, V6: 10})
	l, err := net.Listen("unix", filepath.Join(b.dir, "account.sock"))
	b.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- b.account.Serve(ctx, l, b.account.Handler()) }()
	t.Cleanup(func() { cancel(); <-served })
	return b
}

func (b *bed) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// addNode makes an instance with its Node and what its agent asks for.
func (b *bed) addNode(name string, slots int32) {
	b.Helper()
	_, err := b.account.AddInstance(sim.Instance{ID: "i-" + name, Type: "small", Subnet: "subnet-a"})
	b.must(err)
	ctx := context.Background()
	b.must(b.objects.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelInstanceTypeStable: "small", corev1.LabelTopologyZone: "region-1a"}},
		Spec: corev1.NodeSpec{ProviderID: "sim:///zone/i-" + name}}))
	b.must(b.objects.Create(ctx, &crd.NodeNetwork{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: crd.NodeNetworkSpec{Mode: crd.Operator, Slots: slots, Waiting: slots, Boot: "boot", Pool: crd.Pool{Batch: 8}}}))
}

func (b *bed) network(name string) *crd.NodeNetwork {
	b.Helper()
	n := &crd.NodeNetwork{}
	b.must(b.objects.Get(context.Background(), client.ObjectKey{Name: name}, n))
	return n
}

// log is what an operator says.
type log struct {
	mu sync.Mutex
	bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.Write(p)
}

func (l *log) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.String()
}

// elsewhere leaves the libraries' logs where they are: the test uses them too.
func elsewhere(*slog.Logger) {}

// start runs an operator with these lines in its file.
func (b *bed) start(more string) (said *log, stop func() int) {
	b.Helper()
	file := filepath.Join(b.dir, fmt.Sprintf("operator%d.yaml", time.Now().UnixNano()))
	b.must(os.WriteFile(file, fmt.Appendf(nil, "cloud: {endpoint: 'unix://%s', cluster: blue, instance: i-n1, subnets: [%s]}\nsettle: 1s\nlisten: ''\nkubeconfig: %s\n%s",
		filepath.Join(b.dir, "account.sock"), strings.Join(b.subnets, ", "), b.kubeconfig, more), 0o600))
	said = &log{}
	ctx, cancel := context.WithCancel(context.Background())
	code := make(chan int, 1)
	go func() { code <- runCommand(ctx, []string{"--config", file}, said, said, elsewhere) }()
	ended := sync.OnceValue(func() int { cancel(); return <-code })
	b.Cleanup(func() {
		ended()
		if b.Failed() {
			b.Logf("the operator said:\n%s", said.text())
		}
	})
	return said, ended
}

// A node gets the addresses that it asks for, what it publishes goes, and who comes after goes on.
func TestAnOperatorServesNodes(t *testing.T) {
	b := newBed(t)
	b.addNode("n1", 12)
	b.addNode("n2", 5)
	said, stop := b.start("")
	satisfied := func(name string, want int) func() error {
		return func() error {
			n := b.network(name)
			c := meta.FindStatusCondition(n.Status.Conditions, "Satisfied")
			if c == nil || c.Status != metav1.ConditionTrue || int(n.Status.Slots) != want {
				return fmt.Errorf("%s: %d slots, %+v; the operator said:\n%s", name, n.Status.Slots, n.Status.Conditions, said.text())
			}
			return nil
		}
	}
	b.Eventually("n1", satisfied("n1", 12))
	b.Eventually("n2", satisfied("n2", 5))
	n := b.network("n1")
	if n.Status.Mode != crd.Operator || n.Status.Instance != "i-n1" || n.Status.Epoch < 1 || len(n.Status.ENIs) < 2 {
		t.Errorf("status: %+v", n.Status)
	}
	b.must(b.account.Check())

	b.Eventually("an event of the lease", func() error { return b.hasEvent("kube-system", "Lease", "enipool-operator", "LeaderElection", 1) })
	b.tellTwice()

	// What leaves is of the newest ENI: the agent publishes it, the operator accepts and unassigns it.
	last := n.Status.ENIs[len(n.Status.ENIs)-1]
	going := last.Addresses[len(last.Addresses)-1]
	b.must(b.objects.Patch(context.Background(), &crd.NodeNetwork{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, client.RawPatch(types.MergePatchType,
		fmt.Appendf(nil, `{"spec": {"slots": 11, "waiting": 0, "release": [%q]}}`, going))))
	b.Eventually("the release", func() error {
		for _, e := range b.network("n1").Status.ENIs {
			for _, a := range e.Addresses {
				if a == going {
					return errors.New(going + " is there")
				}
			}
		}
		return nil
	})
	if code := stop(); code != 0 {
		t.Errorf("exit %d", code)
	}
	if !strings.Contains(said.text(), "this operator leads") || strings.Contains(said.text(), "level=ERROR") {
		t.Errorf("log:\n%s", said.text())
	}

	// The next one leads at once, with a later epoch.
	before := b.network("n1").Status.Epoch
	b.addNode("n3", 3)
	b.start("")
	b.Eventually("n3", satisfied("n3", 3))
	if got := b.network("n3").Status.Epoch; got <= before {
		t.Errorf("epoch %d after %d", got, before)
	}
	subnet := &crd.Subnet{}
	b.must(b.objects.Get(context.Background(), client.ObjectKey{Name: "subnet-a"}, subnet))
	if subnet.Spec.Use != "Shared" || subnet.Status.State != "Ready" || subnet.Status.Free == 0 {
		t.Errorf("subnet: %+v", subnet)
	}
}

// hasEvent tells whether an event is there that happened that often.
func (b *bed) hasEvent(namespace, kind, name, reason string, count int32) error {
	var list corev1.EventList
	if err := b.objects.List(context.Background(), &list, client.InNamespace(namespace)); err != nil {
		return err
	}
	for _, e := range list.Items {
		if e.InvolvedObject.Kind == kind && e.InvolvedObject.Name == name && e.Reason == reason && e.Count == count {
			return nil
		}
	}
	return fmt.Errorf("no event %s of %s %s: %+v", reason, kind, name, list.Items)
}

// tellTwice tells the same twice with the operator's rights: the second is counted, with one more of them.
func (b *bed) tellTwice() {
	b.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", b.kubeconfig)
	b.must(err)
	events, err := cluster.NewEvents(config)
	b.must(err)
	defer events.Close()
	for range 2 {
		events.Tell(operator.Notice{Kind: "Subnet", Name: "subnet-a", UID: "u1", Warning: true, Reason: "SubnetFull", Message: "no address is left"})
	}
	b.Eventually("an event that counts", func() error { return b.hasEvent("default", "Subnet", "subnet-a", "SubnetFull", 2) })
}

// An operator that observes tells what there is, and changes nothing in the cloud.
func TestAnOperatorThatObservesChangesNothing(t *testing.T) {
	b := newBed(t)
	b.addNode("n1", 5)
	said, _ := b.start("observe: true")
	b.Eventually("a subnet", func() error {
		return b.objects.Get(context.Background(), client.ObjectKey{Name: "subnet-a"}, &crd.Subnet{})
	})
	time.Sleep(3 * time.Second) // three times settle
	for action, n := range b.account.Calls() {
		if n > 0 && !strings.HasPrefix(action, "describe") && !strings.HasPrefix(action, "Describe") {
			t.Errorf("%s was called %d times\n%s", action, n, said.text())
		}
	}
}

func TestWrongCallsSayWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct {
		name, text, want string
	}{
		{"none", "", "no such file"},
		{"unknown key", "colour: red", "colour: unknown key"},
		{"no server", "cloud: {endpoint: 'unix:///a', subnets: [a]}\nkubeconfig: " + dir + "/none", "the key kubeconfig says where the API server is"},
	} {
		file := filepath.Join(dir, strings.ReplaceAll(tt.name, " ", ""))
		if tt.text != "" {
			if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var said bytes.Buffer
		if code := runCommand(t.Context(), []string{"--config", file}, &said, &said, elsewhere); code != 2 || !strings.Contains(said.String(), tt.want) {
			t.Errorf("%s: exit %d, %s", tt.name, code, said.String())
		}
	}
}
