package node

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/enipool/enipool/pkg/bpf"
	"github.com/enipool/enipool/pkg/host/fastpath"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/pkg/status"
)

// FastPath keeps the fast path of a node: it tells its program what the node
// state says, vouches for it as long as nobody else could decide about pods'
// packets, and takes it away when it is switched off. Its methods are safe for
// several goroutines.
type FastPath struct {
	Cache nodecache.Cache
	Log   *slog.Logger

	// VouchFor is how long packets jump after a look without another one. 0: as long
	// as the promise allows that no rule of others is passed by for more than a second.
	VouchFor time.Duration

	// Changed is told when the fast path goes on or off; it must have room for one.
	Changed chan struct{}

	mu sync.Mutex
	demand
	path   *fastpath.Path // nil: not open
	told   netconf.FastPath
	epoch  uint32
	jumped netconf.FastPathCounters

	others  fastpath.Watch
	seen    fastpath.Generation
	checked time.Time // nothing that others had then was in the way
	lookAt  time.Time
	reading time.Duration // how long it took this round to read rules of others
	links   links
	causes  []string // why no packet jumps
	said    *string  // the last of them that was told

	prepared bool // conntrack is as it must be
	warned   bool // that somebody set it back
}

// demand is whether the fast path is wanted.
type demand struct {
	wanted bool
	away   bool          // it is not wanted, and nothing is left of it
	turned chan struct{} // closed when it is wanted again, nil: nobody waits for that
}

// Switch says whether the fast path is wanted. It takes effect with the next Keep.
func (f *FastPath) Switch(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wanted, f.lookAt = on, time.Time{}
	if on && f.turned != nil {
		close(f.turned)
		f.turned = nil
	}
}

// untilWanted returns what is closed when the fast path is wanted again, nil if it is, or if something
// is left of it.
func (f *FastPath) untilWanted() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.wanted || !f.away {
		return nil
	}
	if f.turned == nil {
		f.turned = make(chan struct{})
	}
	return f.turned
}

// tell hands the program what is wanted. With whole it forgets all else, without whole nothing.
func (f *FastPath) tell(want netconf.FastPath, whole bool) error {
	tell := f.path.Grow
	if whole {
		tell = f.path.Tell
	}
	f.told = want
	// Another epoch makes the program find out again what it has found out so far. It begins odd,
	// so it is never 0.
	f.epoch += 2
	return tell(want)
}

// Grow tells the program what next adds, before that is in the node cache.
func (f *FastPath) Grow(next netconf.FastPath) error { return f.follow(next, false) }

// Follow makes the program know what the node state says, and nothing else: what
// left it may belong to somebody else when this returns nil.
func (f *FastPath) Follow(want netconf.FastPath) error { return f.follow(want, true) }

func (f *FastPath) follow(want netconf.FastPath, whole bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lookAt = time.Time{} // links may have come
	if f.path == nil {
		return nil
	}
	err := f.tell(want, whole)
	if err == nil && len(f.causes) == 0 {
		// What the program found out before holds no more when this returns.
		f.causes = f.vouch()
	}
	return err
}

// remove takes the fast path away, an earlier agent's too.
func (f *FastPath) remove() error {
	err := fastpath.Remove(bpf.Folder(f.Cache.Path))
	if f.path != nil {
		err = errors.Join(err, f.path.Close())
		f.path = nil
	}
	return err
}

// Status tells how packets pass the node.
func (f *FastPath) Status() status.FastPath {
	f.mu.Lock()
	defer f.mu.Unlock()
	return status.FastPath{Off: f.causes, Out: f.jumped.Out, In: f.jumped.In, Local: f.jumped.Local}
}

// LookAgain has the next Keep look at everything.
func (f *FastPath) LookAgain() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lookAt = time.Time{}
}

// growFast is Grow of the node's fast path, if it has one.
func (n Node) growFast(next *ipam.State) error {
	if n.Fast == nil {
		return nil
	}
	return n.Fast.Grow(netconf.NewFastPath(next))
}

// followFast is Follow, of the node state as it is. The cache's lock is not held meanwhile.
func (n Node) followFast(ctx context.Context, viewState view) error {
	if n.Fast == nil {
		return nil
	}
	var want netconf.FastPath
	if err := viewState(ctx, func(s *ipam.State) error { want = netconf.NewFastPath(s); return nil }); err != nil {
		return err
	}
	return n.Fast.Follow(want)
}
