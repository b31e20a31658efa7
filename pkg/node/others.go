package node

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/host/events"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
)

const (
	// othersGather is how long more changes are awaited before the pool is asked whether
	// they are about it, and othersPause how long it is not asked again after that:
	// a flood of changes costs no more than these looks.
	othersGather = 50 * time.Millisecond
	othersPause  = 500 * time.Millisecond

	// mostNoted bounds what is kept of a flood. More than that counts as all addresses.
	mostNoted = 4096
)

// Others finds out by what the kernel announces that others took an address of the pool
// or let one go.
type Others struct {
	viewState view
	changed   chan struct{}
	stir      chan struct{}

	mu    sync.Mutex
	noted noted
}

// noted is what was announced since the pool was asked last.
type noted struct {
	fresh, gone map[netip.Addr]bool
	linkGone    bool // with all that was on it, which the kernel does not announce
	overflow    bool
}

// NewOthers returns one for the pool of the node state that viewState hands out.
func NewOthers(viewState func(context.Context, func(*ipam.State) error) error) *Others {
	return &Others{viewState: viewState, changed: make(chan struct{}, 1), stir: make(chan struct{}, 1), noted: newNoted()}
}

func newNoted() noted { return noted{fresh: map[netip.Addr]bool{}, gone: map[netip.Addr]bool{}} }

// Changed sends when the kernel should be asked what others hold.
func (o *Others) Changed() <-chan struct{} { return o.changed }

// Note takes in a change. It does not block.
func (o *Others) Note(e events.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.noted.add(e) {
		return
	}
	select {
	case o.stir <- struct{}{}:
	default:
	}
}

// add tells whether the event can be about an address that others hold.
func (n *noted) add(e events.Event) bool {
	addr, single := e.Addr()
	switch {
	case e.Kind == events.Overflow:
		n.overflow = true
	case e.Kind == events.Link && (e.Gone || e.Toggled && !e.Up):
		n.linkGone = true
	case !single || e.Protocol == netconf.Protocol || e.Protocol == netconf.PodsProtocol,
		!e.Is(events.Route, events.Rule, events.Address, events.Neighbour):
		return false
	// Traffic makes such neighbours come and go; only permanent ones are somebody's.
	case e.Kind == events.Neighbour && !e.Gone && !e.Permanent:
		return false
	case len(n.fresh)+len(n.gone) >= mostNoted:
		n.overflow = true
	case e.Gone:
		n.gone[addr] = true
	default:
		n.fresh[addr] = true
	}
	return true
}

// concerns tells whether any of it is about the pool: something new about an address
// that no pod of ours has, or something that went of one that others hold.
func (n *noted) concerns(s *ipam.State) bool {
	for i := range s.Addresses {
		switch a := &s.Addresses[i]; {
		case a.State == eni.Held && (n.linkGone || n.overflow || n.gone[a.Addr] || n.fresh[a.Addr]):
			return true
		case a.State != eni.Used && (n.overflow || n.fresh[a.Addr]):
			return true
		}
	}
	return false
}

// Run passes on what concerns the pool until ctx ends.
func (o *Others) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-o.stir:
		}
		if sleep(ctx, othersGather) != nil {
			return
		}
		o.mu.Lock()
		heard := o.noted
		o.noted = newNoted()
		o.mu.Unlock()
		concerns := true // a cache that can't be read says nothing against it
		_ = o.viewState(ctx, func(s *ipam.State) error { concerns = heard.concerns(s); return nil })
		if concerns {
			select {
			case o.changed <- struct{}{}:
			default:
			}
		}
		if sleep(ctx, othersPause) != nil {
			return
		}
	}
}
