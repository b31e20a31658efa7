package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/enipool/enipool/pkg/kube"
)

// run runs the command and returns what it prints.
func run(args ...string) (string, error) {
	var out bytes.Buffer
	cmd := Command()
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	err := cmd.Execute()
	return out.String(), err
}

// nodeOverlay is what Karpenter reads of one, with the types of its fields.
type nodeOverlay struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name        string            `json:"name"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		Requirements []corev1.NodeSelectorRequirement          `json:"requirements"`
		Capacity     map[corev1.ResourceName]resource.Quantity `json:"capacity"`
	} `json:"spec"`
}

func TestKarpenterIsToldHowManyPodsCanHaveAddresses(t *testing.T) {
	out, err := run("--karpenter", "--instance-type", "m5.xlarge", "--instance-type", "m5.large")
	if err != nil {
		t.Fatal(err)
	}
	want := `# For Karpenter with the feature gate NodeOverlay. It knows nothing of firstENI, of prefixes and of addresses that others have:
# set spec.kubelet.maxPods of the EC2NodeClass to the number of its types, in which pods of the node's own network count too. If they
# differ, with conf/kubernetes/scheduling to the highest, as no node is overfilled then; without it to the least.
# Where some NodePools have nodes without enipool, add a requirement with the key karpenter.sh/nodepool.
#
#   m5.large: maxPods 29
#   m5.xlarge: maxPods 58
---
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata:
  name: enipool-m5.large
  annotations:
    enipool.io/max-pods: "29"
spec:
  requirements:
  - key: node.kubernetes.io/instance-type
    operator: In
    values:
    - m5.large
  capacity:
    enipool.io/pod-addresses: "27"
---
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata:
  name: enipool-m5.xlarge
  annotations:
    enipool.io/max-pods: "58"
spec:
  requirements:
  - key: node.kubernetes.io/instance-type
    operator: In
    values:
    - m5.xlarge
  capacity:
    enipool.io/pod-addresses: "56"
`
	if diff := cmp.Diff(want, out); diff != "" {
		t.Error(diff)
	}
	for i, doc := range strings.Split(out, "---\n")[1:] {
		var o nodeOverlay
		if err := yaml.UnmarshalStrict([]byte(doc), &o); err != nil {
			t.Fatal(err)
		}
		count := o.Spec.Capacity[kube.Resource]
		if wrong := validation.IsDNS1123Subdomain(o.Metadata.Name); len(wrong) > 0 || o.Metadata.Annotations[maxPodsNote] != []string{"29", "58"}[i] || count.Value() != []int64{27, 56}[i] {
			t.Errorf("%+v: %v", o, wrong)
		}
	}
}

// With prefixes a node has more addresses than pods, and the kubelet's number counts; less than that --max-pods says.
func TestNumbersForAutoscalersFollowTheFlags(t *testing.T) {
	for _, tt := range []struct {
		args               string
		addresses, maxPods int
	}{
		{"--instance-type m5.large", 27, 29},
		{"--instance-type m5.large --prefixes", 110, 110},
		{"--instance-type m5.large --prefixes --max-pods 250", 250, 250},
		{"--instance-type m5.large --max-pods 20", 20, 20},
		{"--instance-type m5.large --max-pods 28", 27, 28},
		{"--instance-type m5.large --max-pods 200", 27, 29},
		{"--instance-type m5.large --max-enis 2", 18, 20},
		{"--instance-type bcc.g5.c16m64", 110, 110},
	} {
		out, err := run(append(strings.Fields(tt.args), "--cluster-autoscaler", "--output", "json")...)
		if err != nil {
			t.Fatal(err)
		}
		var all struct{ Types []sized }
		if err := json.Unmarshal([]byte(out), &all); err != nil {
			t.Fatal(err)
		}
		list := all.Types
		name, _ := strings.CutPrefix(fmt.Sprint(podAddresses), "")
		if len(list) != 1 || list[0].Addresses != tt.addresses || list[0].MaxPods != tt.maxPods || list[0].Tags["k8s.io/cluster-autoscaler/node-template/resources/"+name] != strconv.Itoa(tt.addresses) {
			t.Errorf("%s: %s, want %d and %d", tt.args, out, tt.addresses, tt.maxPods)
		}
	}
	if podAddresses != kube.Resource {
		t.Errorf("the resource is %s", kube.Resource)
	}
	out, err := run("--cluster-autoscaler", "--instance-type", "m5.large")
	if want := "m5.large\tmaxPods=29\tk8s.io/cluster-autoscaler/node-template/resources/enipool.io/pod-addresses=27\n"; err != nil || out != want {
		t.Errorf("%q, %v", out, err)
	}
}

func TestWhatAnAutoscalerCannotBeToldIsRefused(t *testing.T) {
	for args, want := range map[string]string{
		"--karpenter --cluster-autoscaler --instance-type m5.large":        "leave out --cluster-autoscaler",
		"--karpenter --cpus 16 --memory 64":                                "--instance-type: an autoscaler knows nodes by their types",
		"--karpenter --instance-type m5.large -o json":                     "--karpenter writes yaml",
		"--cluster-autoscaler --instance-type m5.large -o csv":             "--output csv",
		"--karpenter --instance-type m5.large --max-pods 20 --max-pods 30": "--max-pods: give one",
		"--karpenter --instance-type m5.large --max-pods 0":                "must be at least 1",
		"--karpenter --instance-type m5.none":                              "m5.none",
	} {
		if _, err := run(strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}
