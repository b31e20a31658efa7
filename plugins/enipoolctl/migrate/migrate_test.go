package migrate

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator"
	"github.com/enipool/enipool/pkg/operator/web"
	"github.com/enipool/enipool/plugins/enipoolctl/cli"
	"github.com/enipool/enipool/plugins/enipoolctl/cluster/clustertest"
)

func run(args ...string) (code int, out, errs string) {
	root := &cobra.Command{Use: "enipoolctl"}
	root.AddCommand(Command())
	var stdout, stderr bytes.Buffer
	code = cli.Run(context.Background(), root, args, &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

// observer is an operator that has seen two nodes.
type observer struct{ web.Source }

func (observer) Check(context.Context) ([]cloud.Finding, error) {
	return []cloud.Finding{{What: "permission ec2:CreateTags", Verdict: cloud.Broken, Detail: "refused", Fix: "allow it"}, {What: "credentials", Verdict: cloud.Works, Detail: "a role"}}, nil
}

func (observer) Report(context.Context) (operator.Report, error) {
	return operator.Report{Observe: true}, nil
}

func (observer) All(context.Context) ([]operator.Why, error) {
	return []operator.Why{
		{Node: "n1", Zone: "zone-a", Cloud: &operator.InCloud{ENIs: 2, Addresses: 18, Loose: 1, Limits: "4 ENIs x 10 addresses", Subnets: []string{"subnet-b", "subnet-a"}}},
		{Node: "n2", Zone: "zone-b", Cloud: &operator.InCloud{ENIs: 1}},
	}, nil
}

const (
	networks = "/apis/enipool.io/v1alpha1/nodenetworks/"
	pods     = "/api/v1/namespaces/kube-system/pods/"
	file     = "/api/v1/namespaces/kube-system/configmaps/enipool-agent"
	leases   = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/enipool-operator"
)

func node(name string) *corev1.Node {
	return &corev1.Node{TypeMeta: metav1.TypeMeta{Kind: "Node", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelTopologyZone: "zone-a"}}, Spec: corev1.NodeSpec{ProviderID: "aws:///zone-a/i-" + name}}
}

func pod(name, on string) *corev1.Pod {
	return &corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "kube-system", UID: "u1"}, Spec: corev1.PodSpec{NodeName: on}}
}

func agentFile(provider string) *corev1.ConfigMap {
	return &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Name: "enipool-agent"},
		Data: map[string]string{"agent.yaml": "vpcCIDRs: [10.0.0.0/16]\ncloud: {provider: " + provider + "}\n"}}
}

func lease(renewed time.Duration) *coordinationv1.Lease {
	seconds, holder := int32(15), "n9_abc"
	return &coordinationv1.Lease{TypeMeta: metav1.TypeMeta{Kind: "Lease", APIVersion: "coordination.k8s.io/v1"},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &metav1.MicroTime{Time: time.Now().Add(-renewed)}}}
}

func network(asked, mode crd.Mode) *crd.NodeNetwork {
	return &crd.NodeNetwork{TypeMeta: metav1.TypeMeta{Kind: "NodeNetwork", APIVersion: "enipool.io/v1alpha1"}, ObjectMeta: metav1.ObjectMeta{Name: "n1"},
		Spec: crd.NodeNetworkSpec{Mode: asked, Slots: 16}, Status: crd.NodeNetworkStatus{Mode: mode, Slots: 16}}
}

func TestACheckSaysWhatIsInTheWay(t *testing.T) {
	s := clustertest.Start(t)
	s.Put("/api/v1/nodes/n1", node("n1"))
	s.Put("/api/v1/nodes/n2", node("n2"))
	s.Put(pods+"op", pod("op", "n9"))
	s.Serve("op:9810", web.New("v1").Handler(observer{}, false))
	code, out, errs := run("migrate", "check", "--kubeconfig", s.Kubeconfig)
	for _, want := range []string{"permission ec2:CreateTags  broken", "-> allow it", "no subnet of zone zone-b takes a new ENI of it",
		"4 ENIs x 10 addresses  subnet-b,subnet-a  ready (1 ENIs that were made for it are attached nowhere"} {
		if code != 1 || !strings.Contains(out, want) {
			t.Errorf("exit %d, %q is not in\n%s%s", code, want, out, errs)
		}
	}
	if strings.Index(out, "n2 ") > strings.Index(out, "n1 ") {
		t.Errorf("what is in the way comes first:\n%s", out)
	}
	code, _, errs = run("migrate", "check", "n7", "--kubeconfig", s.Kubeconfig)
	if code != 2 || !strings.Contains(errs, "the cluster has no node n7") {
		t.Errorf("exit %d, %s", code, errs)
	}
}

