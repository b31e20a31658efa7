package agent

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
)

const (
	// longestPeriod is how far describes are apart at most where the account is short.
	longestPeriod = time.Hour

	// mostDoublings is how often the period is doubled then, at most.
	mostDoublings = 4

	// A shortage counts for recallFactor times as long again as it lasted, and one refusal as
	// leastShortage. A node sees the account only when it describes: with less of it a cluster that asks
	// for more than there is would go on asking, with more a minute without describes costs hours.
	recallFactor  = 4
	leastShortage = time.Minute

	// plenty is which part of a subnet's addresses is free where a node that wants nothing does
	// not ask how many there are, and subnetsKept for how long it does not.
	plenty      = 4
	subnetsKept = 30 * time.Minute
)

// period is how far describes are apart that nothing asks for.
type period struct {
	quiet     int           // of them in a row that showed nothing new on a node that did nothing
	from      time.Duration // the first refusal of the account's shortage
	last      time.Duration // the last one, 0 for none ever
	doublings int           // of the period, by refusals of that shortage
	passed    int           // describes in a row since the last refusal
}

// refused takes in that the account let no describe pass: no node knows how many others there are.
// A shortage goes on as long as no describe passes at once, and as long as it counts.
func (p *period) refused(now time.Duration) {
	if p.last == 0 || p.passed > 1 && now >= p.eases() {
		p.from, p.doublings = now, 0
	}
	p.last, p.passed, p.doublings = now, 0, min(p.doublings+1, mostDoublings)
}

// answered takes in a describe.
func (p *period) answered(quiet bool) {
	p.passed++
	if p.quiet++; !quiet {
		p.quiet = 0
	}
}

// eases is until when the last shortage counts.
func (p period) eases() time.Duration { return p.last + recallFactor*max(p.last-p.from, leastShortage) }

// length returns the period of a node that describes each usual time when it is busy, and
// each most when it is quiet.
func (p period) length(now, usual, most time.Duration) time.Duration {
	d := max(usual, min(usual<<min(p.quiet, 16), most))
	if !p.isShort(now) {
		return d
	}
	longer := min(d<<p.doublings, d+p.eases()-now, longestPeriod)
	if p.quiet == 0 { // its pods get addresses that others may have taken away
		longer = min(longer, spareLook)
	}
	return max(d, longer)
}

func (p period) isShort(now time.Duration) bool { return p.last > 0 && now < p.eases() }

// draw returns when the next describe comes. Nodes that began together, or were refused together, spread
// before they come to rest in a period that is about the same each time.
func (p period) draw(now, usual, most time.Duration, r *rand.Rand) time.Duration {
	least, spread := 50, 100
	switch short := p.isShort(now); {
	case !short && p.quiet > 1:
		least, spread = 90, 20
	case short == (p.quiet == 0): // of a busy node, or the first of a quiet one: about as long as it may be
		spread = 60
	}
	return p.length(now, usual, most) * time.Duration(least+r.IntN(spread)) / 100
}

// isQuiet tells whether a describe that nothing asked for has shown nothing new of a node that
// wants nothing, where its subnets have plenty for others, too. In a subnet where it has no ENI it has
// nothing that others could wait for.
func (a *Agent) isQuiet(r result, before view) bool {
	same := slices.EqualFunc(before.enis, a.view.enis, func(x, y cloud.Interface) bool {
		return x.ID == y.ID && x.Index == y.Index && slices.Equal(x.Addresses, y.Addresses)
	})
	return !r.urgent && same && !a.busy() && !slices.ContainsFunc(a.view.subnets, func(n cloud.Subnet) bool { return a.isTight(n) && a.isIn(n.ID) })
}

// isTight tells whether the subnet has fewer addresses than one node like this may take at once:
// all may be gone soon, and what this one has too many is what pods of others wait for.
func (a *Agent) isTight(n cloud.Subnet) bool { return n.Free < max(a.status.Most, 1) }

// busy tells whether the node wants something of the cloud, or may soon.
func (a *Agent) busy() bool {
	calls := len(a.calls)
	if a.calls[object{}] != nil { // a describe is of everything
		calls--
	}
	return a.hungry || calls > 0 || len(a.mem.Creates)+len(a.mem.Begun)+len(a.mem.Leaving)+len(a.mem.Unsure) > 0 ||
		a.demand.unserved() > 0 || a.decision.Target > a.demand.owned || a.isInScarce()
}

// isInScarce tells whether the node is in a subnet that is spared, or may soon be.
func (a *Agent) isInScarce() bool {
	for id, s := range a.scarce {
		if s.isScarce() && a.isIn(id) {
			return true
		}
	}
	return false
}

// isIn tells whether an ENI of the node for pods lies in the subnet.
func (a *Agent) isIn(subnet string) bool {
	return slices.ContainsFunc(a.view.enis, func(e cloud.Interface) bool { return e.Subnet == subnet && e.Index >= a.firstIndex() })
}

// wantsSubnets tells whether a describe asks for the subnets' free addresses, too: what a quiet
// node has seen with plenty of them is not short for a while.
func (a *Agent) wantsSubnets(now time.Duration) bool {
	if a.conf.DescribeQuiet() == 0 || a.urgent || !a.view.known || a.view.noSubnets || a.busy() || now-a.view.subnetsAt >= subnetsKept {
		return true
	}
	return slices.ContainsFunc(a.view.subnets, func(n cloud.Subnet) bool {
		bits := 32 - n.V4Net.Bits()
		return !n.V4Net.IsValid() || n.Free*plenty < 1<<min(bits, 30) || a.isTight(n)
	})
}

// noLongerQuiet brings the next describe of a quiet node forward: it is not quiet any more.
func (a *Agent) noLongerQuiet(now time.Duration) {
	a.endCalm(now)
	if a.period.quiet > 0 {
		a.period.quiet = 0
		a.lookBy(now + a.describeEvery(now))
	}
}
