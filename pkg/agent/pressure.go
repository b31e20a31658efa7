package agent

import "time"

// pressure is how long the account has refused requests because all who share it make too
// many. A node does not know the others; that is all it sees of them.
type pressure struct {
	from, last time.Duration // of the refusals, and of what pods lacked meanwhile
	told       time.Duration // of the last refusal
	draw       float64       // from 0 to 1: nodes that were refused together don't come back together
}

const (
	// leastPressure and mostPressure are how long a refusal counts, at least and at most.
	leastPressure = 5 * time.Second
	mostPressure  = 3 * time.Minute

	// spareFactor is how many times that, up to twice as many, what can wait waits after
	// it. A node that was served early then stays out of the way of those that are served
	// late, though it hears nothing of them.
	spareFactor = 4

	// mostRetry is how long refused calls are left alone at most: where an account is short
	// for hours, pods do not wait for hours.
	mostRetry = 5 * time.Minute
)

// account is what is known of those who share it, and of what waits for them.
type account struct {
	pressure pressure             // of looks and of requests for addresses
	giving   pressure             // of releases
	period   period               // of describes that nothing asks for
	scarce   map[string]*scarcity // subnets that had no more, by ID
	eager    eagerness            // to see the subnets
}

// pressed tells whether the account is short of requests that pods wait for. Of releases alone
// it may be, too, and nothing but releases waits then.
func (c *account) pressed(now time.Duration) bool { return c.pressure.high(now) }

// refused takes in a refusal.
func (p pressure) refused(now time.Duration, draw float64) pressure {
	if p.last == 0 || now-p.last > (2*spareFactor+1)*p.lasts() {
		p.from, p.draw = now, draw
	}
	p.last, p.told = now, now
	return p
}

// lacking takes in that pods have no addresses yet. Much of what is refused only those see
// who make the requests of a call, and the agent sees that it takes long. That counts for a
// while: pods may lack addresses for ever for another reason, such as a full subnet, and
// describes tell when that is over.
func (p pressure) lacking(now time.Duration) pressure {
	if p.high(now) && now-p.told <= mostPressure {
		p.last = now
	}
	return p
}

// lasts is how long it has been so.
func (p pressure) lasts() time.Duration {
	return min(max(p.last-p.from, leastPressure), mostPressure)
}

// eases is when there may be room for what can wait, 0 for always.
func (p pressure) eases() time.Duration {
	if p.last == 0 {
		return 0
	}
	return p.last + time.Duration(float64(spareFactor*p.lasts())*(1+p.draw))
}

// high tells whether what can wait should: others may wait for what pods need at once.
func (p pressure) high(now time.Duration) bool { return now < p.eases() }

// retry is how long to leave alone what was refused so many times in a row before.
//
// Doubling without end would do with fewer requests, but who is refused last then waits as
// long again as all others together took. A part of the time since the first refusal is the
// same part of that for any number of nodes, and so all of them together don't ask more
// often the more they are. What looks starts slowly: calls under way that have made an ENI
// have to look too, and go first. Where requests pass again, one that is refused is not left
// alone for long because others were an hour ago.
func (p pressure) retry(c class, times int) delay {
	first, doubles, part := time.Second, 0, time.Duration(16)
	if c == looks {
		first, doubles, part = 3*time.Second, 3, 8
	}
	most := min(first<<min(times, 16), mostRetry)
	d := max(first<<min(times, doubles), min((p.last-p.from)/part, most))
	return delay{d, d}
}

// throttled takes in that the account has refused a call for its rate, as so many times in a row before, and returns how long
// calls of its class are left alone. Releases have a bucket of their own in many accounts: that
// none pass is no reason to do without what pods need, or for long without looks. The other way
// round they stay out of the way of what pods need.
func (c *account) throttled(cl class, times int, now time.Duration, draw float64) delay {
	p := &c.pressure
	if cl == gives {
		p = &c.giving
	}
	*p = p.refused(now, draw)
	wait := p.retry(cl, times)
	if cl == gives && c.pressed(now) {
		if others := c.pressure.retry(cl, times); others.most > wait.most {
			return others
		}
	}
	return wait
}
