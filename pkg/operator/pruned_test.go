package operator

import (
	"slices"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/kube/crd"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What an API server can't keep, the zone of a time or the difference between no list and an empty one, is nothing that it lacks.
func TestOnlyWhatIsNotKeptIsLacking(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("there", 3600))
	sent := crd.NodeNetworkStatus{Mode: "Operator", Revision: 4, Epoch: 1, Releasing: []string{}, Quarantined: []crd.Quarantined{{Address: "10.0.0.9", Until: metav1.Time{Time: at}}},
		InstanceFacts: crd.InstanceFacts{Zone: "a", Limits: &crd.Limits{Interfaces: 3, V4: 9}}}
	kept := *(&crd.NodeNetwork{Status: sent}).DeepCopy()
	kept.Status.Releasing, kept.Status.Quarantined[0].Until = nil, metav1.Time{Time: at.UTC()}
	if a := answerTo(sent, kept.Status); a != nil {
		t.Errorf("all is kept: %v", lackingFields(sent, kept.Status))
	}
	kept.Status.Zone, kept.Status.Limits.V4 = "", 0
	a := answerTo(sent, kept.Status)
	if lacks := lackingFields(content(sent), content(kept.Status)); a == nil || a.broken || !slices.Equal(lacks, []string{"limits.v4", "zone"}) {
		t.Errorf("%+v, lacking %v", a, lacks)
	}
	if !a.covers(kept.Status, sent) || a.covers(sent, sent) || a.covers(kept.Status, kept.Status) {
		t.Error("what was sent is what is sent again")
	}
	kept.Status.Quarantined = nil
	if a := answerTo(sent, kept.Status); a == nil || !a.broken {
		t.Errorf("a later leader does not know of the quarantine: %+v", a)
	}
}
