package agent

import (
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
)

const (
	// longestPeriod is how far describes are apart at most where the account is short.
	longestPeriod = time.Hour

	// mostShort is how many times as long describes are apart then, at most.
	mostShort = 16

	// plenty is which part of a subnet's addresses is free where a node that wants nothing does
	// not ask how many there are, and subnetsKept for how long it does not.
	plenty      = 4
	subnetsKept = 30 * time.Minute
)

// period is how far describes are apart that nothing asks for.
type period struct {
	quiet int     // of them in a row that showed nothing new on a node that did nothing
	short float64 // how many times as far because the account is short of describes, 0 for 1
}

// length returns the period of a node that describes each usual time when it is busy, and
// each most when it is quiet.
func (p period) length(usual, most time.Duration) time.Duration {
	d := max(usual, min(usual<<min(p.quiet, 16), most))
	return max(d, min(time.Duration(float64(d)*max(p.short, 1)), longestPeriod))
}

// refused takes in that the account let no describe pass. Each node doubles its period and
// comes back slowly: no node knows how many others there are.
func (p *period) refused() { p.short = min(2*max(p.short, 1), mostShort) }

// answered takes in a describe.
func (p *period) answered(quiet bool) {
	p.short = max(p.short*7/8, 1)
	if p.quiet++; !quiet {
		p.quiet = 0
	}
}

// isQuiet tells whether a describe that nothing asked for has shown nothing new of a node that
// wants nothing, where there are addresses for others, too.
func (a *Agent) isQuiet(r result, before view) bool {
	same := slices.EqualFunc(before.enis, a.view.enis, func(x, y cloud.Interface) bool {
		return x.ID == y.ID && x.Index == y.Index && slices.Equal(x.Addresses, y.Addresses)
	})
	return !r.urgent && same && !a.busy() && !slices.ContainsFunc(a.view.subnets, func(n cloud.Subnet) bool { return n.Free <= 0 })
}

// busy tells whether the node wants something of the cloud, or may soon.
func (a *Agent) busy() bool {
	calls := len(a.calls)
	if a.calls[object{}] != nil { // a describe is of everything
		calls--
	}
	return a.hungry || calls > 0 || len(a.mem.Creates)+len(a.mem.Begun)+len(a.mem.Leaving)+len(a.mem.Unsure) > 0 ||
		a.demand.unserved() > 0 || a.decision.Target > a.demand.owned || a.anyScarce()
}

// wantsSubnets tells whether a describe asks for the subnets' free addresses, too: what a quiet
// node has seen with plenty of them is not short for a while.
func (a *Agent) wantsSubnets(now time.Duration) bool {
	if a.conf.DescribeQuiet() == 0 || a.urgent || !a.view.known || a.busy() || now-a.view.subnetsAt >= subnetsKept {
		return true
	}
	return slices.ContainsFunc(a.view.subnets, func(n cloud.Subnet) bool {
		bits := 32 - n.V4Net.Bits()
		return !n.V4Net.IsValid() || n.Free*plenty < 1<<min(bits, 30)
	})
}

// noLongerQuiet brings the next describe of a quiet node forward: it is not quiet any more.
func (a *Agent) noLongerQuiet(now time.Duration) {
	if a.period.quiet > 0 {
		a.period.quiet = 0
		a.describeAt = min(a.describeAt, now+a.describeEvery())
	}
}
