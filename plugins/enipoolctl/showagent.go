package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"text/tabwriter"
	"time"

	"github.com/enipool/enipool/pkg/status"
)

// agentReport is the agent as people and scripts want to see it.
type agentReport struct {
	Running bool      `json:"running"`         // it has given a sign of life when it should have
	Heard   time.Time `json:"heard,omitzero"`  // its last one
	Error   string    `json:"error,omitempty"` // why that can't be read
	*status.Status

	lines []string
}

// readAgent never fails: the pool is worth showing without its agent.
func readAgent(f status.File, now time.Time) agentReport {
	s, err := f.Read()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return agentReport{lines: []string{"no agent: pool as loaded by hand"}}
	case err != nil:
		return agentReport{Error: err.Error(), lines: []string{"agent:\t" + err.Error()}}
	}
	return agentReport{Running: !s.Silent(now), Heard: s.LastHeard(), Status: &s, lines: s.Lines(now)}
}

func printAgent(w io.Writer, a agentReport) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, line := range a.lines {
		fmt.Fprintln(t, line)
	}
	return t.Flush()
}
