package node

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/bpf"
	"github.com/enipool/enipool/pkg/host"
	"github.com/enipool/enipool/pkg/host/fastpath"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
)

// Times of the fast path's keeper.
const (
	// bypassed is how long packets may jump past what others have decided, whether the
	// agent notices, is busy, or is gone. It vouches for what is left of that since it last
	// began to look.
	bypassed = time.Second
	// keepEvery is how often it looks, besides when the kernel announces a change.
	keepEvery = 250 * time.Millisecond
	// offEvery is how often it looks while no packet jumps.
	offEvery = time.Second
	// awayEvery is how often it looks while nobody wants it and nothing is left of it.
	awayEvery = time.Minute
	// leastPause is how long it waits after each look: changes that come one after the
	// other, like those of kube-proxy for a new service, are read together.
	leastPause = 50 * time.Millisecond
	// lookEvery is how often all is looked at though nothing seems to have changed.
	lookEvery = 10 * time.Second
	// busyFor is how long links that lack the program wait for the node to have no new
	// links any more.
	busyFor = 5 * time.Second
	// mostAttached is how many links get the program at a time. Each takes about ten
	// milliseconds in which no other link can be made or changed.
	mostAttached = 16
)

// Run keeps the fast path until ctx ends. What is there then stays, and packets
// jump until the time is up that was vouched for.
func (f *FastPath) Run(ctx context.Context) {
	var heard chan struct{}
	for {
		on := f.Keep(ctx)
		if on && heard == nil {
			heard = make(chan struct{}, 1)
			if err := fastpath.Hear(ctx, heard); err != nil {
				f.Log.Warn("some changes of others are noticed by looking only", "every", keepEvery, "error", err)
			}
		}
		pause, changed := keepEvery, (<-chan struct{})(heard)
		if !on {
			pause, changed = offEvery, nil
			if wanted := f.untilWanted(); wanted != nil {
				pause, changed = awayEvery, wanted
			}
		}
		// Whoever changes rules all the time, and has so many that it takes long to read
		// them, costs a quarter of a processor at most. If that takes longer than it was
		// vouched for, packets go the plain way meanwhile.
		if !sleepUnless(ctx, f.pauseAfterRead(), nil) || !sleepUnless(ctx, pause, changed) {
			return
		}
	}
}

// pauseAfterRead is how long the next look waits after the last one.
func (f *FastPath) pauseAfterRead() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return max(leastPause, 3*f.reading)
}

// sleepUnless sleeps for that length, or until something changed; false if ctx ended.
func sleepUnless(ctx context.Context, length time.Duration, changed <-chan struct{}) bool {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-changed:
	case <-timer.C:
	}
	return true
}

// Keep does one round of Run, and tells whether packets jump after it.
func (f *FastPath) Keep(ctx context.Context) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	causes := f.keep(ctx)
	if len(causes) > 0 && f.path != nil {
		if err := f.path.Stop(); err != nil {
			causes = append(causes, err.Error())
		}
	}
	if is := strings.Join(causes, "; "); f.said == nil || *f.said != is {
		f.said = &is
		f.log(causes)
		select {
		case f.Changed <- struct{}{}:
		default:
		}
	}
	f.causes = causes
	return len(causes) == 0
}

func (f *FastPath) log(causes []string) {
	if len(causes) == 0 {
		f.Log.Info("fast path is on")
		return
	}
	f.Log.Info("fast path is off", "cause", strings.Join(causes, "; "))
}

// keep returns why no packet should jump after it.
func (f *FastPath) keep(ctx context.Context) []string {
	f.away = false
	if !f.wanted {
		if err := f.remove(); err != nil {
			return []string{"fastPath is off, but it can't be taken away: " + err.Error()}
		}
		f.away = true
		return []string{"the key fastPath is off"}
	}
	began := time.Now()
	f.reading = 0
	generation, err := f.others.Generation()
	if err != nil {
		f.lookAt = time.Time{}
		return []string{err.Error()}
	}
	if generation != f.seen || !began.Before(f.lookAt) {
		if causes := f.lookUntilStill(ctx, generation); len(causes) > 0 {
			return causes
		}
	} else {
		if len(f.causes) > 0 {
			return f.causes
		}
		f.checked = began
	}
	if err := f.leaveLinks(); err != nil {
		return []string{err.Error()}
	}
	if causes := f.vouch(); len(causes) > 0 {
		return causes
	}
	if err := f.takeLinks(); err != nil {
		f.lookAt = time.Time{}
		return []string{err.Error()}
	}
	return nil
}

