package sim

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Fault is what goes wrong with a call. With the zero Fault, nothing does.
//
//	Fault{Err: &Error{Reason: Throttled}}                refused, nothing happens
//	Fault{Err: &Error{Reason: Unavailable}, After: true} done, and then the error
//	Fault{Answer: Lost}                                  done, the connection breaks
//	Fault{Answer: Cut}                                   done, it breaks inside the answer
//	Fault{Answer: Short}                                 done, half an answer, well sent
//	Fault{Answer: Lost, Later: time.Second}              it breaks, and is done a second later
//	Fault{Partial: true}                                 half of the addresses, no error
//	Fault{Partial: true, Answer: Lost}                   half of the addresses, no answer
//	Fault{Partial: true, Err: e, After: true}            half of the addresses and an error
//	Fault{Delay: time.Minute}                            done and answered, but late
//	Fault{Slow: time.Minute}                             what the call begins takes so much longer
type Fault struct {
	Err     error         // answered in place of what the call returns: an *Error, or a kind of pkg/cloud
	After   bool          // Err comes after the effect, else instead of it
	Answer  Break         // what happens to the answer
	Later   time.Duration // the effect comes so long after the answer
	Partial bool          // counts and lists of addresses are halved
	Delay   time.Duration // before anything else
	Slow    time.Duration // added to the state of an ENI that the call begins: pending, attaching, detaching
	Rewrite func(body []byte) []byte
}

// Break is what happens to the answer of a call.
type Break uint8

// The ways an answer breaks.
const (
	Whole Break = iota
	Lost        // the connection is closed without an answer
	Cut         // the connection is closed in the middle of the body
	Short       // the body ends in the middle, as if it were all
)

// Chance is a Fault that a share of the calls has.
type Chance struct {
	Action  string // "" is every one
	Percent int
	Fault   Fault
}

// faults is what is to go wrong.
type faults struct {
	next    map[string][]Fault // by action, "" for any
	refuse  error
	chances []Chance
}

// FailNext makes the next calls of an action fail, the first with the first fault and so
// on; "" is the calls of any. More of them queue up.
func (a *Account) FailNext(action string, faults ...Fault) {
	a.lock()
	defer a.mu.Unlock()
	a.faults.next[action] = append(a.faults.next[action], faults...)
}

// SetFaults replaces what goes wrong by chance. For each call the chances are tried in order, until
// one of them hits.
func (a *Account) SetFaults(chances ...Chance) {
	a.lock()
	defer a.mu.Unlock()
	a.faults.chances = slices.Clone(chances)
}

// Refuse makes all calls fail, until it is called with nil: with an *Error or
// a kind of pkg/cloud. cloud.ErrForbidden is wrong credentials, cloud.ErrUnavailable a
// cloud that can't be reached.
func (a *Account) Refuse(err error) {
	a.lock()
	defer a.mu.Unlock()
	a.faults.refuse = err
}

// pickFault returns what goes wrong with this call.
func (f *faults) pickFault(action string, rng *rand.Rand) Fault {
	for _, queue := range []string{action, ""} {
		if next := f.next[queue]; len(next) > 0 {
			f.next[queue] = next[1:]
			return next[0]
		}
	}
	for _, c := range f.chances {
		if (c.Action == "" || c.Action == action) && rng.IntN(100) < c.Percent {
			return c.Fault
		}
	}
	return Fault{}
}

// half returns how many of n addresses the fault leaves: half of them if it is Partial, else all.
func (f Fault) half(n int) int {
	if f.Partial {
		return (n + 1) / 2
	}
	return n
}
