package web

import (
	"github.com/enipool/enipool/pkg/health"
	"github.com/enipool/enipool/pkg/status"
	"github.com/prometheus/client_golang/prometheus"
)

// What the agent and the cluster know of each other.
var (
	faultDesc    = describe("enipool_fault", "1 for the reason why the node can't give its pods addresses, 0 for the others. Without a fault all are 0.", "reason")
	capacityDesc = describe("enipool_capacity", "Pods that can have addresses on the node.")
	podsDesc     = describe("enipool_pods", "Pods of the node that need an address, as the API server has it.")
	knownDesc    = describe("enipool_pods_known", "Whether the API server has told the node's pods: until then no address goes back. Only where it is asked.")
)

// tellCluster tells what is known, and no number for what is not.
func tellCluster(tell func(d *prometheus.Desc, n int, labels ...string), s *status.Status) {
	for _, reason := range health.Reasons() {
		if reason != health.AddressesAvailable {
			tell(faultDesc, number(s.Health.Reason == reason), reason)
		}
	}
	if s.Health.Reason != "" && s.Health.Capacity >= 0 {
		tell(capacityDesc, s.Health.Capacity)
	}
	if s.Watched {
		tell(knownDesc, number(s.Synced))
	}
	if s.Synced {
		tell(podsDesc, s.Pods)
	}
}
