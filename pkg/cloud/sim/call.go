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

// lateCall is a call that was answered with ErrUnknown before its effect.
type lateCall struct {
	At      time.Time
	Request request
}

// do carries out one call of a node.
func (a *Account) do(ctx context.Context, r request) (reply, error) {
	out, err := a.serve(ctx, r)
	if e, ok := err.(*cloud.Error); ok {
		e.Op = r.Method
	}
	return out, err
}

func (a *Account) serve(ctx context.Context, r request) (reply, error) {
	if err := ctx.Err(); err != nil {
		return reply{}, fail(cloud.ErrUnavailable, "", "%v before anything happened", err)
	}
	fault, pause, refused := a.admit(r)
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
	if err := a.wait(ctx, before); err != nil {
		return reply{}, fail(cloud.ErrUnavailable, "", "%v before anything happened", err)
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

// change carries out a call that has its effect at one moment.
func (a *Account) change(ctx context.Context, r request, fault Fault, after time.Duration) (reply, error) {
	a.lock()
	out, err := a.perform(r, fault)
	a.mu.Unlock()
	if gone := a.wait(ctx, after); gone != nil {
		return reply{}, fail(cloud.ErrUnknown, r.ENI, "%v before the answer came", gone)
	}
	if fault.Lost != Nowhere {
		return reply{}, lost(r)
	}
	return out, err
}

// postpone answers now and leaves the effect for later.
func (a *Account) postpone(ctx context.Context, r request, after, later time.Duration) (reply, error) {
	broken := lost(r)
	if err := a.wait(ctx, after); err != nil {
		broken = fail(cloud.ErrUnknown, r.ENI, "%v before the answer came", err)
	}
	a.lock()
	defer a.mu.Unlock()
	r.Addresses = slices.Clone(r.Addresses)
	a.late = append(a.late, lateCall{At: a.now.Add(later), Request: r})
	slices.SortStableFunc(a.late, func(a, b lateCall) int { return a.At.Compare(b.At) })
	return reply{}, broken
}

// admit counts the call and decides what becomes of it: what goes wrong, how long
// it takes, and whether it is refused.
func (a *Account) admit(r request) (f Fault, pause time.Duration, refused error) {
	a.lock()
	defer a.mu.Unlock()
	a.calls[r.Method]++
	pause = a.latency(r.Method)
	if a.faults.refuse != nil {
		return Fault{}, pause, fail(a.faults.refuse, "", "all calls fail")
	}
	if err := a.toll(r); err != nil {
		return Fault{}, pause, err
	}
	f = a.faults.pick(r.Method, a.rng)
	if f.Err != nil && !f.Partial {
		return f, pause, &cloud.Error{Kind: f.Err, Object: r.ENI, Detail: "a simulated fault", RetryAfter: f.RetryAfter}
	}
	if f.Lost != Nowhere && !mutates(r.Method) {
		return f, pause, fail(cloud.ErrUnavailable, "", "the answer was lost")
	}
	return f, pause, nil
}

func (a *Account) latency(method string) time.Duration {
	l, ok := a.o.Latency[method]
	if !ok {
		l = a.o.Latency[""]
	}
	return l.Base + a.upTo(l.Jitter)
}

// upTo returns a random duration from 0 to d.
func (a *Account) upTo(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(a.rng.Int64N(int64(d) + 1))
}

// perform has the whole effect of a call at one moment.
func (a *Account) perform(r request, fault Fault) (reply, error) {
	m := a.machines[r.Node]
	if m == nil {
		return reply{}, fail(cloud.ErrNotFound, r.Node, "no such node")
	}
	switch r.Method {
	case limits:
		return reply{Limits: m.Limits}, nil
	case interfaces:
		return reply{Interfaces: a.interfaces(m)}, nil
	case subnetList:
		return reply{Subnets: a.subnetsOf(m)}, nil
	case createInterface:
		return a.createAtOnce(r)
	case assignAddresses:
		return a.assign(m, r, fault)
	case unassignAddresses:
		return reply{}, a.unassign(m, r, fault)
	case deleteInterface:
		return reply{}, a.remove(m, r.ENI)
	}
	return reply{}, fail(cloud.ErrForbidden, "", "no such method")
}

// fail is a failed call; do adds which.
func fail(kind error, object, format string, args ...any) error {
	return &cloud.Error{Kind: kind, Object: object, Detail: fmt.Sprintf(format, args...)}
}

func lost(r request) error { return fail(cloud.ErrUnknown, r.ENI, "the answer was lost") }
