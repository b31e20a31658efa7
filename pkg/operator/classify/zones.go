package classify

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/enipool/enipool/pkg/topology"
)

// labelsOf returns the values of the label of Nodes for the zones in which a pod can run, or what it waits for. A zone in which no Node is counts
// where it is known how its Nodes will be labelled: something that adds Nodes does so for pods without a gate alone. People are told of a pod
// for which there are only such.
func (t *term) labelsOf(p *pod, class topology.Class, now time.Time) (labels []string, wait topology.Wait) {
	seen := false
	for _, zone := range class.Zones {
		of, known := t.ZoneLabels(zone)
		if !known {
			return nil, topology.Wait{Until: now.Add(scanEvery)}
		}
		labels, seen = append(labels, of.Values...), seen || of.Seen
	}
	if class.Topology == "" || seen {
		return labels, wait
	}
	where := fmt.Sprintf("no Node has been seen in zone %s, where the addresses of topology %s are", strings.Join(class.Zones, " or "), class.Topology)
	if len(labels) == 0 {
		return nil, topology.Wait{Cause: topology.NoNode, Message: fmt.Sprintf("%s, and the label %s of other Nodes does not tell which one Nodes there will have: add one", where, corev1.LabelTopologyZone)}
	}
	t.tellPod(p, string(topology.NoNode), where+": the pod waits until there is one")
	return labels, wait
}