func TestANodeIsJudged(t *testing.T) {
	bare := node("n1")
	bare.Spec.ProviderID, bare.Labels = "", nil
	seen := &operator.InCloud{ENIs: 2, Addresses: 9, Others: 2, Subnets: []string{"a"}}
	stated := network(crd.Operator, crd.Operator)
	stated.Status.ENIs = []crd.ENI{{ID: "eni-1", Addresses: []string{"10.0.0.4"}}}
	for _, tt := range []struct {
		name string
		got  checked
		want string
	}{
		{"no instance", judge(bare, nil, operator.Why{}, true), "has no provider ID"},
		{"no zone", judge(bare, nil, operator.Why{}, true), "has no label topology.kubernetes.io/zone"},
		{"not known", judge(node("n1"), nil, operator.Why{}, false), "does not know the node"},
		{"not described", judge(node("n1"), nil, operator.Why{}, true), "with observe: true"},
		{"asked and not described", judge(node("n1"), network(crd.Operator, crd.Joining), operator.Why{Mode: "Joining", Asked: "Operator"}, true), "not described it yet: `enipoolctl cluster budget` says whether describes fail"},
		{"an error", judge(node("n1"), nil, operator.Why{Cloud: &operator.InCloud{Error: "not found"}}, true), "the cloud: not found"},
		{"an error once", judge(node("n1"), nil, operator.Why{Cloud: &operator.InCloud{Error: "not found"}, Causes: []operator.Told{{Reason: "InstanceUnknown", Message: "the cloud: not found"}, {Reason: "Throttled", Message: "slow"}}}, true),
			"the cloud: not found (Throttled: slow)"},
		{"ready", judge(node("n1"), nil, operator.Why{Cloud: seen}, true), "ready (2 attached ENIs are not enipool's"},
		{"with an operator", judge(node("n1"), stated, operator.Why{Mode: "Operator", Cloud: seen}, true), "has an operator (2 attached ENIs are not enipool's; they only take room; its object has 1 addresses, the cloud showed 9"},
		{"another name", judge(node("n1"), nil, operator.Why{Cloud: &operator.InCloud{ENIs: 2, Subnets: []string{"a"}, OtherCluster: "blue"}}, true), "ready (its ENIs are tagged with cluster blue, which is not cloud.cluster of operator.yaml"},
	} {
		if got := tt.got.result(); !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s, want %q", tt.name, got, tt.want)
		}
	}
}

