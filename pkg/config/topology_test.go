package config

import "testing"

// Of a pod whose annotations the runtime does not pass nobody knows whether it is of a topology.
func TestWhetherAPodIsKnownToBeOfNoTopology(t *testing.T) {
	for _, tt := range []struct {
		what, runtime, topology string
		ofNone                  bool
	}{
		{"no annotations are passed", `{"portMappings": []}`, "", false},
		{"it has none", `{"io.kubernetes.cri.pod-annotations": {}}`, "", true},
		{"it has others", `{"io.kubernetes.cri.pod-annotations": {"kubernetes.io/config.seen": "x"}}`, "", true},
		{"it has one", `{"io.kubernetes.cri.pod-annotations": {"enipool.io/topology": "db"}}`, "db", false},
		{"it is empty", `{"io.kubernetes.cri.pod-annotations": {"enipool.io/topology": ""}}`, "", true},
		{"another has its name", `{"io.kubernetes.cri.pod-annotations": {"x": "enipool.io/topology"}}`, "", true},
	} {
		p, err := ParsePlugin([]byte(`{"cniVersion": "1.0.0", "name": "enipool", "type": "enipool", "runtimeConfig": ` + tt.runtime + `}`))
		if err != nil || p.Topology != tt.topology || p.OfNoTopology != tt.ofNone {
			t.Errorf("%s: %q, %v, %v", tt.what, p.Topology, p.OfNoTopology, err)
		}
	}
}
