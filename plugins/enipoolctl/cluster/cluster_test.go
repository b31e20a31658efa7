package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator"
	"github.com/enipool/enipool/pkg/operator/web"
	"github.com/enipool/enipool/plugins/enipoolctl/cli"
	"github.com/enipool/enipool/plugins/enipoolctl/cluster/clustertest"
)

// run runs a command line, and returns its exit code and what it says.
func run(cmd *cobra.Command, args ...string) (code int, out, errs string) {
	root := &cobra.Command{Use: "enipoolctl"}
	root.AddCommand(cmd)
	var stdout, stderr bytes.Buffer
	code = cli.Run(context.Background(), root, args, &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

func network(name string, want, have, waiting int32, change func(*crd.NodeNetwork)) *crd.NodeNetwork {
	n := &crd.NodeNetwork{TypeMeta: metav1.TypeMeta{Kind: "NodeNetwork", APIVersion: "enipool.io/v1alpha1"}, ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1},
		Spec:   crd.NodeNetworkSpec{Mode: crd.Operator, Slots: want, Waiting: waiting},
		Status: crd.NodeNetworkStatus{Mode: crd.Operator, Slots: have, Interfaces: 2, ObservedGeneration: 1, InstanceFacts: crd.InstanceFacts{Zone: "zone-a", Instance: "i-" + name}}}
	if change != nil {
		change(n)
	}
	return n
}

func node(name string) *corev1.Node {
	return &corev1.Node{TypeMeta: metav1.TypeMeta{Kind: "Node", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelTopologyZone: "zone-a"}}, Spec: corev1.NodeSpec{ProviderID: "aws:///zone-a/i-" + name},
		Status: corev1.NodeStatus{Capacity: corev1.ResourceList{capacityName: resource.MustParse("29")}}}
}

// since is some time ago, as objects have it.
func since(ago time.Duration) *metav1.Time {
	return &metav1.Time{Time: time.Now().Add(-ago).Truncate(time.Second)}
}

