package status

import (
	"fmt"
	"os"
	"time"
)

// BeatEvery is how often an agent's loop says that it lives, with nothing else to say.
// It is silent after four of them: the loop may wait for the lock of the node cache, too.
const (
	BeatEvery = 10 * time.Second
	silentAt  = 4
)

// UntilBeat is how long after now, the time since boot, the next sign of life is due. All that an idle agent
// looks at as often does it in the same moment: each wake of a process costs more than what it does then.
func UntilBeat(now time.Duration) time.Duration { return BeatEvery - now%BeatEvery }

// vouchTime is more than the fast path goes on without the agent's word.
const vouchTime = 5 * time.Second

// Touch says that the agent's loop lives: it gives the file the time of now. A full disk
// does not keep it from that.
func (f File) Touch(now time.Time) error {
	if err := os.Chtimes(f.Path, now, now); err != nil {
		return fmt.Errorf("touch status: %w", err)
	}
	return nil
}

// LastHeard is when the agent gave its last sign of life.
func (s Status) LastHeard() time.Time {
	if s.Heard.After(s.Written) {
		return s.Heard
	}
	return s.Written
}

// Silent tells whether the agent has given no sign of life for so long that its word
// does not count any more: it does not run, or hangs.
func (s Status) Silent(now time.Time) bool {
	most := s.Late()
	if s.Beat > 0 {
		most = silentAt * s.Beat
	}
	return now.Sub(s.LastHeard()) > most
}

// Process is what the agent's lock tells of it, which a process holds for as long as it runs.
type Process struct {
	Asked   bool // false: nobody looked at the lock
	Running bool
	PID     int  // 0: not shown here
	Stopped bool // by a signal or a debugger: it goes on when it is told to
}

// hasEnded tells whether the agent is known to run no more.
func (p Process) hasEnded() bool { return p.Asked && !p.Running }

// String names it.
func (p Process) String() string {
	if p.PID == 0 {
		return "running"
	}
	return fmt.Sprintf("running (process %d)", p.PID)
}

// whyUnheard says why the agent's word does not count any more, "" if it does.
func (s Status) whyUnheard(now time.Time, process Process) string {
	switch {
	case process.hasEnded():
		return "not running: start it; where it ends again its log says why"
	case process.Stopped:
		return fmt.Sprintf("stopped: kill -CONT %d lets it go on", process.PID)
	case !s.Silent(now):
		return ""
	case process.Running:
		return process.String() + ", and silent: look at its log"
	}
	return "not running, or hangs?"
}

// fastPath tells how packets pass the node. That they take the short way is true for as
// long only as the agent vouches for it.
func (s Status) fastPath(now time.Time, process Process) string {
	f := *s.FastPath
	switch {
	case len(f.Off) > 0:
	case s.whyUnheard(now, process) != "":
		f.Off = []string{"the agent is silent, and packets take the short way only seconds longer than it vouches for that"}
	case s.Beat > 0 && now.Sub(s.LastHeard()) > s.Beat+vouchTime:
		return "not known, it was on when the agent was last heard of"
	}
	return f.String()
}
