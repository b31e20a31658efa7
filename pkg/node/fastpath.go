package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/enipool/enipool/pkg/bpf"
	"github.com/enipool/enipool/pkg/host"
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

	mu     sync.Mutex
	wanted bool
	path   *fastpath.Path // nil: not open
	told   netconf.FastPath
	epoch  uint32
	lookAt time.Time
	seen   fastpath.Generation
	causes []string // why no packet jumps
	said   *string  // the last of them that was told
	jumped netconf.FastPathCounters

	// Changed is told when the fast path goes on or off; it must have room for one.
	Changed chan struct{}
}

// Times of the fast path's keeper.
const (
	// keepEvery is how soon a change of another program's rules is noticed.
	keepEvery = time.Second
	// vouchFor is how long packets jump when the agent has gone.
	vouchFor = 5 * time.Second
	// lookEvery is how often all that could be in the way is looked at, and links that
	// lack the program get it.
	lookEvery = 10 * time.Second
)

// Switch says whether the fast path is wanted. It takes effect with the next Keep.
func (f *FastPath) Switch(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wanted, f.lookAt = on, time.Time{}
}

// Run keeps the fast path until ctx ends. What is there then stays, and packets
// jump until the time is up that was vouched for.
func (f *FastPath) Run(ctx context.Context) {
	tick := time.NewTicker(keepEvery)
	defer tick.Stop()
	for {
		f.Keep(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Keep does one round of Run.
func (f *FastPath) Keep(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	causes := f.keep(ctx)
	if is := strings.Join(causes, "; "); f.said == nil || *f.said != is {
		f.said = &is
		f.log(causes)
		select {
		case f.Changed <- struct{}{}:
		default:
		}
	}
	f.causes = causes
}

func (f *FastPath) log(causes []string) {
	if len(causes) == 0 {
		f.Log.Info("fast path is on")
		return
	}
	f.Log.Info("fast path is off", "cause", strings.Join(causes, "; "))
}

// keep returns why no packet jumps after it.
func (f *FastPath) keep(ctx context.Context) []string {
	if !f.wanted {
		if err := f.remove(); err != nil {
			return []string{"fastPath is off, but it can't be taken away: " + err.Error()}
		}
		return []string{"the key fastPath says so"}
	}
	now := time.Now()
	generation, err := fastpath.ReadGeneration()
	if err == nil && generation == f.seen && now.Before(f.lookAt) {
		if len(f.causes) > 0 {
			return f.causes
		}
		return f.vouch()
	}
	causes, err := f.look(ctx)
	if err != nil {
		causes = append(causes, err.Error())
	}
	f.seen, f.lookAt = generation, now.Add(lookEvery)
	if len(causes) > 0 {
		if f.path != nil {
			if err := f.path.Stop(); err != nil {
				causes = append(causes, err.Error())
			}
		}
		return causes
	}
	return f.vouch()
}

// look finds out what is in the way, and makes the fast path ready if nothing is.
func (f *FastPath) look(ctx context.Context) ([]string, error) {
	var book netconf.FastPath
	if err := f.Cache.View(ctx, func(s *ipam.State) error { book = netconf.NewFastPath(s); return nil }); err != nil {
		return nil, fmt.Errorf("read the node cache: %w", err)
	}
	others, err := fastpath.ReadOthers()
	if err != nil {
		return nil, err
	}
	if causes := others.Obstacles(); len(causes) > 0 {
		return causes, nil
	}
	if err := fastpath.Prepare(); err != nil {
		return nil, err
	}
	if f.path == nil {
		if f.path, err = fastpath.Open(bpf.Folder(f.Cache.Path)); err != nil {
			return nil, err
		}
		f.epoch = uint32(time.Now().UnixNano()) | 1
	}
	if err := f.tell(book, true); err != nil {
		return nil, err
	}
	return nil, f.attach(book)
}

// attach gives the program to the ENIs and to pods' links that lack it.
func (f *FastPath) attach(book netconf.FastPath) error {
	h, err := host.New()
	if err != nil {
		return err
	}
	defer h.Close()
	pods, err := h.PodDevices()
	if err != nil {
		return err
	}
	return f.path.Attach(append(pods, book.ENIs...))
}

// tell hands the program what is wanted; without whole nothing is taken from it.
func (f *FastPath) tell(want netconf.FastPath, whole bool) error {
	tell := f.path.Grow
	if whole {
		tell = f.path.Tell
	}
	f.told = want
	f.epoch += 2 // never 0: what the program found out so far it finds out again
	return tell(want)
}

func (f *FastPath) vouch() []string {
	times, err := fastpath.ReadTimes()
	if err == nil {
		err = f.path.Vouch(f.told, times, f.epoch, vouchFor)
	}
	if err == nil {
		f.jumped, err = f.path.Counters()
	}
	if err != nil {
		return []string{err.Error()}
	}
	return nil
}

// Grow tells the program what next has more, before it is in the node cache.
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

// followFast is Follow, of the book as it is. The book's lock is not held meanwhile.
func (n Node) followFast(ctx context.Context, book view) error {
	if n.Fast == nil {
		return nil
	}
	var want netconf.FastPath
	if err := book(ctx, func(s *ipam.State) error { want = netconf.NewFastPath(s); return nil }); err != nil {
		return err
	}
	return n.Fast.Follow(want)
}
