package classify

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/enipool/enipool/pkg/topology"
)

// Pod is one that has the gate, as much of it as is needed. It is small: thousands may wait.
type Pod struct {
	topology.Pod // without the labels of its namespace
	Version      string
	Annotated    bool // it has annotations
	OnHost       bool // in its node's network: it has no address of its own, whatever selects it
	Affinity     *corev1.Affinity
	gateAt       int // among its gates
}

// key is whose pod of a name it is.
func (p Pod) key() key { return key{p.Namespace, p.Name} }

type key struct{ namespace, name string }

// PodOf returns a pod as it is needed here, false if it has no gate. One that is being deleted needs no address.
func PodOf(p *corev1.Pod) (Pod, bool) {
	is := Pod{Pod: topology.Pod{Namespace: p.Namespace, Name: p.Name, UID: string(p.UID)}}
	is.gateAt = slices.IndexFunc(p.Spec.SchedulingGates, func(g corev1.PodSchedulingGate) bool { return g.Name == Gate })
	if is.gateAt < 0 || p.DeletionTimestamp != nil {
		return is, false
	}
	is.Version, is.Labels, is.Annotated, is.Affinity = p.ResourceVersion, maps.Clone(p.Labels), len(p.Annotations) > 0, p.Spec.Affinity.DeepCopy()
	is.OnHost = p.Spec.HostNetwork
	if owner := metav1.GetControllerOf(p); owner != nil && owner.Kind == "StatefulSet" && strings.HasPrefix(owner.APIVersion, "apps/") {
		is.StatefulSet = topology.Workload{Name: owner.Name, UID: string(owner.UID)}
	}
	return is, true
}

// Operation is one step of a JSON patch.
type Operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// nothing is the value of what is not there.
var nothing = json.RawMessage("null")

// patchOf returns the one patch that classifies a pod. It tests all that it goes by: the gate of a pod of the same name, or an
// affinity that somebody has changed meanwhile, stays as it is. zones are values of the label of Nodes.
func patchOf(p Pod, of string, zones []string) []Operation {
	gate := "/spec/schedulingGates/" + strconv.Itoa(p.gateAt)
	patch := []Operation{{"test", "/metadata/uid", p.UID}, {"test", gate + "/name", Gate}}
	if of != "" {
		affinity := Operation{"test", "/spec/affinity", nothing}
		if p.Affinity != nil {
			affinity.Value = p.Affinity
		}
		patch = append(patch, affinity, Operation{"add", "/spec/affinity", inZones(p.Affinity, zones)})
		patch = append(patch, addName("/metadata/labels", len(p.Labels) > 0, of)...)
		patch = append(patch, addName("/metadata/annotations", p.Annotated, of)...)
	}
	return append(patch, Operation{"remove", gate, nil})
}

// addName names the topology in a map that the pod has, or makes the map.
func addName(path string, has bool, of string) []Operation {
	if has {
		return []Operation{{"add", path + "/" + strings.ReplaceAll(Gate, "/", "~1"), of}}
	}
	return []Operation{{"test", path, nothing}, {"add", path, map[string]string{Gate: of}}}
}

// inZones returns an affinity that asks for one of the zones besides what it asked for.
func inZones(was *corev1.Affinity, zones []string) *corev1.Affinity {
	is := was.DeepCopy()
	if is == nil {
		is = &corev1.Affinity{}
	}
	if is.NodeAffinity == nil {
		is.NodeAffinity = &corev1.NodeAffinity{}
	}
	in := corev1.NodeSelectorRequirement{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: zones}
	required := is.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if required == nil || len(required.NodeSelectorTerms) == 0 {
		is.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{in}}}}
		return is
	}
	for i := range required.NodeSelectorTerms {
		// A node has to match one of the terms. An empty one matches none, and the API server lets nobody change it.
		if term := &required.NodeSelectorTerms[i]; len(term.MatchExpressions)+len(term.MatchFields) > 0 {
			term.MatchExpressions = append(term.MatchExpressions, in)
		}
	}
	return is
}
