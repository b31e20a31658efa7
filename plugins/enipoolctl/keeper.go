package main

import (
	"fmt"
	"time"

	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/pkg/status"
)

// keeper says who puts right what a check finds, and until when; "" where no agent keeps
// the node.
func keeper(cache nodecache.Cache, now time.Time) string {
	agent, running := cache.Agent()
	s, err := status.Beside(cache.Path).Read()
	switch {
	case running:
	case err != nil:
		return ""
	default: // by hand its pool would soon not be the cloud's
		return fmt.Sprintf("start the agent, which puts it right (last heard of %s)", s.LastHeard().Local().Format(time.DateTime))
	}
	name := "the agent"
	if agent.PID != 0 {
		name = fmt.Sprintf("the agent (process %d)", agent.PID)
	}
	if agent.Stopped {
		return fmt.Sprintf("%s should, and is stopped: kill -CONT %d", name, agent.PID)
	}
	switch {
	case err != nil:
		return name + " should, and has not been heard of: if that goes on look at its log"
	case s.Silent(now):
		return fmt.Sprintf("%s should, and is silent since %s: look at its log, restart it", name, s.LastHeard().Local().Format(time.TimeOnly))
	case s.Due.IsZero():
		return name + " puts it right"
	case now.After(s.Due):
		return name + " puts it right, any moment"
	}
	return fmt.Sprintf("%s puts it right, by %s at the latest", name, s.Due.Local().Format(time.TimeOnly))
}
