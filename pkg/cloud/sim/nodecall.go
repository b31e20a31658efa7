package sim

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// The methods of cloud.Cloud, as FailNext and Calls name them.
const (
	limits            = "Limits"
	interfaces        = "Interfaces"
	subnetList        = "Subnets"
	createInterface   = "CreateInterface"
	assignAddresses   = "AssignAddresses"
	unassignAddresses = "UnassignAddresses"
	deleteInterface   = "DeleteInterface"
)

// Place is where in a Node's call that changes something the connection breaks. In one
// that changes nothing it is the same everywhere: ErrUnavailable.
type Place uint8

// The places. AfterCreate and AfterAttach are those of a CreateInterface between
// its three effects; for others they are as AfterEffect.
const (
	Nowhere Place = iota
	AfterCreate
	AfterAttach
	AfterEffect
)

// mutates tells whether the method changes anything.
func mutates(method string) bool {
	return method != limits && method != interfaces && method != subnetList
}

// request is a call: what goes over the wire, and what is kept of one whose
// effect comes later.
type request struct {
	Method    string       `json:"method"`
	Node      string       `json:"node"`
	ENI       string       `json:"eni,omitempty"`
	Family    eni.Family   `json:"family,omitempty"`
	Count     int          `json:"count,omitempty"`
	Addresses []netip.Addr `json:"addresses,omitempty"`
	Create    cloud.Create `json:"create,omitzero"`
}

// reply is what a call returns besides its error.
type reply struct {
	Limits     eni.Limits        `json:"limits,omitzero"`
	Interfaces []cloud.Interface `json:"interfaces,omitempty"`
	Subnets    []cloud.Subnet    `json:"subnets,omitempty"`
	Interface  cloud.Interface   `json:"interface,omitzero"`
	Addresses  []netip.Addr      `json:"addresses,omitempty"`
}

// call carries out one call of a node.
func (a *Account) call(ctx context.Context, r request) (reply, error) {
	out, err := a.serve(ctx, r)
	if e, ok := err.(*cloud.Error); ok {
		e.Op = r.Method
	}
	return out, err
}

func (a *Account) serve(ctx context.Context, r request) (reply, error) {
	if err := ctx.Err(); err != nil {
		return reply{}, failed(cloud.ErrUnavailable, "", "%v before anything happened", err)
	}
	fault, pause, refused := a.decide(r)
	if refused == nil {
		if err := a.ask(ctx, r); err != nil {
			return reply{}, err
		}
	}
	before := pause
	if mutates(r.Method) {
		before = pause / 2
	}
	if r.Method != createInterface || refused != nil {
		before += fault.Delay
	}
	if err := a.pass(ctx, before); err != nil {
		return reply{}, failed(cloud.ErrUnavailable, "", "%v before anything happened", err)
	}
	switch {
	case refused != nil:
		return reply{}, refused
	case !mutates(r.Method):
		a.lock()
		defer a.mu.Unlock()
		return a.perform(r, fault)
	case fault.Later > 0:
		return a.postpone(ctx, r, pause-before, fault.Later)
	case r.Method == createInterface:
		return a.create(ctx, r, fault, pause-before+fault.Delay)
	}
	return a.change(ctx, r, fault, pause-before)
}

// pass lets d pass, a part of a call.
func (a *Account) pass(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	return a.o.Clock.Wait(ctx, d)
}

// change carries out a call that has its effect at one moment.
func (a *Account) change(ctx context.Context, r request, fault Fault, after time.Duration) (reply, error) {
	a.lock()
	out, err := a.perform(r, fault)
	a.mu.Unlock()
	if gone := a.pass(ctx, after); gone != nil {
		return reply{}, failed(cloud.ErrUnknown, r.ENI, "%v before the answer came", gone)
	}
	if fault.Lost != Nowhere {
		return reply{}, lost(r)
	}
	return out, err
}

// postpone answers now and leaves the effect for later.
func (a *Account) postpone(ctx context.Context, r request, after, later time.Duration) (reply, error) {
	broken := lost(r)
	if err := a.pass(ctx, after); err != nil {
		broken = failed(cloud.ErrUnknown, r.ENI, "%v before the answer came", err)
	}
	a.lock()
	defer a.mu.Unlock()
	r.Addresses = slices.Clone(r.Addresses)
	a.later(later, happening{What: called, Request: &r}, func() { a.performLate(r) })
	return reply{}, broken
}

// performLate has the effect of a call whose caller does not hear of its error.
func (a *Account) performLate(r request) { _, _ = a.perform(r, Fault{}) }

// decide counts the call and decides what becomes of it: what goes wrong, how long
// it takes, and whether it is refused.
func (a *Account) decide(r request) (f Fault, pause time.Duration, refused error) {
	a.lock()
	defer a.mu.Unlock()
	a.calls[r.Method]++
	pause = a.latency(r.Method)
	if a.faults.refuse != nil {
		return Fault{}, pause, failed(a.faults.refuse, "", "all calls fail")
	}
	if err := a.toll(r); err != nil {
		return Fault{}, pause, err
	}
	f = a.faults.pick(r.Method, a.rng)
	if f.Err != nil && !f.Partial {
		return f, pause, &cloud.Error{Kind: f.Err, Object: r.ENI, Detail: "a simulated fault", RetryAfter: f.RetryAfter}
	}
	if f.Lost != Nowhere && !mutates(r.Method) {
		return f, pause, failed(cloud.ErrUnavailable, "", "the answer was lost")
	}
	return f, pause, nil
}

// perform has the whole effect of a call at one moment.
func (a *Account) perform(r request, fault Fault) (reply, error) {
	h, err := a.hand(r.Node)
	if err != nil {
		return reply{}, err
	}
	switch r.Method {
	case limits:
		return reply{Limits: h.m.Limits}, nil
	case interfaces:
		h.Tx = a.lagging(Fault{})
		return reply{Interfaces: h.interfaces()}, nil
	case subnetList:
		h.Tx = a.lagging(Fault{})
		return reply{Subnets: h.subnets()}, nil
	case createInterface:
		return h.createAtOnce(r.Create)
	case assignAddresses:
		return h.assign(r, fault)
	case unassignAddresses:
		return reply{}, h.unassign(r, fault)
	case deleteInterface:
		return reply{}, h.remove(r.ENI)
	}
	return reply{}, failed(cloud.ErrForbidden, "", "no such method")
}

// hand is a node's hand in the account: what it does there at one moment.
type hand struct {
	*Tx
	m Machine
}

func (a *Account) hand(node string) (hand, error) {
	m, ok := a.nodes.machines[node]
	if !ok {
		return hand{}, failed(cloud.ErrNotFound, node, "no such node")
	}
	return hand{&Tx{a: a, at: a.now}, m}, nil
}

// failed is a call that failed; Account.call adds which.
func failed(kind error, object, format string, args ...any) error {
	return &cloud.Error{Kind: kind, Object: object, Detail: fmt.Sprintf(format, args...)}
}

func lost(r request) error { return failed(cloud.ErrUnknown, r.ENI, "the answer was lost") }
