package claims

import "github.com/enipool/enipool/pkg/topology"

// Counts returns the topologies' counts by name, nil as long as not everything was told of.
func (k *Known) Counts() map[string]topology.Count {
	if !k.complete || k.lists == 0 {
		return nil
	}
	counts := map[string]topology.Count{}
	cluster := k.largeCluster()
	for name, of := range k.topologies {
		counts[name] = topology.Count{Room: cluster.Room(of)}
	}
	add := func(name string, pods, claims int) {
		if c, is := counts[name]; is {
			c.Pods, c.Claims = c.Pods+pods, c.Claims+claims
			counts[name] = c
		}
	}
	for _, p := range k.pods {
		if !p.Ended && p.Node != "" {
			add(p.Topology, 1, 0)
		}
	}
	for _, c := range k.claims {
		add(c.Topology, 0, 1)
	}
	return counts
}
