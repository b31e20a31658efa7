package health

import (
	"fmt"
	"time"
)

// Config is how patient the judge is.
type Config struct {
	Grace time.Duration // how long pods lack addresses before the node is faulty
	Quiet time.Duration // how long all must be well before it is not any more
	Taint bool          // a faulty node is to get no new pods
}

// Default returns what suits a cloud that makes an ENI within half a minute, and a
// kubelet that tries a pod again every ten to fifteen seconds.
func Default() Config { return Config{Grace: 30 * time.Second, Quiet: time.Minute, Taint: true} }

// slow is how many times as long pods may wait while nothing fails: a burst of pods
// may need several ENIs, one call after the other.
const slow = 4

// mostSilence is how long a message stands at most.
const mostSilence = time.Hour

// State is what the judge remembers of a node. Its times are since boot, 0 for none,
// so it ends with the boot. It encodes to JSON and back without loss.
type State struct {
	Known   bool          `json:"known"` // something was judged: before that there is nothing to report
	Faulty  bool          `json:"faulty"`
	Since   time.Duration `json:"since,omitempty"`   // of the fault
	Reason  string        `json:"reason,omitempty"`  // of the fault
	Message string        `json:"message,omitempty"` // as it was told last
	Said    time.Duration `json:"said,omitempty"`    // when

	Lacking time.Duration `json:"lacking,omitempty"` // since when pods lack addresses
	Well    time.Duration `json:"well,omitempty"`    // since when all is well
	Cause   string        `json:"cause,omitempty"`   // what is in the way now
	What    string        `json:"what,omitempty"`    // and the words of who said so
	Remedy  string        `json:"remedy,omitempty"`  // and what helps on this node, "" for that of the reason
	Blamed  time.Duration `json:"blamed,omitempty"`  // since when it alone was seen there

	Capacity int           `json:"capacity"`        // as it was told last, -1: not known
	Told     time.Duration `json:"told,omitempty"`  // when it changed
	Next     time.Duration `json:"next,omitempty"`  // when it may change to what it should be
	Capped   bool          `json:"capped"`          // it is what there is and not what there could be
	Stuck    time.Duration `json:"stuck,omitempty"` // since when the node can't have more
	Loose    time.Duration `json:"loose,omitempty"` // since when it can
}

// New returns the state of a node about which nothing is known.
func New() State { return State{Capacity: -1} }

// Judge takes an observation at a time since boot and returns the next state with
// what the cluster is to know. The same call again changes nothing.
//
// A node is faulty when pods have lacked addresses for Grace and something is in the
// way of more, or for four times that without a failure. It is not any more when all
// has been well for Quiet. While it is faulty another reason takes the place of the
// first when it alone has been seen for Grace.
func Judge(c Config, s State, now time.Duration, o Observation) (State, Report) {
	s.Known = s.Known || o.Usable && o.Most >= 0
	s.Lacking = keepSince(s.Lacking, o.short(), now)
	s.Well = keepSince(s.Well, o.well(), now)
	s.blame(o, now)
	switch {
	case !s.Faulty && s.Lacking > 0 && now-s.Lacking >= s.patience(c):
		s.Known, s.Faulty, s.Since, s.Reason = true, true, now, s.Cause
		s.say(o, now)
	case s.Faulty && s.Well > 0 && now-s.Well >= c.Quiet:
		s.heal()
	case s.Faulty && s.Cause != s.Reason && now-s.Blamed >= c.Grace:
		s.Reason = s.Cause
		s.say(o, now)
	case s.Faulty && now-s.Said >= s.silence(c):
		s.say(o, now)
	}
	s.size(c, now, o)
	return s, s.report(c)
}

// ReasonSince returns since when the fault has the reason that is told, on the clock of Judge. It is
// later than Since where that reason took the place of another one.
func (s State) ReasonSince() time.Duration {
	if s.Cause != s.Reason {
		return s.Since
	}
	return max(s.Since, s.Blamed)
}

// heal forgets the fault.
func (s *State) heal() {
	s.Faulty, s.Since, s.Reason, s.Message, s.Said = false, 0, "", "", 0
	s.Cause, s.What, s.Remedy, s.Blamed = "", "", "", 0
}

// keepSince returns since when something is so, which was so since was; 0 if it no longer is.
func keepSince(was time.Duration, still bool, now time.Duration) time.Duration {
	switch {
	case !still:
		return 0
	case was == 0:
		return max(now, 1)
	}
	return min(was, max(now, 1))
}

// blame notes the cause. A moment without one does not count while there is an earlier cause: what
// failed is only being tried again.
func (s *State) blame(o Observation, now time.Duration) {
	if s.Lacking == 0 && !s.Faulty {
		s.Cause, s.What, s.Remedy, s.Blamed = "", "", "", 0
		return
	}
	cause := o.cause()
	switch {
	case cause.Reason == s.Cause:
		s.What, s.Remedy = cause.What, cause.Remedy
	case cause.Reason != NoFreeAddress || s.Cause == "":
		s.Cause, s.What, s.Remedy, s.Blamed = cause.Reason, cause.What, cause.Remedy, max(now, 1)
	}
}

// patience is how long pods may lack addresses.
func (s *State) patience(c Config) time.Duration {
	if s.Cause == NoFreeAddress {
		return slow * c.Grace
	}
	return c.Grace
}

// silence is how long a message stands while its reason does: as long as the fault had lasted when
// it was made. The first numbers of a fault matter most, and each new message is a write for the API server.
func (s *State) silence(c Config) time.Duration {
	return max(c.Quiet, min(s.Said-s.Since, mostSilence))
}

func (s *State) report(c Config) Report {
	r := Report{Faulty: s.Faulty, Reason: s.Reason, Message: s.Message, Taint: s.Faulty && c.Taint, Capacity: s.Capacity}
	if !s.Faulty {
		// More is not known: no address may be free now, or pods may have waited for a moment. There are
		// no numbers of the moment in it, because each change of it is a write for the API server.
		r.Reason, r.Message = AddressesAvailable, fmt.Sprintf("no pod waits longer than %s for an address", slow*c.Grace)
	}
	return r
}

// Again returns when the report can change first, but for the numbers in its message,
// if nothing new is observed until then. It is a time since boot, 0 if it can't.
func (s State) Again(c Config) time.Duration {
	var first time.Duration
	at := func(running bool, since, wait time.Duration) {
		if running && since > 0 && (first == 0 || since+wait < first) {
			first = since + wait
		}
	}
	at(!s.Faulty, s.Lacking, s.patience(c))
	at(s.Faulty, s.Well, c.Quiet)
	at(s.Faulty && s.Cause != s.Reason, s.Blamed, c.Grace)
	at(!s.Capped, s.Stuck, c.Grace)
	at(s.Capped, s.Loose, c.Quiet)
	at(true, s.Next, 0)
	return first
}
