package pool

import (
	"fmt"
	"time"

	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/pkg/status"
)

// agentAway says that the agent of the node is not at work, and what to do; "" where one is at
// work, and where the node has none because its pool was loaded by hand.
func agentAway(cache nodecache.Cache) string {
	told, err := status.Beside(cache.Path).Read()
	if _, running := cache.Agent(); err != nil && !running {
		return ""
	}
	away := cache.AgentAway()
	if away != "" && err == nil {
		away += fmt.Sprintf(" (last heard of %s)", told.LastHeard().Local().Format(time.DateTime))
	}
	return away
}

// refusedFile says that the agent goes on with another configuration than its file has; "" where it does not.
func refusedFile(cache nodecache.Cache) string {
	told, err := status.Beside(cache.Path).Read()
	if err != nil || told.Refused == nil {
		return ""
	}
	return "the agent refuses " + told.Refused.String()
}

// undoneRepairs is what the agent says of repairs that don't last, while it is at work and has not said that they
// do again: a check that meets the moment after a repair would find that all agrees.
func undoneRepairs(cache nodecache.Cache, now time.Time) []string {
	told, err := status.Beside(cache.Path).Read()
	if agent, running := cache.Agent(); err != nil || !running || agent.Stopped || told.Silent(now) {
		return nil
	}
	lines := told.UndoneLines()
	if len(lines) > 1 {
		lines = []string{fmt.Sprintf("%s (and %d more: `enipoolctl pool show`)", lines[0], len(told.Undone)-1)}
	}
	return lines
}

// keeper says who puts right what a check finds, and until when; "" where no agent keeps
// the node.
func keeper(cache nodecache.Cache, now time.Time) string {
	agent, running := cache.Agent()
	told, err := status.Beside(cache.Path).Read()
	switch {
	case running:
	case err != nil:
		return ""
	default: // not `pool load`: a pool that was loaded by hand soon differs from what the cloud has
		return fmt.Sprintf("start the agent, which puts it right (last heard of %s)", told.LastHeard().Local().Format(time.DateTime))
	}
	name := "the agent"
	if agent.PID != 0 {
		name = fmt.Sprintf("the agent (process %d)", agent.PID)
	}
	if agent.Stopped {
		return fmt.Sprintf("%s should, and is stopped: kill -CONT %d", name, agent.PID)
	}
	switch {
	case len(undoneRepairs(cache, now)) > 0:
		return name + " repairs it, and something on this node undoes that again and again"
	case err != nil:
		return name + " should, and has not been heard of: if that goes on look at its log"
	case told.Silent(now):
		return fmt.Sprintf("%s should, and is silent since %s: look at its log, restart it", name, told.LastHeard().Local().Format(time.TimeOnly))
	case told.Due.IsZero():
		return name + " puts it right"
	case now.After(told.Due):
		return name + " puts it right, any moment"
	}
	return fmt.Sprintf("%s puts it right, by %s at the latest", name, told.Due.Local().Format(time.TimeOnly))
}