// Each phase is told, and how to go back; what is in the way is said before anything is done.
func TestANodeIsGivenToTheOperatorAndGoesBack(t *testing.T) {
	s := clustertest.Start(t)
	flags := []string{"--kubeconfig", s.Kubeconfig}
	refused := func(want string, args ...string) {
		t.Helper()
		code, out, errs := run(append(append([]string{"migrate", "node", "n1"}, args...), flags...)...)
		if code != 2 || !strings.Contains(errs, want) || len(s.Deleted()) > 0 {
			t.Errorf("exit %d, deleted %v, want %q\n%s%s", code, s.Deleted(), want, out, errs)
		}
	}
	refused("the cluster has no node n1")
	s.Put("/api/v1/nodes/n1", node("n1"))
	refused("nobody leads")
	s.Put(leases, lease(0))
	s.Put(pods+"op", pod("op", "n9"))
	s.Serve("op:9810", web.New("v1").Handler(observer{}, false))
	refused("operator n9_abc only observes: remove observe from operator.yaml first")
	s.Put(pods+"op", nil)
	refused("has 0 pods of enipool-agent on node n1")
	s.Put(pods+"agent-1", pod("agent-1", "n1"))
	s.Put(file, agentFile("aws"))
	refused("says cloud.provider: aws; set it to operator first")
	ofGroup, files := pod("agent-1", "n1"), agentFile("operator") // which reads another file of the same ConfigMap
	ofGroup.Spec.Volumes = []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: "enipool-agent"}, Items: []corev1.KeyToPath{{Key: "agent-db.yaml", Path: "agent.yaml"}}}}}}
	files.Data["agent-db.yaml"] = agentFile("baidu").Data["agent.yaml"]
	s.Put(pods+"agent-1", ofGroup)
	s.Put(file, files)
	refused("agent-db.yaml of ConfigMap enipool-agent says cloud.provider: baidu; set it to operator first")
	s.Put(pods+"agent-1", pod("agent-1", "n1"))
	refused("--to aws: must be operator or self", "--to", "aws")
	s.Put(file, agentFile("operator"))
	if code, out, _ := run(append([]string{"migrate", "node", "n1", "--dry-run"}, flags...)...); code != 0 || !strings.Contains(out, "nothing is in the way; pod agent-1 would be deleted") || len(s.Deleted()) > 0 {
		t.Errorf("a dry run: exit %d\n%s", code, out)
	}

	s.OnDelete(func(string) {
		s.Put(pods+"agent-2", pod("agent-2", "n1"))
		s.Put(networks+"n1", network(crd.Operator, crd.Operator))
	})
	code, out, errs := run(append([]string{"migrate", "node", "n1"}, flags...)...)
	for _, want := range []string{"pod agent-1 was deleted", "the operator calls the cloud: 16 of 16 slots", "enipoolctl migrate node n1 --to self"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("exit %d, %q is not in\n%s%s", code, want, out, errs)
		}
	}
	if got := s.Deleted(); !slices.Equal(got, []string{pods + "agent-1"}) {
		t.Errorf("deleted: %v", got)
	}
	if code, out, _ := run(append([]string{"migrate", "node", "n1"}, flags...)...); code != 0 || !strings.Contains(out, "there is nothing to do") {
		t.Errorf("once more: exit %d\n%s", code, out)
	}

	code, _, errs = run(append([]string{"migrate", "node", "n1", "--to", "self"}, flags...)...)
	if code != 2 || !strings.Contains(errs, "says cloud.provider: operator; set it to the node's cloud first") {
		t.Errorf("exit %d, %s", code, errs)
	}
	s.Put(file, agentFile("aws"))
	s.OnDelete(func(string) { s.Put(networks+"n1", network(crd.Self, crd.Self)) })
	code, out, errs = run(append([]string{"migrate", "node", "n1", "--to", "self"}, flags...)...)
	if code != 0 || !strings.Contains(out, "its agent calls the cloud itself") || !strings.Contains(out, "cloud.provider: operator in agent.yaml") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
}

func TestEachPhaseHasWords(t *testing.T) {
	seen := map[string]bool{}
	for _, tt := range []struct {
		n    *crd.NodeNetwork
		to   crd.Mode
		done bool
	}{
		{nil, crd.Operator, false}, {network(crd.Self, crd.Self), crd.Operator, false}, {network(crd.Operator, ""), crd.Operator, false},
		{network(crd.Operator, crd.Self), crd.Operator, false}, {network(crd.Operator, crd.Joining), crd.Operator, false}, {network(crd.Operator, crd.Operator), crd.Operator, true},
		{nil, crd.Self, true}, {network(crd.Operator, crd.Operator), crd.Self, false}, {network(crd.Self, crd.Operator), crd.Self, false},
		{network(crd.Self, crd.Leaving), crd.Self, false}, {network(crd.Self, crd.Joining), crd.Self, false}, {network(crd.Self, crd.Self), crd.Self, true},
	} {
		phase, done := phaseOf(tt.n, tt.to)
		if seen[phase] = true; phase == "" || done != tt.done {
			t.Errorf("%+v to %s: %q, %t", tt.n, tt.to, phase, done)
		}
	}
	if len(seen) < 8 {
		t.Errorf("only %d phases are told apart: %v", len(seen), seen)
	}
	n := network(crd.Operator, crd.Operator)
	n.Status.Causes = []crd.Cause{{Reason: "SubnetFull", Message: "none"}}
	if phase, _ := phaseOf(n, crd.Operator); !strings.HasSuffix(phase, "; SubnetFull: none") {
		t.Error(phase)
	}
}

// What is not reached in time goes on by itself, and the exit code says that it was not.
func TestWhatTakesLongIsNotWaitedFor(t *testing.T) {
	s := clustertest.Start(t)
	s.Put("/api/v1/nodes/n1", node("n1"))
	s.Put(leases, lease(0))
	s.Put(pods+"agent-1", pod("agent-1", "n1"))
	s.Put(file, agentFile("operator"))
	code, out, _ := run("migrate", "node", "n1", "--within", "1s", "--kubeconfig", s.Kubeconfig)
	if code != 1 || !strings.Contains(out, "its agent has not asked the operator yet") || !strings.Contains(out, fmt.Sprintf("`enipoolctl cluster why %s`", "n1")) {
		t.Errorf("exit %d\n%s", code, out)
	}
}
