package operator

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/enipool/enipool/pkg/cloud"
)

// clusterNames counts ENIs by the name of the cluster that they are tagged with. ENIs without one are left out: earlier agents had none.
type clusterNames map[string]int

// namesOf counts the ENIs that a describe has shown of a node.
func namesOf(s *shown) clusterNames {
	names := clusterNames{}
	if s == nil {
		return names
	}
	for _, nic := range s.view.Interfaces {
		if nic.Ours && nic.Cluster != "" {
			names[nic.Cluster]++
		}
	}
	return names
}

// other returns the name of another cluster that more ENIs have than the operator's own, the most of them, "" where there is none. A few that have
// another name are what somebody has moved here, or of before the cluster had its name; where most have it, the operator's is wrong.
func (n clusterNames) other(own string) string {
	names := slices.SortedFunc(maps.Keys(n), func(a, b string) int { return cmp.Or(cmp.Compare(n[b], n[a]), cmp.Compare(a, b)) })
	if len(names) == 0 || n[names[0]] <= n[own] {
		return ""
	}
	return names[0]
}

// fixCluster is what people do where the names differ.
const fixCluster = "set cloud.cluster of operator.yaml to the name that cloud.cluster of agent.yaml has had; if the cluster has got another name on purpose, this ends as its ENIs are replaced"

// compareNames compares the name of the cluster with the tags of its nodes' ENIs, once everything was described. It is told once.
func (t *term) compareNames() {
	if t.o.Cluster == "" {
		return
	}
	all, first := clusterNames{}, ""
	for _, members := range []map[string]*member{t.members, t.guests} {
		for name, m := range members {
			names := namesOf(m.shown)
			for cluster, n := range names {
				all[cluster] += n
			}
			if m.network != nil && names.other(t.o.Cluster) != "" && (first == "" || name < first) {
				first = name
			}
		}
	}
	before := t.looks.otherCluster
	switch t.looks.otherCluster = all.other(t.o.Cluster); {
	case t.looks.otherCluster == before:
	case t.looks.otherCluster == "":
		t.o.Log.Info("the nodes' ENIs are tagged with this cluster's name again", "cluster", t.o.Cluster)
	default:
		t.o.Log.Warn("the nodes' ENIs are tagged with the name of another cluster: what this operator makes gets the wrong name, and what instances leave behind is not deleted; "+fixCluster,
			"cluster", t.o.Cluster, "tagged", t.looks.otherCluster, "enis", all[t.looks.otherCluster], "own", all[t.o.Cluster])
		if m := t.members[first]; m != nil { // one stands for all: there may be thousands
			t.tellPeople(Notice{Kind: "NodeNetwork", Name: m.network.Name, UID: string(m.network.UID), Warning: true, Reason: "OtherCluster",
				Message: fmt.Sprintf("its ENIs are tagged with cluster %s, and the operator's is %s, as for %d ENIs of all nodes; %s", t.looks.otherCluster, t.o.Cluster, all[t.looks.otherCluster], fixCluster)})
		}
	}
}

// checkCluster returns what a check says of the cluster's name.
func (o *Operator) checkCluster(ctx context.Context) (list cloud.Findings, err error) {
	const what = "cluster name"
	if o.o.Cluster == "" {
		return nil, nil
	}
	return askLoop(ctx, o, func(t *term) (list cloud.Findings) {
		switch {
		case t.looks.shown.IsZero():
			list.Say(what, cloud.Unasked, "", "nothing was described in this term yet")
		case t.looks.otherCluster != "":
			list.Say(what, cloud.Broken, fixCluster, "it is %s here, and the nodes' ENIs are tagged with %s", o.o.Cluster, t.looks.otherCluster)
		default:
			list.Say(what, cloud.Works, "", "it is %s, and most of the nodes' ENIs have no other one", o.o.Cluster)
		}
		return list
	})
}
