package agent

import (
	"cmp"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/health"
	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/pkg/pool"
)

// warnedFor is how long a pod that lacks no address any more, or is gone, is
// remembered to have been told.
const warnedFor = 10 * time.Minute

// news is what people were told, so that it is not told again.
type news struct {
	said     map[string]string         // the step last logged of an ENI: a retry is not news
	warned   map[eni.Pod]time.Duration // pods whose people were told, when they last lacked an address
	full     string                    // the kind of the limit that pods wait behind, "" once an address was free
	wrongVPC string                    // what is wrong with the VPC's ranges, "" if nothing is
}

// isNews tells whether the step is another one than the last of its ENI.
func (n *news) isNews(s pool.Step) bool {
	text := s.Do.String() + s.Reason
	if s.ENI != "" && n.said[s.ENI] == text {
		return false
	}
	n.said[s.ENI] = text
	return true
}

// toWarn returns the pods whose people are to be told that it got no address: each whose ADD failed, once
// until it has lacked none for a while. well forgets all that were told.
func (n *news) toWarn(waiting []nodecache.PendingADD, well bool, now time.Duration) (pods []eni.Pod) {
	if well {
		clear(n.warned)
	}
	expire(n.warned, now-warnedFor)
	for _, w := range waiting {
		pod := eni.Pod{UID: w.Owner.UID, Namespace: w.Owner.Namespace, Name: w.Owner.Pod}
		_, told := n.warned[pod]
		if pod.Name == "" || !told && !w.Failed {
			continue
		}
		n.warned[pod] = now
		if !told {
			pods = append(pods, pod)
		}
	}
	return pods
}

// warn tells the people of each pod whose ADD failed why, once until all has been
// well for a while.
func (a *Agent) warn(now time.Duration, causes []pool.Cause) {
	h := a.mem.Health
	well := !h.Faulty && h.Well > 0 && now-h.Well >= a.conf.Kubernetes.Health.Quiet
	reason := cmp.Or(h.Cause, health.NoFreeAddress)
	if len(causes) > 0 {
		reason = causes[0].Kind.Reason()
	}
	for _, pod := range a.toWarn(a.waiting, well, now) {
		a.Warn(a.withUID(pod), reason, a.noAddress(now))
	}
}

// tellFull logs once that pods wait behind a limit of the node, before that has lasted for long enough to be a fault. What fails
// is logged where it does.
func (a *Agent) tellFull(causes []pool.Cause) {
	switch {
	case a.demand.free > 0:
		a.full = ""
	case len(causes) == 0 || !causes[0].Kind.IsLimit() || a.full == causes[0].Kind.String():
	default:
		a.full = causes[0].Kind.String()
		a.Log.Warn("node is full", "addresses", a.demand.owned, "used", a.demand.used, "atMost", a.status.Most, "cause", health.Explain(asFault(causes[0])))
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
func (a *Agent) noAddress(now time.Duration) string {
	none := "no free address"
	if a.cached != nil {
		none = a.cached.Exhaust("", now).Error()
	}
	return none + "; the agent: " + a.why()
}
