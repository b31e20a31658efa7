package operator

import (
	"errors"
	"testing"

	"github.com/enipool/enipool/pkg/kube/crd"
)

// People are told of changes that need them, and when these are over.
func TestPeopleAreToldOfSubnets(t *testing.T) {
	for _, tt := range []struct{ before, now, reason string }{
		{"Ready", "Full", "SubnetFull"}, {"Low", "Full", "SubnetFull"}, {"", "Full", "SubnetFull"}, {"Full", "Ready", "Recovered"}, {"Low", "Ready", "Recovered"},
		{"Missing", "Ready", "Recovered"}, {"Ready", "Low", "Isolated"}, {"Ready", "Missing", "SubnetMissing"},
		{"", "Ready", ""}, {"Full", "Full", ""}, {"Disabled", "Ready", ""}, {"Full", "Disabled", ""},
	} {
		got := subnetNotices(&crd.Subnet{Status: crd.SubnetStatus{State: tt.now}}, crd.SubnetStatus{State: tt.before})
		reason := ""
		for _, n := range got {
			if reason += n.Reason; n.Warning != (n.Reason != "Recovered") || n.Message == "" || n.Kind != "Subnet" {
				t.Errorf("%s to %s: %+v", tt.before, tt.now, n)
			}
		}
		if reason != tt.reason {
			t.Errorf("%s to %s: %q, want %q", tt.before, tt.now, reason, tt.reason)
		}
	}
}

func TestPeopleAreToldOfNodes(t *testing.T) {
	status := func(is, reason string) (s crd.NodeNetworkStatus) {
		if reason != "" {
			s.Conditions = []condition{{Type: Described}, {Type: Satisfied, Status: "True", Reason: reason, Message: "5 of 8 slots"}}
			if is == "" {
				s.Conditions[1].Status = "False"
			}
		}
		return s
	}
	for _, tt := range []struct{ before, now, reason string }{
		{"", "Forbidden", "Forbidden"}, {"Growing", "AccountLimit", "AccountLimit"}, {"SubnetFull", "Forbidden", "Forbidden"}, {"Forbidden", "Satisfied", "Recovered"},
		{"Growing", "Satisfied", ""}, {"Growing", "Throttled", ""}, {"Forbidden", "Growing", "Recovered"}, {"Forbidden", "Forbidden", ""}, {"", "Growing", ""},
	} {
		is := ""
		if tt.now == Satisfied {
			is = "yes"
		}
		reason := ""
		for _, n := range nodeNotices(&crd.NodeNetwork{Status: status(is, tt.now)}, status("", tt.before)) {
			if reason += n.Reason; n.Warning != (n.Reason != "Recovered") || n.Message == "" {
				t.Errorf("%s to %s: %+v", tt.before, tt.now, n)
			}
		}
		if reason != tt.reason {
			t.Errorf("%s to %s: %q, want %q", tt.before, tt.now, reason, tt.reason)
		}
	}
	n := &crd.NodeNetwork{}
	n.Name, n.UID = "n1", "u1"
	if got := writeRefused(n, errors.New("422")); got.Reason != "Refused" || !got.Warning || got.UID != "u1" {
		t.Errorf("%+v", got)
	}
	if got := leakDeleted(n, "eni-1"); got.Reason != "LeakDeleted" || got.Warning || got.Name != "n1" {
		t.Errorf("%+v", got)
	}
}
