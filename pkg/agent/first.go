package agent

import (
	"context"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// seenKept is how old the time of the last describe in the memory may be: an agent that is killed
// leaves no newer one, and each is a write.
const seenKept = 20 * time.Minute

// untriedLook is within which time an agent describes that the cloud has not answered before.
const untriedLook = time.Minute

// spreadFirst puts off the first describe of an agent that is started again: agents of a shared
// account that are restarted together, as by a rollout, would take all that it has for minutes.
// Where the last describe is older than that of any agent that runs, what the cloud took away
// meanwhile may go to a pod with each ADD: it does not wait.
func (a *Agent) spreadFirst() {
	most := min(a.conf.DescribeQuiet(), spareLook)
	if !a.tried() {
		most = min(most, untriedLook)
	}
	if m := &a.mem; most > 0 && m.Scale != nil && a.Now()-m.Seen < longestPeriod {
		a.describeAt = a.Now() + time.Duration(a.Rand.Int64N(int64(most)))
	}
}

// canWait tells whether nothing needs the cloud before the first describe is due: the node cache is
// as the agent before has left it, nothing that it began is under way, and pods need no more than it knew.
func (a *Agent) canWait(ctx context.Context, now time.Duration) bool {
	m := &a.mem
	failed := a.backoffs[of(looks)].times > 0
	if m.Scale == nil || m.Health.Faulty || failed || a.urgent || len(m.Creates)+len(m.Begun)+len(m.Leaving)+len(m.Unsure) > 0 {
		return false
	}
	cached, err := a.read(ctx)
	if err != nil || len(cached.Damaged) > 0 || !a.settled(cached) {
		return false
	}
	h, err := a.listen(now)
	d, _ := demandOf(cached, h, a.firstIndex(), now, a.known)
	return err == nil && d.total <= m.Scale.Demand && d.unserved() <= d.free && m.Scale.Target <= d.owned
}

// settled tells whether the cache has the configuration's settings, and nothing in it is on its way back or
// was taken away.
func (a *Agent) settled(cached *ipam.State) bool {
	want := a.settings()
	want.V4Block, want.V6Block = cached.Settings.V4Block, cached.Settings.V6Block // the cloud tells
	return sameSettings(want, cached.Settings) && !slices.ContainsFunc(cached.Addresses, func(line eni.Address) bool {
		return line.State == eni.Releasing || line.Lost
	})
}

// wait is why there was no describe yet.
type wait uint8

const (
	noWait  wait = iota // there was one, or it is under way or fails
	putOff              // nothing needs it
	untried             // nothing does, but the cloud has not answered such an agent before
)

// waitsFor says why the first describe is put off, or was until a moment ago: while the cloud answers
// nothing is otherwise.
func (a *Agent) waitsFor(now time.Duration) wait {
	waits := a.unneeded || now < a.describeAt && a.calls[object{}] == nil
	switch {
	case !waits || a.view.known || a.backoffs[of(looks)].times > 0:
		return noWait
	case a.tried():
		return putOff
	}
	return untried
}

// tried tells whether the cloud has answered an agent of this release with this configuration on the node. Another
// one may not be able to work with the cloud at all: it is not ready before it has proved that, or a rollout
// would take it to all nodes.
func (a *Agent) tried() bool { return a.mem.As == a.As }

// noteTried takes in that the cloud has answered, of all that an agent needs to know.
func (a *Agent) noteTried() {
	if !a.tried() && !a.view.noSubnets {
		a.mem.As, a.unsaved = a.As, true
	}
}
