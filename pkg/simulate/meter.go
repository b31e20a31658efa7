package simulate

import (
	"slices"
	"time"
)

// mostBins is how finely a Result is drawn over time.
const mostBins = 720

// meter measures all nodes together, from the beginning of the load on.
type meter struct {
	clock *clock
	step  time.Duration // of a bin

	demand, target       int // of now
	owned, used, waiting int
	enis                 int
	last                 time.Duration // up to which the sums go
	idleSeconds          float64       // idle addresses, summed over time
	eniSeconds           float64
	mostIdle             int

	pods, failed, nevers int
	waits                []time.Duration
	calls                Calls
	bin                  Bin // the one that is being filled
	bins                 []Bin
}

func newMeter(c *clock, duration time.Duration) *meter {
	step := (duration/mostBins + time.Second - 1).Truncate(time.Second)
	return &meter{clock: c, step: max(step, time.Second)}
}

// forgetStart forgets what was before the load.
func (m *meter) forgetStart() {
	m.sumUp()
	m.idleSeconds, m.eniSeconds, m.mostIdle = 0, 0, 0
	m.bin = Bin{Waiting: m.waiting}
}

// changeNode lets fn change what is measured of a node.
func (m *meter) changeNode(n *node, fn func()) {
	m.sumUp()
	m.addNode(n, -1)
	fn()
	m.addNode(n, 1)
	m.bin.Waiting = max(m.bin.Waiting, m.waiting)
}

// addNode adds a node's numbers to the sums, or takes them off.
func (m *meter) addNode(n *node, sign int) {
	if n.state != nil {
		m.owned += sign * len(n.state.Addresses)
		m.enis += sign * len(n.state.ENIs)
	}
	m.used += sign * n.used
	m.waiting += sign * n.waiting
}

// sumUp sums up what was until now.
func (m *meter) sumUp() {
	if dt := (m.clock.now - m.last).Seconds(); dt > 0 {
		m.idleSeconds += dt * float64(m.owned-m.used)
		m.eniSeconds += dt * float64(m.enis)
		m.mostIdle = max(m.mostIdle, m.owned-m.used)
		m.last = m.clock.now
	}
}

// hasBegun tells whether the load has begun.
func (m *meter) hasBegun() bool { return m.clock.now >= 0 }

// noteWait notes how long a pod waited that has its address now.
func (m *meter) noteWait(d time.Duration) {
	if !m.hasBegun() {
		return
	}
	m.waits = append(m.waits, d)
	m.bin.Longest = max(m.bin.Longest, Seconds(d))
}

// failedADD notes an ADD that ended without an address.
func (m *meter) failedADD() {
	if m.hasBegun() {
		m.failed++
	}
}

// noteNever notes a pod that has gone without an address.
func (m *meter) noteNever(d time.Duration) {
	m.nevers++
	m.noteWait(d)
}

// noteCall notes a call to the cloud that begins.
func (m *meter) noteCall(count *int, describes bool) {
	switch {
	case !m.hasBegun():
		return
	case describes:
		m.bin.Describes++
	default:
		m.bin.Calls++
	}
	*count++
}

// noteOutcome notes how a call ended.
func (m *meter) noteOutcome(word string) {
	switch {
	case !m.hasBegun() || word == "ok":
	case word == "throttled":
		m.calls.Throttled++
	default:
		m.calls.Failed++
	}
}

// closeBin ends a bin.
func (m *meter) closeBin(free int) {
	m.sumUp()
	m.bin.Demand, m.bin.Target, m.bin.Owned, m.bin.Free, m.bin.Idle = m.demand, m.target, m.owned, free, m.owned-m.used
	m.bins = append(m.bins, m.bin)
	m.bin = Bin{Start: Seconds(m.clock.now), Waiting: m.waiting}
}

// result is what was measured until the end of the load. Pods that wait then have
// waited until then.
func (m *meter) result(name string, duration time.Duration) Result {
	m.sumUp()
	slices.Sort(m.waits)
	c := m.calls
	c.Total = c.Describe + c.Changes()
	hours := duration.Hours()
	return Result{
		Name: name, Pods: m.pods, Calls: c, Series: m.bins,
		Waits: Waits{
			P50: Seconds(quantile(m.waits, 50)), P99: Seconds(quantile(m.waits, 99)), Max: Seconds(quantile(m.waits, 100)),
			Waited: len(m.waits) - countZeros(m.waits), Failed: m.failed, Never: m.nevers,
		},
		Idle: Idle{Mean: m.idleSeconds / 3600 / hours, Max: m.mostIdle, AddressHours: m.idleSeconds / 3600, ENIs: m.eniSeconds / 3600 / hours},
	}
}

// quantile returns the least value that percent of the sorted ones do not exceed.
func quantile(sorted []time.Duration, percent int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(0, (len(sorted)*percent+99)/100-1)]
}

func countZeros(sorted []time.Duration) int {
	n, _ := slices.BinarySearch(sorted, 1)
	return n
}
