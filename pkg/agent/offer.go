package agent

import (
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/pool"
)

const (
	// longestHeed is for how long the most that pods needed counts as need at most, where it
	// would be delay: pods of others are not to wait for longer because it is long.
	longestHeed = 3 * time.Minute

	// firstOffer is how many addresses an offer begins with: a node whose ENIs are full needs one for the pod and
	// one for the new ENI itself.
	firstOffer = 2

	// untaken is how long addresses must lie in the subnet until nobody waits for them: longer
	// than a node whose pods wait takes to see and to get them.
	untaken = 3 * time.Minute
)

// offer is what a node that lacks nothing has released in a subnet that shows no addresses. It
// can't know whether anybody waits there, so it asks: with two addresses, and with twice as many
// when those are gone. Where nobody waits two addresses lie in the subnet, and the node has the
// others when its own pods come.
type offer struct {
	last int           // how many it released last, 0: none, or they lay there, or it took some back itself
	at   time.Duration // before when a describe was asked for that may not show them yet
	open bool          // a describe has shown since that they are gone, or that there are none at all
}

// noteTaken notes a describe that showed the subnet without addresses, and not for the first time: what
// the node released is with others.
func (f *offer) noteTaken(at time.Duration) { f.open = f.open || at >= f.at }

// noteUntaken notes a describe that showed free addresses, as each has since then.
func (f *offer) noteUntaken(since time.Duration) {
	if f.open = false; since >= untaken {
		f.last = 0
	}
}

// tookBack notes that the node itself got addresses of the subnet: that those it released are gone
// tells nothing of others any more.
func (f *offer) tookBack() { f.last, f.open = 0, false }

// keepAfter returns how many addresses a node keeps whose pods need so many: what it would keep,
// or fewer if in each of the full subnets all that it offered is gone.
func keepAfter(full []*scarcity, keep, owned, need int) int {
	last := full[0].offer.last
	for _, s := range full {
		if !s.offer.open {
			return keep
		}
		last = min(last, s.offer.last)
	}
	have := min(keep, owned)
	if step := min(max(firstOffer, 2*last), have-need); step > 0 {
		return have - step
	}
	return keep
}

// comes tells whether addresses are on their way to the node: how many it has is not known.
func comes(s pool.Snapshot) bool {
	return len(s.Pending) > 0 || slices.ContainsFunc(s.ENIs, func(e pool.ENI) bool { return len(e.Coming) > 0 })
}

// noteOffer notes that the node releases n addresses for others. What it really released, and when, is
// known when the call has ended.
func (a *Agent) noteOffer(n int, now time.Duration) {
	for _, s := range a.scarce {
		s.offer = offer{last: n, at: now + a.conf.Settle}
	}
}

// offerArrived notes that a call has given addresses back to the subnet.
func (a *Agent) offerArrived(subnet string, now time.Duration) {
	if s := a.scarce[subnet]; s != nil {
		s.offer.at, s.offer.open = now+a.conf.Settle, false
	}
}

// offerTakenBack notes that a call has got addresses of the subnet.
func (a *Agent) offerTakenBack(subnet string) {
	if s := a.scarce[subnet]; s != nil {
		s.offer.tookBack()
		s.keeps = all
	}
}