// lookUntilStill looks at everything until nothing changed meanwhile: what changes
// while it is read may be in what was read or not.
func (f *FastPath) lookUntilStill(ctx context.Context, generation fastpath.Generation) (causes []string) {
	for range 3 {
		causes, err := f.look(ctx, generation)
		if err != nil {
			causes = append(causes, err.Error())
		}
		f.seen, f.lookAt = generation, time.Now().Add(max(lookEvery, 100*f.reading))
		if len(causes) > 0 {
			return causes
		}
		f.checked = time.Now()
		if generation, err = f.others.Generation(); err != nil {
			f.lookAt = time.Time{}
			return []string{err.Error()}
		}
		if generation == f.seen {
			return nil
		}
	}
	f.lookAt = time.Time{}
	return []string{"others change their rules faster than they can be read"}
}

// look finds out what is in the way, and makes the fast path ready if nothing is.
func (f *FastPath) look(ctx context.Context, generation fastpath.Generation) ([]string, error) {
	var want netconf.FastPath
	if err := f.Cache.View(ctx, func(s *ipam.State) error { want = netconf.NewFastPath(s); return nil }); err != nil {
		return nil, fmt.Errorf("read the node cache: %w", err)
	}
	began := time.Now()
	others, err := generation.Others()
	f.reading += time.Since(began)
	if err != nil {
		return nil, err
	}
	if causes := others.Causes(); len(causes) > 0 {
		return causes, nil
	}
	if f.path == nil {
		if f.path, err = fastpath.Open(bpf.Folder(f.Cache.Path)); err != nil {
			return nil, err
		}
		f.epoch = uint32(time.Now().UnixNano()) | 1
		f.links = links{}
	}
	if f.links.lackSince.IsZero() {
		f.links.lackSince = time.Now() // whoever took our program away did not say so
	}
	return nil, f.tell(want, true)
}

// vouch has packets jump until it must have been looked again. Whoever sets back what
// connection tracking needs is told once, and overruled each time.
func (f *FastPath) vouch() []string {
	changed, err := fastpath.Prepare()
	if err != nil {
		return []string{err.Error()}
	}
	if changed && f.prepared && !f.warned {
		f.warned = true
		f.Log.Warn("another program reset nf_conntrack_tcp_be_liberal, without which connections on the fast path can't end; it is set again each time")
	}
	f.prepared = true
	times, err := fastpath.ReadTimes()
	if err == nil {
		length := f.VouchFor
		if length == 0 {
			length = bypassed - f.told.Known
		}
		err = f.path.Vouch(f.told, times, f.epoch, length-time.Since(f.checked))
	}
	if err == nil {
		f.jumped, err = f.path.Counters()
	}
	if err != nil {
		return []string{err.Error()}
	}
	return nil
}

// links is what is known of the links that should have the program.
type links struct {
	seen      fastpath.Listeners
	lackSince time.Time // some lack it, perhaps; zero: none does
	still     bool      // none came or went since the last round
}

// leaveLinks takes the program off links at which others look at packets.
func (f *FastPath) leaveLinks() error {
	seen, err := f.path.Listeners()
	if err != nil || seen == f.links.seen {
		f.links.still = true
		return err
	}
	// The first time there is nothing that it could be compared with.
	f.links.still = f.links.seen == 0
	if err := f.attach(0); err != nil {
		return err
	}
	f.links.seen = seen
	return nil
}

// takeLinks gives the program to links that lack it, once the node has come to rest:
// pods that are being made don't wait for it.
func (f *FastPath) takeLinks() error {
	switch {
	case f.links.lackSince.IsZero():
		return nil
	case f.links.still:
		return f.attach(mostAttached)
	case time.Since(f.links.lackSince) > busyFor:
		return f.attach(1)
	}
	return nil
}

// attach gives the program to as many of the ENIs' and pods' links that lack it.
func (f *FastPath) attach(most int) error {
	h, err := host.New()
	if err != nil {
		return err
	}
	defer h.Close()
	pods, err := h.PodDevices()
	if err != nil {
		return err
	}
	whole, err := f.path.Attach(append(pods, f.told.ENIs...), most)
	if whole {
		f.links.lackSince = time.Time{}
	} else if f.links.lackSince.IsZero() {
		f.links.lackSince = time.Now()
	}
	return err
}
