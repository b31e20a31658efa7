package plan

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/enipool/enipool/plugins/enipoolctl/cli"
	"github.com/goccy/go-yaml"
)

// podAddresses is the resource by which the scheduler counts addresses: kube.Resource.
const podAddresses = "enipool.io/pod-addresses"

// tagPrefix is before the name of a resource in the tag by which the Cluster Autoscaler knows what a node of a group without nodes has.
const tagPrefix = "k8s.io/cluster-autoscaler/node-template/resources/"

// maxPodsNote is the annotation of a NodeOverlay that says which maxPods its number goes with.
const maxPodsNote = "enipool.io/max-pods"

// hostPods is how many pods in the node's own network a node usually has, as AWS counts them: enipool-agent and kube-proxy. They need no address, but
// maxPods counts them.
const hostPods = 2

// sized is what an autoscaler is to know of an instance type.
type sized struct {
	Type      string            `json:"instanceType"`
	Addresses int               `json:"addresses"` // as the resource counts them
	MaxPods   int               `json:"maxPods"`
	Places    int               `json:"topologyPlaces,omitempty"` // kept for pods of topologies, beside those addresses
	Tags      map[string]string `json:"tags"`
}

// overlay is a NodeOverlay of karpenter.sh/v1alpha1, as much of it as is needed.
type overlay struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   overlayMeta     `json:"metadata"`
	Spec       overlayContents `json:"spec"`
}

type overlayMeta struct {
	Name        string            `json:"name"`
	Annotations map[string]string `json:"annotations"`
}

type overlayContents struct {
	Requirements []requirement     `json:"requirements"`
	Capacity     map[string]string `json:"capacity"`
}

type requirement struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"`
	Values   []string `json:"values"`
}

// forAutoscalers tells whether the answer is for an autoscaler.
func (f *commandFlags) forAutoscalers() bool { return f.karpenter || f.clusterAutoscaler }

// printForAutoscalers prints what an autoscaler is to know of each instance type.
func (f *commandFlags) printForAutoscalers(w io.Writer) error {
	list, err := f.sizeTypes()
	if err != nil {
		return err
	}
	if f.karpenter {
		return printOverlays(w, list)
	}
	all := struct {
		Types []sized `json:"types"`
	}{list}
	return cli.PrintAs(w, f.output, all, func() error {
		for _, s := range list {
			fmt.Fprintf(w, "%s\tmaxPods=%d\t%s%s=%d\n", s.Type, s.MaxPods, tagPrefix, podAddresses, s.Addresses)
		}
		return nil
	})
}

// sizeTypes returns the types with how many pods each runs: as many as it has addresses for and those of the node's own network, within --max-pods.
func (f *commandFlags) sizeTypes() ([]sized, error) {
	switch {
	case f.karpenter && f.clusterAutoscaler:
		return nil, errors.New("--karpenter: leave out --cluster-autoscaler; each has a form of its own")
	case f.karpenter && f.output != "table" && f.output != "yaml":
		return nil, fmt.Errorf("--output %s: --karpenter writes yaml", f.output)
	case f.output == "csv":
		return nil, errors.New("--output csv: --cluster-autoscaler writes lines, json or yaml")
	case len(f.Types) == 0:
		return nil, errors.New("--instance-type: an autoscaler knows nodes by their types; give at least one")
	case len(f.maxPods) > 1:
		return nil, errors.New("--max-pods: give one; an instance type has one number")
	}
	if err := f.InstanceFlags.CheckNumbers(); err != nil {
		return nil, cli.FirstLine(err)
	}
	instances, err := f.Instances()
	if err != nil {
		return nil, err
	}
	var list []sized
	for _, m := range instances {
		// As many as the agent publishes: what the node has addresses for, and no more than the kubelet runs.
		kubelet := 110
		if len(f.maxPods) == 1 {
			if kubelet = f.maxPods[0]; kubelet < 1 {
				return nil, fmt.Errorf("--max-pods %d: must be at least 1", kubelet)
			}
		}
		// Places of topologies are not among them: the scheduler would give them to any pod, and those of topologies would wait.
		n, err := f.keepPlaces(m)
		if err != nil {
			return nil, err
		}
		addresses := min(kubelet, n.most)
		list = append(list, sized{m.Name, addresses, min(kubelet, addresses+hostPods), n.places, map[string]string{tagPrefix + podAddresses: strconv.Itoa(addresses)}})
	}
	return list, nil
}

// printOverlays prints a NodeOverlay for each type.
func printOverlays(w io.Writer, list []sized) error {
	fmt.Fprintln(w, `# For Karpenter with the feature gate NodeOverlay. It knows nothing of firstENI, of prefixes and of addresses that others have:
# set spec.kubelet.maxPods of the EC2NodeClass to the number of its types, in which pods of the node's own network count too. If they
# differ, with conf/kubernetes/scheduling to the highest, as no node is overfilled then; without it to the least.
# Where some NodePools have nodes without enipool, add a requirement with the key karpenter.sh/nodepool.
#`)
	for _, s := range list {
		fmt.Fprintf(w, "#   %s: maxPods %d\n", s.Type, s.MaxPods)
	}
	for _, s := range list {
		// One for each type: applied again with other numbers it is the same object, and no two of them contradict each other.
		text, err := yaml.MarshalWithOptions(overlay{"karpenter.sh/v1alpha1", "NodeOverlay",
			overlayMeta{"enipool-" + strings.ToLower(s.Type), map[string]string{maxPodsNote: strconv.Itoa(s.MaxPods)}},
			overlayContents{[]requirement{{"node.kubernetes.io/instance-type", "In", []string{s.Type}}}, map[string]string{podAddresses: strconv.Itoa(s.Addresses)}}}, yaml.UseJSONMarshaler())
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "---\n%s", text)
	}
	return nil
}
