package web

import (
	"github.com/enipool/enipool/pkg/health"
	"github.com/enipool/enipool/pkg/status"
	"github.com/prometheus/client_golang/prometheus"
)

// What the agent and the cluster know of each other.
var (
	faultDesc    = newDesc("enipool_fault", "1 for the reason why the node can't give its pods addresses, 0 for the others. Without a fault all are 0.", "reason")
	capacityDesc = newDesc("enipool_capacity", "Pods that can have addresses on the node.")
	podsDesc     = newDesc("enipool_pods", "Pods of the node that need an address, as the API server has it.")
	knownDesc    = newDesc("enipool_pods_known", "Whether the API server has told the node's pods: until then no address is released. Only where it is asked.")
)

// tellCluster tells what is known, and no number for what is not.
func tellCluster(tell func(d *prometheus.Desc, n int, labels ...string), now *status.Status) {
	for _, reason := range health.Reasons() {
		if reason != health.AddressesAvailable {
			tell(faultDesc, oneIf(now.Health.Reason == reason), reason)
		}
	}
	if now.Health.Reason != "" && now.Health.Capacity >= 0 {
		tell(capacityDesc, now.Health.Capacity)
	}
	if now.Watched {
		tell(knownDesc, oneIf(now.Synced))
	}
	if now.Synced {
		tell(podsDesc, now.Pods)
	}
}
