package hostport

import (
	"testing"

	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/podrecord"
)

func TestARecordInOtherWordsAsksForTheSame(t *testing.T) {
	first := record("a", "first", 0, "10.0.0.6", "80")
	for _, tt := range []struct {
		name        string
		rec         []string
		asked       []string
		same, alone bool // beside the first network of the pod, without it
	}{
		{"the order of ports", []string{"10.0.0.5", "81", "82"}, []string{"10.0.0.5", "82", "81"}, true, true},
		{"all addresses of the only family", []string{"10.0.0.5", "81"}, []string{"10.0.0.5", "81@0.0.0.0"}, true, true},
		{"one port twice", []string{"10.0.0.5", "81"}, []string{"10.0.0.5", "81", "81@0.0.0.0"}, true, true},
		{"all addresses of one of two families", []string{"10.0.0.5", "fd00::5", "81"}, []string{"10.0.0.5", "fd00::5", "81@0.0.0.0"}, false, false},
		{"one address of the node", []string{"10.0.0.5", "81@10.0.0.1"}, []string{"10.0.0.5", "81"}, false, false},
		{"a port less", []string{"10.0.0.5", "81"}, []string{"10.0.0.5", "81", "82"}, false, false},
		{"a port more", []string{"10.0.0.5", "81", "82"}, []string{"10.0.0.5", "81"}, false, false},
		{"no ports left", []string{"10.0.0.5"}, []string{"10.0.0.5", "81"}, false, false},
		{"what another network has", []string{"10.0.0.5", "81"}, []string{"10.0.0.5", "80", "81"}, true, false},
	} {
		rec, asked := record("a", "pods", 0, tt.rec...), record("a", "pods", 0, tt.asked...)
		strangers := record("b", "pods", 0, "10.0.0.7", "80", "81", "82")
		if same := SameExtras(rec, asked, []podrecord.Record{first, rec, strangers}); same != tt.same {
			t.Errorf("%s: the same is %v", tt.name, same)
		}
		if same := SameExtras(rec, asked, []podrecord.Record{rec, strangers}); same != tt.alone {
			t.Errorf("%s, with one network: the same is %v", tt.name, same)
		}
	}
	rec, asked := record("a", "pods", 0, "10.0.0.5", "81"), record("a", "pods", 0, "10.0.0.5", "81")
	asked.Ports[0].PodPort++
	if SameExtras(rec, asked, nil) {
		t.Error("a port that leads to another one of the pod is the same")
	}
	asked = rec
	asked.Limits.Egress = netconf.Limit{Rate: 8e6, Burst: 8e6}
	if SameExtras(rec, asked, nil) {
		t.Error("a limit more is the same")
	}
}
