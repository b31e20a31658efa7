package hostport

import (
	"fmt"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/podrecord"
)

// Of the networks of one pod the kernel tells which has the port, where the record that is
// there had to wait. Otherwise records decide, those of pods that are gone too.
func TestALostRecordHasThePortsForWhichAnotherNetworkWaits(t *testing.T) {
	lost := record("pod", "lost", 0, "10.0.0.5", "80", "81", "82")
	have := Ports(lost)
	lost.Ports = nil
	for name, tt := range map[string]struct {
		records []podrecord.Record
		want    string
	}{
		"nobody else":                      {nil, "[80 81 82]"},
		"another network waits":            {[]podrecord.Record{record("pod", "more", 1, "10.0.0.6", "80", "81")}, "[80 81 82]"},
		"another network had nobody ahead": {[]podrecord.Record{record("pod", "more", 0, "10.0.0.6", "80")}, "[81 82]"},
		"another pod":                      {[]podrecord.Record{record("other", "lost", 0, "10.0.0.6", "81")}, "[80 82]"},
		"another pod's second network":     {[]podrecord.Record{record("other", "more", 1, "10.0.0.6", "81")}, "[80 82]"},
		"the address's former pod":         {[]podrecord.Record{record("former", "lost", 0, "10.0.0.5", "82")}, "[80 81]"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []uint16
			for _, r := range Lost([]podrecord.Record{lost}, tt.records, have, map[eni.Key]netconf.Limits{}) {
				for _, p := range r.Ports {
					got = append(got, p.Port)
				}
			}
			if fmt.Sprint(got) != tt.want {
				t.Errorf("ports %v, want %s", got, tt.want)
			}
		})
	}
}