// The worst come first: pods that wait longest, nodes with nothing, with less than they want, in between, well.
func TestTheWorstNodesComeFirst(t *testing.T) {
	ill := node("self-ill")
	ill.Status.Conditions = []corev1.NodeCondition{{Type: conditionKind, Status: corev1.ConditionTrue, Reason: "SubnetExhausted", Message: "no subnet has room", LastTransitionTime: *since(5 * time.Minute)}}
	networks := []crd.NodeNetwork{
		*network("well", 16, 16, 0, nil),
		*network("short", 48, 32, 0, func(n *crd.NodeNetwork) {
			n.Status.Causes = []crd.Cause{{Reason: "Throttled", Message: "fewer calls", Until: &metav1.Time{Time: time.Now().Add(time.Minute)}}}
		}),
		*network("empty", 16, 0, 0, func(n *crd.NodeNetwork) { n.Status.ObservedGeneration = -1 }), // put back from a backup
		*network("waits", 48, 32, 4, func(n *crd.NodeNetwork) { n.Spec.WaitingSince = since(time.Minute) }),
		*network("delivered", 16, 16, 3, func(n *crd.NodeNetwork) { n.Spec.WaitingSince = since(time.Second) }),
		*network("waits-longer", 48, 32, 2, func(n *crd.NodeNetwork) { n.Spec.WaitingSince = since(time.Hour); n.Generation = 2 }),
		*network("joining", 16, 16, 0, func(n *crd.NodeNetwork) {
			n.Status.Mode = crd.Joining
			n.Status.Conditions = []metav1.Condition{{Type: "Satisfied", Status: "Unknown", Reason: "JoiningDescribe", Message: "a describe that shows the instance"}}
		}),
		*network("went-back", 16, 3, 0, func(n *crd.NodeNetwork) { n.Spec.Mode, n.Status.Mode = crd.Self, crd.Self }),
		*network("gone", 16, 16, 0, nil),
	}
	nodes := []corev1.Node{*ill, *node("self")}
	for _, n := range networks[:len(networks)-1] {
		nodes = append(nodes, *node(n.Name))
	}
	var got []string
	rows := map[string]nodeRow{}
	for _, r := range nodeRows(nodes, networks) {
		got, rows[r.Node] = append(got, r.Node), r
	}
	if want := []string{"waits-longer", "self-ill", "waits", "delivered", "empty", "short", "joining", "gone", "self", "well", "went-back"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for name, want := range map[string][2]string{"waits-longer": {"Operator", "NotAnswered"}, "empty": {"Operator", "NotSaid"}, "self-ill": {"", "SubnetExhausted"}, "waits": {"Operator", "Growing"}, "delivered": {"Operator", "Delivered"}, "short": {"Operator", "Throttled"},
		"self": {"", ""}, "well": {"Operator", ""}, "went-back": {"Self", ""}, "gone": {"Operator", "NodeGone"}, "joining": {"Joining", "JoiningDescribe"}} {
		if r := rows[name]; r.Mode != want[0] || r.Cause != want[1] {
			t.Errorf("%s: mode %s, cause %s, want %v", name, r.Mode, r.Cause, want)
		}
	}
	if r := rows["went-back"]; r.Want != nil || r.Capacity != "29" {
		t.Errorf("of a node that calls the cloud itself an operator knows nothing: %+v", r)
	}
	if r := rows["joining"]; r.Message != "waits for a describe that shows the instance" {
		t.Errorf("%+v", r)
	}
	if r := rows["short"]; r.Next.IsZero() || *r.Have != 32 {
		t.Errorf("%+v", r)
	}
}

func TestTheFullestSubnetsComeFirst(t *testing.T) {
	var list []crd.Subnet
	for name, state := range map[string]string{"a": "Ready", "b": "Full", "c": "Low", "d": "Disabled", "e": "Missing"} {
		list = append(list, crd.Subnet{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: crd.SubnetStatus{State: state}})
	}
	list = append(list, crd.Subnet{ObjectMeta: metav1.ObjectMeta{Name: "f"}, Status: crd.SubnetStatus{State: "Ready", Room: -1, RetryAt: since(time.Minute), FullSince: since(time.Hour), DescribedAt: since(0)}})
	got := ""
	for _, r := range subnetRows(list) {
		got += r.Subnet
	}
	if got != "becfad" {
		t.Errorf("in the order %s", got)
	}
}

// Of ranges that a Subnet names for the cloud to reserve it is shown how many are, and why not all.
func TestReservedRangesAreShown(t *testing.T) {
	held := func(cidrs ...string) (list []crd.CloudReservation) {
		for _, c := range cidrs {
			list = append(list, crd.CloudReservation{CIDR: c, ID: "scr-" + c})
		}
		return list
	}
	refused := []metav1.Condition{{Type: "Exhausted", Status: metav1.ConditionFalse, Reason: "x"}, {Type: operator.Reserved, Status: metav1.ConditionFalse, Reason: "Overlaps", Message: "of others"}}
	all := func(generation int64) []metav1.Condition {
		return []metav1.Condition{{Type: operator.Reserved, Status: metav1.ConditionTrue, Reason: "Reserved", ObservedGeneration: generation}}
	}
	for want, s := range map[string]crd.Subnet{
		"-":                {},
		"2 of 2":           {Spec: crd.SubnetSpec{Reserve: []string{"10.0.0.0/28", "10.0.0.32/28"}}, Status: crd.SubnetStatus{Reserved: held("10.0.0.32/28", "10.0.0.0/28")}},
		"1 of 2, Overlaps": {Spec: crd.SubnetSpec{Reserve: []string{"10.0.0.0/28", "10.0.0.32/28"}}, Status: crd.SubnetStatus{Reserved: held("10.0.0.0/28"), Conditions: refused}},
		"0 of 1, 1 more":   {Spec: crd.SubnetSpec{Reserve: []string{"10.0.0.32/28"}}, Status: crd.SubnetStatus{Reserved: held("10.0.0.0/28")}},
		"1 more":           {Status: crd.SubnetStatus{Reserved: held("10.0.0.0/28")}},
		"1 of 1, 2 for topologies": {ObjectMeta: metav1.ObjectMeta{Generation: 3}, Spec: crd.SubnetSpec{Reserve: []string{"10.0.0.32/28"}},
			Status: crd.SubnetStatus{Reserved: held("10.0.0.0/28", "10.0.0.32/28", "10.0.0.16/31"), Conditions: all(3)}},
		"0 of 1, 1 more, of a change that is not answered": {ObjectMeta: metav1.ObjectMeta{Generation: 3}, Spec: crd.SubnetSpec{Reserve: []string{"10.0.0.32/28"}},
			Status: crd.SubnetStatus{Reserved: held("10.0.0.0/28"), Conditions: all(2)}},
	} {
		want, _, _ = strings.Cut(want, ", of a change")
		if got := countReserved(subnetRows([]crd.Subnet{s})[0]); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func lease(holder string, renewed time.Duration) *coordinationv1.Lease {
	return leaseAt(time.Now(), holder, renewed)
}

// leaseAt is a lease as it is at a time.
func leaseAt(now time.Time, holder string, renewed time.Duration) *coordinationv1.Lease {
	seconds := int32(15)
	return &coordinationv1.Lease{TypeMeta: metav1.TypeMeta{Kind: "Lease", APIVersion: "coordination.k8s.io/v1"}, ObjectMeta: metav1.ObjectMeta{Name: leaseName, Annotations: map[string]string{epochKey: "7"}},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds,
			RenewTime: &metav1.MicroTime{Time: now.Add(-renewed)}, AcquireTime: &metav1.MicroTime{Time: now.Add(-time.Hour)}}}
}

func TestWhoLeadsIsSaid(t *testing.T) {
	now := time.Now()
	for _, tt := range []struct {
		lease *coordinationv1.Lease
		leads bool
		want  string
	}{
		{leaseAt(now, "host-1_abc", time.Second), true, "operator: host-1_abc leads since 60m, epoch 7"},
		{leaseAt(now, "host-1_abc", 10*time.Minute), false, "nobody leads: the lease of host-1_abc was renewed 10m ago (kubectl --namespace kube-system get deployments,pods -l app.kubernetes.io/name=enipool-operator); below is what was known then"},
		{leaseAt(now, "", 3*time.Minute), false, "nobody leads for 3m (kubectl --namespace kube-system get deployments,pods -l app.kubernetes.io/name=enipool-operator); below is what was known then"},
		{nil, false, "nobody leads, and nobody ever has"},
	} {
		l := leaderOf(tt.lease, now)
		l.Namespace = "kube-system"
		if l.Leads != tt.leads || !strings.Contains(l.Line(now), tt.want) {
			t.Errorf("%s, want %q", l.Line(now), tt.want)
		}
	}
	if h := leaderOf(leaseAt(now, "ip-10-0-0-1_x_abc", 0), now).host(); h != "ip-10-0-0-1_x" {
		t.Errorf("host %q", h)
	}
}

// knows is an operator that leads, or does not.
type knows struct{ err error }

func (k knows) Report(context.Context) (operator.Report, error) {
	return operator.Report{Epoch: 7, OtherCluster: "blue", Nodes: map[string]int{"Operator": 2}, Satisfied: 1, Queue: []operator.Waiting{{Class: "starving", Count: 3}},
		Budget: []operator.Tokens{{Action: "AssignPrivateIpAddresses", Tokens: 2.4, PerSecond: 2, Usual: 4, Others: 0.25, Closed: 1.5, Waiting: 3}}}, k.err
}

func (k knows) Why(_ context.Context, node string) (operator.Why, error) {
	return operator.Why{Node: node, Mode: "Operator", Wanted: operator.Wanted{Want: 48, Have: 32, Waiting: 4}, Class: "starving",
		Queue: []operator.Queued{{Action: "AssignPrivateIpAddresses", Object: "eni-1", Class: "starving", Before: 12, Expected: time.Now().Add(9 * time.Second)}}}, k.err
}

func (k knows) All(context.Context) ([]operator.Why, error)    { return nil, k.err }
func (k knows) Check(context.Context) ([]cloud.Finding, error) { return nil, k.err }
func (k knows) Healthy() error                                 { return nil }

func pagesOf(k knows) http.Handler { return web.New("v1").Handler(k, false) }

func operatorPod(name, host string) *corev1.Pod {
	return &corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "kube-system"}, Spec: corev1.PodSpec{NodeName: host}}
}

