package cni

import (
	"context"
	"errors"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nodecache"
)

// retryTime is how long an ADD that got no address goes on counting as demand:
// within it the kubelet tries again.
const retryTime = 15 * time.Second

// await repeats assign while it says Exhausted, each time the book changes or a
// cool-down ends, until the time to wait has passed. The agent is told meanwhile.
func (p *Plugin) await(ctx context.Context, r Request, assign func() error) (err error) {
	var none *ipam.Exhausted
	wait := r.Conf.WaitForAddress
	if wait == 0 {
		if err = assign(); errors.As(err, &none) {
			p.announceFailed(r.Owner)
		}
		return err
	}
	changed, look, stop := p.watch()
	defer stop()
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	var waiting *nodecache.Waiting
	announced := false
	defer func() {
		waiting.Done()
		if waiting != nil && errors.As(err, &none) {
			p.announceFailed(r.Owner)
		}
	}()
	for {
		if err = assign(); !errors.As(err, &none) {
			return err
		}
		if !announced {
			announced, waiting = true, p.announce(r.Owner, wait)
		}
		var cooled <-chan time.Time
		if none.Cooling > 0 {
			cooled = time.After(none.NextFree + time.Millisecond)
		}
		select {
		case <-changed:
		case <-cooled:
		case <-look:
		case <-deadline.C:
			return assign()
		case <-ctx.Done():
			return errors.Join(err, context.Cause(ctx))
		}
	}
}

// watch returns what wakes when the book changes; it is to be called before the
// look, so that no change is missed. On a node that is out of inotify instances,
// which a burst of pods can bring about, look says when to look without it.
func (p *Plugin) watch() (changed <-chan struct{}, look <-chan time.Time, stop func()) {
	watch, err := p.Cache.Watch()
	if err != nil {
		p.Log.Warn("can't watch the pool, looking from time to time", "error", err)
		tick := time.NewTicker(lookTime)
		return nil, tick.C, tick.Stop
	}
	return watch.C, nil, func() { _ = watch.Close() }
}

// lookTime is how often an ADD looks that can't watch.
const lookTime = 250 * time.Millisecond

// announce tells the agent that the owner wants an address within the time. An ADD
// does not fail because that can't be done: a full disk is no reason for it.
func (p *Plugin) announce(o eni.Owner, within time.Duration) *nodecache.Waiting {
	waiting, err := p.Cache.Announce(o, p.Now()+within)
	p.unheard(err)
	return waiting
}

// announceFailed tells the agent that the owner got no address and that its runtime
// is about to try again.
func (p *Plugin) announceFailed(o eni.Owner) {
	p.unheard(p.Cache.AnnounceFailed(o, p.Now()+retryTime))
}

func (p *Plugin) unheard(err error) {
	if err != nil {
		p.Log.Warn("can't tell the agent that an address is wanted", "error", err)
	}
}
