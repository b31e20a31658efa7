package ipam

import (
	"testing"

	"github.com/enipool/enipool/pkg/eni"
)

// A topology keeps an address for the next pod of a name. A pod of that name that is of another one by now gets nothing of it: it would be taken from under it
// when the first topology ends it. Where the runtime does not tell of topologies the name says it.
func TestWhatATopologyKeepsIsForItsOwnPods(t *testing.T) {
	named := eni.Reservation{Topology: "db", Namespace: "db", Pod: "db-0"}
	this := named
	this.UID = "u-1"
	for name, tt := range map[string]struct {
		kept     eni.Reservation
		topology string
		gated    bool
		gets     bool
	}{
		"its own":                               {named, "db", false, true},
		"another topology":                      {named, "cache", false, false},
		"another topology, by the uid":          {this, "cache", false, false},
		"another topology, where pods wait":     {named, "cache", true, false},
		"none that is told":                     {named, "", false, true},
		"none that is told, where pods wait":    {named, "", true, true},
		"its own, of which nobody has the name": {eni.Reservation{Namespace: "db", Pod: "db-0"}, "db", false, true},
	} {
		s := nodeState(t, 1, "10.0.0.101 0 free 1")
		if tt.gated {
			s.Settings.Gated = []string{"db"}
		}
		keep(s, "10.0.0.101", tt.kept)
		l, err := s.AssignReserved(eni.Owner{Key: key("new"), Namespace: "db", Pod: "db-0", UID: "u-1"}, tt.topology, "", sec(1000))
		if got := len(l.Addresses) == 1; got != tt.gets {
			t.Errorf("%s: got %v, %v", name, l.Addresses, err)
		}
		if !tt.gets && err == nil {
			t.Errorf("%s: it does not wait", name)
		}
	}
}