// cluster3 is a cluster with a node that waits, one that is well and one that calls the cloud itself.
func cluster3(t *testing.T) (*clustertest.Server, []string) {
	s := clustertest.Start(t)
	for _, name := range []string{"n1", "n2", "n3"} {
		s.Put("/api/v1/nodes/"+name, node(name))
	}
	s.Put("/apis/enipool.io/v1alpha1/nodenetworks/n1", network("n1", 48, 32, 4, func(n *crd.NodeNetwork) {
		n.Status.Causes = []crd.Cause{{Reason: "SubnetFull", Message: "30 needed, most room 20 in a"}}
		n.ManagedFields = []metav1.ManagedFieldsEntry{{Subresource: "status", Time: since(7 * time.Minute)}}
	}))
	s.Put("/apis/enipool.io/v1alpha1/nodenetworks/n2", network("n2", 16, 16, 0, nil))
	s.Put("/apis/enipool.io/v1alpha1/subnets/subnet-a", &crd.Subnet{TypeMeta: metav1.TypeMeta{Kind: "Subnet", APIVersion: "enipool.io/v1alpha1"}, ObjectMeta: metav1.ObjectMeta{Name: "subnet-a"},
		Spec: crd.SubnetSpec{Use: "Shared", Reserve: []string{"10.1.1.0/28"}}, Status: crd.SubnetStatus{State: "Full", V4: "10.1.0.0/20", Zone: "zone-a", Free: 9, Owed: 9,
			Reserved: []crd.CloudReservation{{CIDR: "10.1.1.0/28", ID: "scr-1"}}}})
	s.Put("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/enipool-operator", lease("n3_abc", time.Second))
	return s, []string{"--kubeconfig", s.Kubeconfig}
}

