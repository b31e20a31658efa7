package crd

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/enipool/enipool/pkg/order"
	testbed "github.com/enipool/enipool/test/kube"
)

// server is a client of a real API server that has the kinds.
func server(t *testing.T) client.Client {
	t.Helper()
	testbed.Need(t)
	folder, err := testbed.Assets()
	if err != nil {
		t.Fatal(err)
	}
	env := &envtest.Environment{BinaryAssetsDirectory: folder, CRDDirectoryPaths: []string{definitions, topologies}, ErrorIfCRDPathMissing: true,
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
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return client.WithFieldValidation(c, metav1.FieldValidationStrict)
}

// attempt is a change of an object and what the API server says of it.
type attempt[T client.Object] struct {
	what    string
	change  func(T)
	refused string // a part of the message, "" if it is accepted
}

// judge makes each change to an object of its own.
func judge[T client.Object](t *testing.T, c client.Client, fresh func() T, name string, all []attempt[T], update func(T) error) {
	t.Helper()
	for _, tt := range all {
		o := fresh()
		o.SetName(name)
		if err := c.Create(context.Background(), o); err != nil {
			t.Fatalf("%s: %v", tt.what, err)
		}
		tt.change(o)
		err := update(o)
		if tt.refused == "" && err != nil || tt.refused != "" && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tt.refused)) {
			t.Errorf("%s: %v, want %q", tt.what, err, tt.refused)
		}
		if err := c.Delete(context.Background(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// handsOver is a change to a spec that hands over.
func handsOver(h Handover) func(*NodeNetwork) {
	return func(n *NodeNetwork) { n.Spec.Handover = &h }
}

// texts returns so many texts that begin in the same way.
func texts(n int, begin string) (list []string) {
	for i := range n {
		list = append(list, begin+strconv.Itoa(i))
	}
	return list
}

// Each rule of the schemas accepts what is right and refuses what it is there for.
func TestTheAPIServerHoldsTheRules(t *testing.T) {
	c := server(t)
	ctx := context.Background()
	node := func() *NodeNetwork {
		return &NodeNetwork{Spec: NodeNetworkSpec{Mode: Operator, Slots: 16, Pool: Pool{Batch: 16}}}
	}
	judge(t, c, node, "n1", []attempt[*NodeNetwork]{
		{"as many slots as allowed", func(n *NodeNetwork) { n.Spec.Pool.MaxAllocate = 16 }, ""},
		{"more slots than allowed", func(n *NodeNetwork) { n.Spec.Pool.MaxAllocate = 15 }, "slots above pool.maxAllocate"},
		{"a release", func(n *NodeNetwork) { n.Spec.Release = []string{"10.0.0.7", "10.0.1.0/28", "fd00::/80"} }, ""},
		{"what is no address", func(n *NodeNetwork) { n.Spec.Release = []string{"10.0.0.300"} }, "neither an address nor a prefix"},
		{"a prefix as wide as they are delegated", func(n *NodeNetwork) { n.Spec.Release = []string{"10.0.1.16/28", "fd00::/64"} }, ""},
		{"a wider one", func(n *NodeNetwork) { n.Spec.Release = []string{"10.0.1.0/27"} }, "wider than a delegated prefix"},
		{"what others hold", func(n *NodeNetwork) { n.Spec.Held = []string{"10.0.0.7"} }, ""},
		{"others hold what is no address", func(n *NodeNetwork) { n.Spec.Held = []string{"eth0"} }, "neither an address nor a prefix"},
		{"others hold a prefix", func(n *NodeNetwork) { n.Spec.Held = []string{"10.0.1.16/28"} }, ""},
		{"others hold half of all there is", func(n *NodeNetwork) { n.Spec.Held = []string{"128.0.0.0/1"} }, "wider than a delegated prefix"},
		{"its own calls", func(n *NodeNetwork) { n.Spec.Mode = Self }, ""},
		{"its own calls and a release", func(n *NodeNetwork) { n.Spec.Mode, n.Spec.Release = Self, []string{"10.0.0.7"} }, "releases by itself"},
		{"an ENI goes", func(n *NodeNetwork) { n.Spec.ReleaseInterfaces = []string{"eni-0a1"} }, ""},
		{"what is no ENI", func(n *NodeNetwork) { n.Spec.ReleaseInterfaces = []string{"eni 1"} }, "should match"},
		{"a mode of the pool", func(n *NodeNetwork) { n.Spec.Pool.Mode = "burstable" }, ""},
		{"an unknown one", func(n *NodeNetwork) { n.Spec.Pool.Mode = "kpa" }, "Unsupported value"},
		{"a state of a status", func(n *NodeNetwork) { n.Spec.Mode = Joining }, "Unsupported value"},
		{"the highest revision that a node may have seen", func(n *NodeNetwork) { n.Spec.SeenRevision = order.MostSeen }, ""},
		{"a revision above all that there are", func(n *NodeNetwork) { n.Spec.SeenRevision = order.MostSeen + 1 }, "less than or equal to"},
		{"a revision below all", func(n *NodeNetwork) { n.Spec.SeenRevision = -1 }, "greater than or equal to 0"},
		{"pods that wait since then", func(n *NodeNetwork) {
			n.Spec.Waiting, n.Spec.WaitingSince = 1, &metav1.Time{Time: time.Unix(1_800_000_000, 0)}
		}, ""},
		{"none wait since then", func(n *NodeNetwork) { n.Spec.WaitingSince = &metav1.Time{Time: time.Unix(1_800_000_000, 0)} }, "waitingSince without pods"},
		{"a handover", handsOver(Handover{Tokens: texts(16, "t"), Release: []string{"10.0.0.7", "10.0.1.0/28"}, ReleaseInterfaces: texts(64, "eni-")}), ""},
		{"too many tokens", handsOver(Handover{Tokens: texts(17, "t")}), "must have at most 16 items"},
		{"too many releases", handsOver(Handover{Release: texts(1025, "fd00::")}), "must have at most 1024 items"},
		{"too many ENIs", handsOver(Handover{ReleaseInterfaces: texts(65, "eni-")}), "must have at most 64 items"},
		{"a release of what is no address", handsOver(Handover{Release: []string{"ten"}}), "neither an address nor a prefix"},
		{"a handover of a wide prefix", handsOver(Handover{Release: []string{"10.0.0.0/8"}}), "wider than a delegated prefix"},
		{"the deletion of what is no ENI", handsOver(Handover{ReleaseInterfaces: []string{"eni 1"}}), "should match"},
	}, func(n *NodeNetwork) error { return c.Update(ctx, n) })
	stated := func(revision, created, epoch int64) func(*NodeNetwork) {
		return func(n *NodeNetwork) {
			n.Status.Revision, n.Status.Created, n.Status.Epoch = 5, 5, 5
			if err := c.Status().Update(ctx, n); err != nil {
				t.Fatal(err)
			}
			n.Status.Revision, n.Status.Created, n.Status.Epoch = revision, created, epoch
		}
	}
	judge(t, c, node, "n1", []attempt[*NodeNetwork]{
		{"a later status", stated(6, 6, 6), ""},
		{"an earlier revision", stated(4, 5, 5), "revision goes back"},
		{"fewer ENIs made", stated(5, 4, 5), "created goes back"},
		{"an older leader", stated(5, 5, 4), "an older leader"},
		{"a cause", func(n *NodeNetwork) { n.Status.Causes = []Cause{{Reason: "SubnetFull", Message: "30 needed"}} }, ""},
		{"one of no kind", func(n *NodeNetwork) { n.Status.Causes = []Cause{{Reason: "Bored"}} }, "Unsupported value"},
	}, func(n *NodeNetwork) error { return c.Status().Update(ctx, n) })
	used := func(use string) func() *Subnet {
		return func() *Subnet { return &Subnet{Spec: SubnetSpec{Use: use}} }
	}
	save := func(s *Subnet) error { return c.Update(ctx, s) }
	judge(t, c, used("Exclusive"), "subnet-0a1", []attempt[*Subnet]{
		{"exclusive to disabled", func(s *Subnet) { s.Spec.Use = "Disabled" }, ""},
		{"exclusive to shared", func(s *Subnet) { s.Spec.Use = "Shared" }, "does not become a shared one"},
	}, save)
	judge(t, c, used("Shared"), "subnet-0a1", []attempt[*Subnet]{
		{"shared to exclusive", func(s *Subnet) { s.Spec.Use = "Exclusive" }, ""},
		{"a reservation", func(s *Subnet) { s.Spec.Reserve = []string{"10.0.0.16/28"} }, ""},
		{"with host bits", func(s *Subnet) { s.Spec.Reserve = []string{"10.0.0.17/28"} }, "host bits"},
		{"as many as there can be", func(s *Subnet) { s.Spec.Reserve = rangesOf(32) }, ""},
		{"more than that", func(s *Subnet) { s.Spec.Reserve = rangesOf(33) }, "must have at most 32 items"},
		{"of what is no prefix", func(s *Subnet) { s.Spec.Reserve = []string{"10.0.0.17"} }, "not a prefix"},
		{"a weight", func(s *Subnet) { s.Spec.Weight = 1000 }, ""},
		{"too much of it", func(s *Subnet) { s.Spec.Weight = 1001 }, "less than or equal to 1000"},
	}, save)
}

// Who decided from an old copy is told so: all of the release protocol stands on it.
func TestOfTwoWhoWriteFromOneCopyOneIsRefused(t *testing.T) {
	c := server(t)
	ctx := context.Background()
	n := &NodeNetwork{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Spec: NodeNetworkSpec{Mode: Operator, Slots: 16, Release: []string{"10.0.0.7"}}}
	if err := c.Create(ctx, n); err != nil {
		t.Fatal(err)
	}
	seen := n.DeepCopy() // by the operator
	n.Spec.Release = nil // the agent takes the address back
	if err := c.Update(ctx, n); err != nil {
		t.Fatal(err)
	}
	seen.Status.Releasing = []string{"10.0.0.7"}
	if err := c.Status().Update(ctx, seen); !apierrors.IsConflict(err) {
		t.Errorf("the operator accepts what was taken back: %v", err)
	}
}

// rangesOf returns so many ranges.
func rangesOf(n int) (list []string) {
	for i := range n {
		list = append(list, "10.0."+strconv.Itoa(i)+".0/28")
	}
	return list
}

// What an operator writes of reserved ranges.
func TestAServerTakesWhatIsSaidOfReservedRanges(t *testing.T) {
	c := server(t)
	told := func(is metav1.ConditionStatus, id string) func(*Subnet) {
		return func(s *Subnet) {
			s.Status.Reserved = []CloudReservation{{CIDR: "10.0.0.16/28", ID: id}, {CIDR: "2001:db8::/80", ID: "scr-2"}}
			s.Status.Conditions = []metav1.Condition{{Type: "Reserved", Status: is, Reason: "Overlaps", Message: strings.Repeat("m", 1024), LastTransitionTime: metav1.Now(), ObservedGeneration: 2}}
		}
	}
	judge(t, c, func() *Subnet { return &Subnet{Spec: SubnetSpec{Use: "Shared"}} }, "subnet-0a1", []attempt[*Subnet]{
		{"reserved ranges", told(metav1.ConditionFalse, "scr-1"), ""},
		{"a state that no condition has", told("Perhaps", "scr-1"), "Unsupported value"},
		{"an ID that is too long", told(metav1.ConditionTrue, strings.Repeat("s", 65)), "may not be more than 64"},
	}, func(s *Subnet) error { return c.Status().Update(context.Background(), s) })
}
