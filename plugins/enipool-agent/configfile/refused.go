package configfile

import (
	"log/slog"
	"sync"
	"time"

	"github.com/enipool/enipool/pkg/config/keys"
	"github.com/enipool/enipool/pkg/status"
)

// refusal remembers a configuration that could not be taken over: the agent works on with
// the one that was in force last. Its methods may be called from several goroutines.
type refusal struct {
	log     *slog.Logger
	now     func() time.Time
	changed chan struct{} // wakes the loop, which publishes it

	mu   sync.Mutex
	last *status.Refused                            // nil: the file is in force
	said string                                     // what was told of it last
	tell func(warning bool, reason, message string) // the cluster; nil: nobody

	// kept is where what is in force is kept for the next start, "" where it is not, and unkept why.
	kept, unkept string
	untilReboot  string // why it is kept no longer than until the next reboot, "" where it is
}

func newRefusal(log *slog.Logger) *refusal {
	return &refusal{log: log, now: time.Now, changed: make(chan struct{}, 1)}
}

// refuseFile says why the file is not taken over. The same once more is no news.
func (r *refusal) refuseFile(err error) { r.noteRefused(err, false) }

// startWithout says why the agent starts without the file.
func (r *refusal) startWithout(err error) { r.noteRefused(err, true) }

func (r *refusal) noteRefused(err error, start bool) {
	r.mu.Lock()
	next := status.Refused{Error: keys.Brief(err), Since: r.now(), Start: start, Kept: r.kept, NotKept: r.unkept, UntilReboot: r.untilReboot}
	if r.last != nil {
		next.Since, next.Start = r.last.Since, r.last.Start // it has not been right in between
	}
	news := r.said != next.Error
	r.last, r.said = &next, next.Error
	tell := r.tell
	r.mu.Unlock()
	if !news {
		return
	}
	r.log.Error("configuration is not taken over", "error", next.Error)
	if tell != nil {
		tell(true, refusedReason, next.String())
	}
	r.wakeLoop()
}

// The reasons of the events about the configuration.
const (
	refusedReason  = "ConfigurationRefused"
	acceptedReason = "ConfigurationAccepted"
)

// noteAccepted notes that the file is taken over.
func (r *refusal) noteAccepted() {
	r.mu.Lock()
	was, tell := r.last, r.tell
	r.last, r.said = nil, ""
	r.mu.Unlock()
	if was == nil {
		return
	}
	r.log.Info("configuration is right again")
	if tell != nil {
		tell(false, acceptedReason, "the agent's configuration is right again and in force")
	}
	r.wakeLoop()
}

// tellNextAgain has the next refusal told, as somebody asks for it.
func (r *refusal) tellNextAgain() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said = ""
}

// noteKept notes whether what is in force is kept for the next start, and if only until a reboot, why.
func (r *refusal) noteKept(path string, err, volatile error) {
	unkept, untilReboot := textOf(err), textOf(volatile)
	if err != nil {
		path = ""
	}
	r.mu.Lock()
	lost, bound := unkept != "" && unkept != r.unkept, untilReboot != "" && untilReboot != r.untilReboot
	r.kept, r.unkept, r.untilReboot = path, unkept, untilReboot
	if r.last != nil {
		next := *r.last // who asked for the status has the old one
		next.Kept, next.NotKept, next.UntilReboot = path, unkept, untilReboot
		r.last = &next
	}
	r.mu.Unlock()
	if lost {
		r.log.Warn("a start at which the configuration file is wrong would fail: what is in force can't be kept for it", "error", err)
	}
	if bound {
		r.log.Warn("a start after a reboot at which the configuration file is wrong would fail: what is in force can be kept until then only", "kept", path, "error", volatile)
	}
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// tellTo has the cluster told from now on, and what is refused already.
func (r *refusal) tellTo(tell func(warning bool, reason, message string)) {
	r.mu.Lock()
	r.tell = tell
	last := r.last
	r.mu.Unlock()
	if last != nil {
		tell(true, refusedReason, last.String())
	}
}

func (r *refusal) wakeLoop() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// Status returns what is refused, nil if nothing is.
func (r *refusal) Status() *status.Refused {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}