func TestACompleteClusterIsShown(t *testing.T) {
	s, flags := cluster3(t)
	for _, tt := range []struct {
		args []string
		want []string
	}{
		{[]string{"nodes"}, []string{"operator: n3_abc leads since 60m, epoch 7", "NODE", "CAUSE", "n1    Operator  48    32    4        -    2     zone-a  -     SubnetFull: 30 needed", "n3    -         -     -     -"}},
		{[]string{"nodes", "-o", "wide"}, []string{"POD-ADDRESSES", "TOLD", "i-n1", "7m"}},
		{[]string{"nodes", "-o", "json"}, []string{`"leads": true`, `"cause": "SubnetFull"`, `"mode": "Operator"`}},
		{[]string{"subnets"}, []string{"subnet-a  Shared  Full", "10.1.0.0/20"}},
		{[]string{"subnets"}, []string{"RESERVED", "1 of 1"}},
		{[]string{"subnets", "-o", "yaml"}, []string{"- subnet: subnet-a", "reserve:", "10.1.1.0/28"}},
	} {
		code, out, errs := run(Command(), append(append([]string{"cluster"}, tt.args...), flags...)...)
		for _, want := range tt.want {
			if code != 0 || !strings.Contains(out, want) {
				t.Errorf("%v: exit %d, %q is not in\n%s%s", tt.args, code, want, out, errs)
			}
		}
	}
	code, _, errs := run(Command(), append([]string{"cluster", "nodes", "-o", "xml"}, flags...)...)
	if code != 2 || !strings.Contains(errs, "--output xml: must be one of table, wide, json, yaml") {
		t.Errorf("exit %d, %s", code, errs)
	}
	s.Put("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/enipool-operator", lease("", 7*time.Minute))
	code, out, errs := run(Command(), append([]string{"cluster", "nodes"}, flags...)...)
	if code != 0 || !strings.Contains(out, "nobody leads for 7m") || !strings.Contains(out, "TOLD") || !strings.Contains(out, "7m") {
		t.Errorf("while nobody leads: exit %d\n%s%s", code, out, errs)
	}
}

// The operator that leads is asked first, through the API server; another one says that it does not lead.
func TestTheOperatorIsAsked(t *testing.T) {
	s, flags := cluster3(t)
	s.Put("/api/v1/namespaces/kube-system/pods/op-1", operatorPod("op-1", "n2"))
	s.Put("/api/v1/namespaces/kube-system/pods/op-2", operatorPod("op-2", "n3"))
	s.Serve("op-1:9810", pagesOf(knows{operator.ErrNotLeading}))
	s.Serve("op-2:9810", pagesOf(knows{}))
	code, out, errs := run(Command(), append([]string{"cluster", "budget"}, flags...)...)
	for _, want := range []string{"epoch 7, 2 nodes with an operator, 1 of them have what they want", "the nodes' ENIs are tagged with cluster blue", "starving  3", "AssignPrivateIpAddresses  2       2/s   4/s    0.25/s  1.5s    3"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("exit %d, %q is not in\n%s%s", code, want, out, errs)
		}
	}
	code, out, errs = run(Command(), append([]string{"cluster", "why", "n1"}, flags...)...)
	for _, want := range []string{"n1: 32 of 48 slots, 4 pods wait, class starving", "waits for a token of AssignPrivateIpAddresses eni-1, class starving, behind 12 others; expected in "} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("exit %d, %q is not in\n%s%s", code, want, out, errs)
		}
	}
	code, _, errs = run(Command(), append([]string{"cluster", "why", "n9"}, flags...)...)
	if code != 2 || !strings.Contains(errs, "the cluster has no node n9; `enipoolctl cluster nodes` lists them") {
		t.Errorf("exit %d, %s", code, errs)
	}
}

