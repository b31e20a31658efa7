package pool

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/enipool/enipool/pkg/node"
	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/pkg/status"
)

// agentReport is the agent as people and scripts want to see it.
type agentReport struct {
	Running bool      `json:"running"`           // it has given a sign of life when it should have
	Process int       `json:"process,omitempty"` // that holds the agent's lock: it runs, silent or not
	Heard   time.Time `json:"heard,omitzero"`    // its last sign of life
	Error   string    `json:"error,omitempty"`   // why what it says can't be read
	// Uninstalled tells that enipool was taken off the node and not set up again.
	Uninstalled bool `json:"uninstalled,omitempty"`
	// Unwritable says why the node cache can't be written: the status can't be either then.
	Unwritable string `json:"unwritable,omitempty"`
	*status.Status

	lines []string
}

// readAgent never fails: the pool is worth showing without its agent.
func readAgent(cache nodecache.Cache, f status.File, now time.Time) agentReport {
	p := askLock(cache, f)
	a := agentReport{Process: p.PID}
	s, err := f.Read()
	switch {
	case errors.Is(err, fs.ErrNotExist) && p.Running:
		a.lines = []string{"agent:\t" + p.String() + ", and has not been heard of"}
	case errors.Is(err, fs.ErrNotExist):
		a.lines = []string{"no agent: pool as loaded by hand"}
	case err != nil:
		a.Error, a.lines = err.Error(), []string{"agent:\t" + err.Error()}
	default:
		a.Status, a.Heard, a.lines = &s, s.LastHeard(), s.Lines(now, p)
		a.Running = !s.Silent(now) && (p.Running || !p.Asked)
	}
	if n := (node.Node{Cache: cache}); n.Uninstalled() { // the agent that was is no matter then
		a.Uninstalled, a.lines = true, []string{"enipool was uninstalled from this node"}
	}
	if err := cache.CheckWritable(); err != nil {
		a.tellUnwritable(err.Error())
	}
	return a
}

// tellUnwritable says why the node cache can't be written, where the agent does not name that as
// the cause.
func (a *agentReport) tellUnwritable(why string) {
	a.Unwritable = why
	if !slices.ContainsFunc(a.lines, func(line string) bool { return strings.Contains(line, why) }) {
		a.lines = append(a.lines, "node cache:\t"+why)
	}
}

// askLock asks the lock of the agent that f is of. Of a file that --status names somewhere
// else nobody knows which agent wrote it.
func askLock(cache nodecache.Cache, f status.File) (p status.Process) {
	if f != status.Beside(cache.Path) {
		return p
	}
	agent, running := cache.Agent()
	return status.Process{Asked: true, Running: running, PID: agent.PID, Stopped: agent.Stopped}
}

func printAgent(w io.Writer, a agentReport) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, line := range a.lines {
		fmt.Fprintln(t, line)
	}
	return t.Flush()
}
