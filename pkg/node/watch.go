package node

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/host/events"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nodecache"
)

// mostSuspects bounds what is kept of a flood. More suspects are a fault.
const mostSuspects = 4096

// Watch finds out by what the kernel announces that others changed what the node needs.
// Its methods may be called from several goroutines; nil is a watch that finds nothing.
type Watch struct {
	viewState view
	now       func() time.Duration // since boot
	faults    chan struct{}
	stir      chan struct{} // something is to be done by Run
	listener  *events.Listener

	mu       sync.Mutex
	known    known
	cause    string // first fault since the kernel was read last, "" for none
	covered  string // the fault that the newest comparison was for
	owed     string // the same, where that comparison failed and its caller repeats it
	suspects map[subject]suspicion
	missed   bool // links may have come and gone unheard
	changers changers

	comparing bool // a comparison is under way: what it does itself is no fault
	sent      bool // the cause was sent, and no comparison began since
}

// subject is what a pod needs: something of a kind, with the pod's address or with the
// name of its link.
type subject struct {
	kind events.Kind
	name string
}

// suspicion is that what a pod needs is gone though the pod stays.
type suspicion struct {
	cause string
	at    time.Duration // since boot
}

// NewWatch begins to hear what changes in the network namespace of the calling thread.
// also, if not nil, is told of each change; it must not block.
func NewWatch(cache nodecache.Cache, also func(events.Event), log *slog.Logger) (*Watch, error) {
	w := newWatch(cache.View, nodecache.SinceBoot)
	var err error
	w.listener, err = events.Listen(func(e events.Event) {
		w.note(e)
		if also != nil {
			also(e)
		}
	}, log)
	if err != nil {
		return nil, fmt.Errorf("listen for changes of the kernel: %w", err)
	}
	w.learnLinks()
	return w, nil
}

func newWatch(viewState view, now func() time.Duration) *Watch {
	return &Watch{viewState: viewState, now: now, faults: make(chan struct{}, 1), stir: make(chan struct{}, 1), suspects: map[subject]suspicion{}, changers: changers{proc: "/proc"},
		known: known{devices: map[string]bool{}, links: map[int]string{}}}
}

// Faults sends when the kernel should be compared with the node state.
func (w *Watch) Faults() <-chan struct{} {
	if w == nil {
		return nil
	}
	return w.faults
}

// Cause returns the change that the newest comparison was for, and forgets it. "": it
// was for none that is known.
func (w *Watch) Cause() (cause string) {
	if w == nil {
		return ""
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	cause, w.covered = w.covered, ""
	return cause
}

// note takes in a change.
func (w *Watch) note(e events.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c, name := w.known.judge(e)
	w.known.learn(e)
	w.changers.follow(e, c, w.now())
	s := subject{e.Kind, name}
	switch c {
	case fault:
		w.missed = w.missed || e.Kind == events.Overflow
		w.blame(e.String())
	case suspect:
		// A suspicion that is dropped would never be judged. One comparison too many costs less.
		if _, known := w.suspects[s]; !known && len(w.suspects) == mostSuspects {
			w.blame(e.String())
			return
		}
		w.suspects[s] = suspicion{e.String(), w.now()}
		w.wakeRun()
	case restored:
		delete(w.suspects, s)
	}
}

// blame notes a fault.
func (w *Watch) blame(cause string) {
	if w.cause == "" {
		w.cause = cause
	}
	w.wakeRun()
}

func (w *Watch) wakeRun() {
	select {
	case w.stir <- struct{}{}:
	default:
	}
}

// beginComparison is called before each reading of the kernel. It forgets the fault that was
// noted until now, because that reading shows the change, and returns it. The last reading of
// a comparison shows nothing to do: so no change of the agent's own is taken for a fault later.
//
// A fault before the first reading was a change by others, and is what the comparison is for;
// before a later one it most likely was the agent's own change.
func (w *Watch) beginComparison(ctx context.Context, viewState view, first bool) (cause string, err error) {
	if w == nil {
		return "", nil
	}
	if w.listener != nil {
		w.listener.Catch()
	}
	devices, tables, without6 := map[string]bool{}, map[int]bool{netconf.PodsTable: true}, false
	err = viewState(ctx, func(s *ipam.State) error {
		without6 = !slices.Contains(s.Settings.Families, eni.IPv6)
		for _, nic := range s.ENIs {
			devices[nic.Device], tables[netconf.Table(nic.Index)] = true, true
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.missed {
		w.learnLinks()
	}
	w.known.devices, w.known.tables, w.known.without6 = devices, tables, without6
	cause, w.cause = w.cause, ""
	if first {
		w.covered, w.owed = cmp.Or(cause, w.owed), ""
	}
	select {
	case <-w.faults: // this reading covers it
	default:
	}
	w.comparing, w.sent = true, false
	return cause, nil
}

// endComparison is called after a comparison: what is a fault by now has come since the kernel
// was read.
func (w *Watch) endComparison() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.comparing = false
	w.wakeRun()
}

// keepCause is uncover for a caller that compares again by itself: the cause is kept for that
// comparison, and nothing is sent, so that what is sent meanwhile is new.
func (w *Watch) keepCause() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.owed = w.covered
}

// uncover notes the cause again, because what the reading showed was not put right.
func (w *Watch) uncover(cause string) {
	if w == nil || cause == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.blame(cause)
}

// learnLinks reads the names of the links that there are.
func (w *Watch) learnLinks() {
	list, err := net.Interfaces()
	if err != nil {
		return // each link is known from its next change on
	}
	w.missed = false
	clear(w.known.links)
	for _, l := range list {
		w.known.links[l.Index] = l.Name
	}
}

// learn follows the names of links.
func (k known) learn(e events.Event) {
	switch {
	case e.Kind != events.Link:
	case e.Gone:
		delete(k.links, e.Link)
	default:
		k.links[e.Link] = e.Name
	}
}