// What is typed wrong is said in words of the flags and arguments.
func TestWrongCallsOfAClusterSayWhatIsWrong(t *testing.T) {
	_, flags := cluster3(t)
	for want, args := range map[string][]string{
		`it has no context "prod"; it has: c; --kubeconfig names a file, --context one of its contexts`: {"nodes", "--context", "prod"},
		"name one node: enipoolctl cluster why NODE":                                                    {"why"},
		"--operator 127.0.0.1:9810: must be a URL like http://127.0.0.1:9810":                           {"budget", "--operator", "127.0.0.1:9810"},
		"--operator localhost:9810: must be a URL like http://127.0.0.1:9810":                           {"budget", "--operator", "localhost:9810"},
		"no operator can be asked: Get \"http://127.0.0.1:1/budget?\": dial tcp 127.0":                  {"budget", "--operator", "http://127.0.0.1:1/"},
	} {
		if code, _, errs := run(Command(), append(append([]string{"cluster"}, args...), flags...)...); code != 2 || !strings.Contains(errs, want) {
			t.Errorf("%v: exit %d, %s", args, code, errs)
		}
	}
}

// Where none can be asked, what the objects tell is shown with its age, and the error says what to do.
func TestWithoutAnOperatorTheObjectsTell(t *testing.T) {
	s, flags := cluster3(t)
	code, _, errs := run(Command(), append([]string{"cluster", "budget"}, flags...)...)
	if code != 2 || !strings.Contains(errs, "no operator can be asked: namespace kube-system has no pod of enipool-operator") {
		t.Errorf("exit %d, %s", code, errs)
	}
	s.Put("/api/v1/namespaces/kube-system/pods/op-1", operatorPod("op-1", "n2"))
	s.Serve("op-1:9810", pagesOf(knows{operator.ErrNotLeading}))
	code, _, errs = run(Command(), append([]string{"cluster", "budget"}, flags...)...)
	if code != 2 || !strings.Contains(errs, "this operator does not lead; the Lease enipool-operator names the one that does") {
		t.Errorf("exit %d, %s", code, errs)
	}
	code, out, errs := run(Command(), append([]string{"cluster", "why", "n1"}, flags...)...)
	for _, want := range []string{"what follows is what the node's object tells, as of 7m ago", "n1: 32 of 48 slots, 4 pods wait", "SubnetFull: 30 needed, most room 20 in a"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("exit %d, %q is not in\n%s%s", code, want, out, errs)
		}
	}
	code, out, _ = run(Command(), append([]string{"cluster", "why", "n3", "-o", "json"}, flags...)...)
	var a Answer
	if err := json.Unmarshal([]byte(out), &a); code != 0 || err != nil || a.Away == "" || a.Node != "n3" {
		t.Errorf("exit %d, %v\n%s", code, err, out)
	}
}

// A namespace in which no operator runs is named, and where one does.
func TestAWrongNamespaceIsNamed(t *testing.T) {
	s, flags := cluster3(t)
	shown := func(want string) {
		t.Helper()
		code, out, errs := run(Command(), append([]string{"cluster", "nodes", "--namespace", "other"}, flags...)...)
		if code != 0 || !strings.Contains(out, want) || strings.Contains(out, " - ago") {
			t.Errorf("exit %d, %q is not in\n%s%s", code, want, out, errs)
		}
	}
	held := lease("n3_abc", time.Second)
	held.Namespace = "kube-system"
	shown("nobody leads, and nobody ever has, by the Lease enipool-operator of namespace other") // who may not list all sees no more
	s.Put("/apis/coordination.k8s.io/v1/leases", &coordinationv1.LeaseList{TypeMeta: metav1.TypeMeta{Kind: "LeaseList", APIVersion: "coordination.k8s.io/v1"},
		Items: []coordinationv1.Lease{*held}})
	shown("namespace other has no Lease enipool-operator, and namespace kube-system has one: --namespace kube-system")
}

// An object that no operator has written has no age.
func TestAnObjectThatNobodyHasAnsweredHasNoAge(t *testing.T) {
	s, flags := cluster3(t)
	s.Put("/apis/enipool.io/v1alpha1/nodenetworks/n1", network("n1", 48, 0, 4, func(n *crd.NodeNetwork) { n.Status = crd.NodeNetworkStatus{} }))
	code, out, errs := run(Command(), append([]string{"cluster", "why", "n1"}, flags...)...)
	if code != 0 || !strings.Contains(out, "what the node's object tells, which no operator has written yet: no operator can be asked") || strings.Contains(out, " - ago") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
}
