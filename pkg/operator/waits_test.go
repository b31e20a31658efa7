package operator

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/order"
)

// Since when pods wait the agent writes: it decides about the node's place among the others, and not for ever.
func TestPodsCountAsWaitingForAnHourAtMost(t *testing.T) {
	now := order.Moment{Mono: 10 * time.Minute, Wall: time.Unix(1_800_000_000, 0)}
	for since, want := range map[time.Time]time.Duration{
		now.Wall.Add(-time.Minute):    9 * time.Minute,
		now.Wall.Add(time.Hour):       10 * time.Minute,
		time.Unix(0, 0):               -50 * time.Minute,
		now.Wall.Add(-61 * time.Hour): -50 * time.Minute,
	} {
		m := newMember(Node{Name: "n1"}, order.NewTerm(order.Lease{}, 1, 0))
		m.network = &crd.NodeNetwork{Spec: crd.NodeNetworkSpec{Waiting: 1, WaitingSince: &metav1.Time{Time: since}}}
		if got := m.waitingFrom(now); got != want {
			t.Errorf("since %s: %s, want %s", since, got, want)
		}
		if got := m.waitingFrom(order.Moment{Mono: time.Hour, Wall: now.Wall.Add(time.Hour)}); got > time.Hour || got < -time.Hour {
			t.Errorf("since %s, later: %s", since, got)
		}
	}
}

// More than an object takes of a handover is not taken in, should one be older than its rules.
func TestAHandoverIsTakenInWithinItsLimits(t *testing.T) {
	many := make([]string, 2000)
	h := handoverOf(&crd.NodeNetwork{Spec: crd.NodeNetworkSpec{Handover: &crd.Handover{Tokens: many, Release: many, ReleaseInterfaces: many}}})
	if len(h.Tokens) != mostTokens || len(h.Release) != mostReleases || len(h.ReleaseInterfaces) != mostENIs {
		t.Errorf("%d, %d, %d", len(h.Tokens), len(h.Release), len(h.ReleaseInterfaces))
	}
	if h := handoverOf(&crd.NodeNetwork{}); len(h.Tokens)+len(h.Release)+len(h.ReleaseInterfaces) > 0 {
		t.Errorf("%+v", h)
	}
}
