package agent

import (
	"cmp"
	"fmt"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/health"
)

// warnedFor is how long a pod that lacks no address any more, or is gone, is
// remembered to have been told.
const warnedFor = 10 * time.Minute

// warn tells the people of each pod whose ADD failed why, once until all has been
// well for a while.
func (a *Agent) warn(now time.Duration) {
	if h := a.mem.Health; !h.Faulty && h.Well > 0 && now-h.Well >= a.conf.Kubernetes.Health.Quiet {
		clear(a.warned)
	}
	expire(a.warned, now-warnedFor)
	for _, w := range a.waiting {
		pod := eni.Pod{UID: w.Owner.UID, Namespace: w.Owner.Namespace, Name: w.Owner.Pod}
		_, told := a.warned[pod]
		if pod.Name == "" || !told && !w.Failed {
			continue
		}
		a.warned[pod] = now
		if !told {
			a.Warn(a.withUID(pod), cmp.Or(a.mem.Health.Cause, health.NoFreeAddress), a.noAddress())
		}
	}
}

// withUID returns the pod with the UID that the cluster knows where the runtime told
// none.
func (a *Agent) withUID(pod eni.Pod) eni.Pod {
	if pod.UID != "" || a.Pods == nil {
		return pod
	}
	pods, _ := a.Pods()
	for _, p := range pods {
		if p.Namespace == pod.Namespace && p.Name == pod.Name {
			return p
		}
	}
	return pod
}

// noAddress says what the error of an ADD says.
func (a *Agent) noAddress() string {
	n := a.status.Addresses
	held := ""
	if n.Held > 0 {
		held = fmt.Sprintf(", %d held by others", n.Held)
	}
	return fmt.Sprintf("no free address: %d addresses on %d ENIs, %d used, %d cooling%s; the agent: %s", n.Attached, a.status.ENIs, n.Used, n.Cooling, held, a.why())
}
