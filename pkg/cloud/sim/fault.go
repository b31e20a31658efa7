package sim

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
)

// Fault is what goes wrong with a call. The zero Fault is nothing.
//
//	Fault{Err: cloud.ErrThrottled}                refused, nothing happened
//	Fault{Lost: AfterEffect}                      done, but the caller gets ErrUnknown
//	Fault{Later: time.Second}                     ErrUnknown; done a second later
//	Fault{Lost: AfterCreate}                      the ENI is made and not attached, ErrUnknown
//	Fault{Partial: true}                          half of the addresses, no error
//	Fault{Partial: true, Err: cloud.ErrUnknown}   half of the addresses and an error
//	Fault{Delay: time.Minute}                     done, but slowly
type Fault struct {
	Err        error         // a kind
	RetryAfter time.Duration // goes with Err
	Lost       Lost          // the answer, and with it the rest of the call
	Later      time.Duration // ErrUnknown, and the effect comes so long after it
	Partial    bool          // AssignAddresses and UnassignAddresses do half of it; the latter always fails, with ErrUnknown
	Delay      time.Duration // longer; CreateInterface spends it between making and attaching
}

// Lost is where in a call that changes something the connection breaks. In one
// that changes nothing it is the same everywhere: ErrUnavailable.
type Lost uint8

// The places. AfterCreate and AfterAttach are those of a CreateInterface between
// its three effects; for others they are as AfterEffect.
const (
	Nowhere Lost = iota
	AfterCreate
	AfterAttach
	AfterEffect
)

// Chance is a Fault that calls have by chance.
type Chance struct {
	Method  string // "" is every one
	Percent int
	Fault   Fault
}

type faults struct {
	refuse  error
	next    map[string][]Fault // by method, "" for any
	chances []Chance
}

// FailNext makes the next calls of a method fail, the first with the first fault
// and so on; "" is the calls of any method. More of them queue up.
func (a *Account) FailNext(method string, faults ...Fault) {
	a.lock()
	defer a.mu.Unlock()
	a.faults.next[method] = append(a.faults.next[method], faults...)
}

// SetFaults replaces what goes wrong by chance: for each call the first of the
// chances that applies and that the dice are for. None: nothing does.
func (a *Account) SetFaults(chances ...Chance) {
	a.lock()
	defer a.mu.Unlock()
	a.faults.chances = slices.Clone(chances)
}

// Refuse makes all calls fail with a kind, until it is called with nil:
// cloud.ErrForbidden is wrong credentials, cloud.ErrUnavailable a cloud that
// can't be reached.
func (a *Account) Refuse(kind error) {
	a.lock()
	defer a.mu.Unlock()
	a.faults.refuse = kind
}

// pick returns what goes wrong with this call.
func (f *faults) pick(method string, rng *rand.Rand) Fault {
	for _, queue := range []string{method, ""} {
		if next := f.next[queue]; len(next) > 0 {
			f.next[queue] = next[1:]
			return next[0]
		}
	}
	for _, c := range f.chances {
		if (c.Method == "" || c.Method == method) && rng.IntN(100) < c.Percent {
			return c.Fault
		}
	}
	return Fault{}
}

// TakeAway takes a secondary address from its ENI behind the node's back, with the rest
// of its block if it is of one.
func (a *Account) TakeAway(addr netip.Addr) error {
	a.lock()
	defer a.mu.Unlock()
	n := a.owner[addr]
	if n == nil || !slices.Contains(n.Addresses, addr) {
		return fmt.Errorf("take away %s: no ENI has it as a secondary address", addr)
	}
	if d, in := n.block(addr); in {
		return a.drop(n, d.addrs())
	}
	return a.drop(n, []netip.Addr{addr})
}

// Detach takes an ENI off its node behind the node's back. It stays in the
// account, with its addresses.
func (a *Account) Detach(id string) error {
	a.lock()
	defer a.mu.Unlock()
	n := a.enis[id]
	if n == nil || n.Index <= 0 {
		return fmt.Errorf("detach ENI %s: there is none of that id besides those of the nodes that is attached", id)
	}
	if err := a.unplug(n); err != nil {
		return err
	}
	n.Index = -1
	a.changed(n)
	return nil
}

// half is how many of n addresses a Partial fault leaves.
func (f Fault) half(n int) int {
	if !f.Partial {
		return n
	}
	if f.Err == nil {
		return (n + 1) / 2
	}
	return n / 2
}

// partial is the error of a half-done call, nil if it shall have none.
func (f Fault) partial(object string) error {
	if !f.Partial || f.Err == nil {
		return nil
	}
	return &cloud.Error{Kind: f.Err, Object: object, Detail: "a simulated fault after a part of the addresses", RetryAfter: f.RetryAfter}
}
