package pool

import (
	"slices"
	"testing"
)

// A cache that can't be written is told once: the agent that still says so has named it as the cause.
func TestWhyTheCacheCanNotBeWrittenIsToldOnce(t *testing.T) {
	const why = "node cache can't be written: read-only file system"
	alone, named := agentReport{lines: []string{"agent:\tready"}}, agentReport{lines: []string{"cause:\tnode cache: " + why + "; the agent rebuilds it"}}
	alone.tellUnwritable(why)
	named.tellUnwritable(why)
	if !slices.Equal(alone.lines, []string{"agent:\tready", "node cache:\t" + why}) || len(named.lines) != 1 {
		t.Errorf("lines %q, and beside the cause %q", alone.lines, named.lines)
	}
	if alone.Unwritable != why || named.Unwritable != why {
		t.Errorf("scripts read %q and %q", alone.Unwritable, named.Unwritable)
	}
}
