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
	Running bool      `json:"running"`           // its last sign of life is not overdue
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

// readAgent returns what is known of the agent. It never fails: the pool is shown without its
// agent too.
func readAgent(cache nodecache.Cache, f status.File, now time.Time) agentReport {
	process := askLock(cache, f)
	told := agentReport{Process: process.PID}
	s, err := f.Read()
	switch {
	case errors.Is(err, fs.ErrNotExist) && process.Running:
		told.lines = []string{"agent:\t" + process.String() + ", and has not been heard of"}
	case errors.Is(err, fs.ErrNotExist):
		told.lines = []string{"no agent: pool as loaded by hand"}
	case err != nil:
		told.Error, told.lines = err.Error(), []string{"agent:\t" + err.Error()}
	default:
		told.Status, told.Heard, told.lines = &s, s.LastHeard(), s.Lines(now, process)
		told.Running = !s.Silent(now) && (process.Running || !process.Asked)
	}
	if n := (node.Node{Cache: cache}); n.Uninstalled() { // then the status is that of an agent of the past
		told.Uninstalled, told.lines = true, []string{"enipool was uninstalled from this node"}
	}
	if err := cache.CheckWritable(); err != nil {
		told.tellUnwritable(err.Error())
	}
	return told
}

// tellUnwritable says why the node cache can't be written, where the agent does not name that as
// the cause.
func (a *agentReport) tellUnwritable(why string) {
	a.Unwritable = why
	if !slices.ContainsFunc(a.lines, func(line string) bool { return strings.Contains(line, why) }) {
		a.lines = append(a.lines, "node cache:\t"+why)
	}
}

// askLock returns what the agent's lock says of the agent that wrote f. If --status names a file
// elsewhere it is not known which agent wrote it.
func askLock(cache nodecache.Cache, f status.File) (process status.Process) {
	if f != status.Beside(cache.Path) {
		return process
	}
	agent, running := cache.Agent()
	return status.Process{Asked: true, Running: running, PID: agent.PID, Stopped: agent.Stopped}
}

func printAgent(out io.Writer, told agentReport) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, line := range told.lines {
		fmt.Fprintln(table, line)
	}
	return table.Flush()
}
