package main

import (
	"fmt"
	"time"

	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/pkg/status"
)

// keeper says who puts right what a check finds, and until when; "" where no agent runs.
func keeper(cache nodecache.Cache, now time.Time) string {
	pid, running := cache.Agent()
	if !running {
		return ""
	}
	name := "the agent"
	if pid != 0 {
		name = fmt.Sprintf("the agent (process %d)", pid)
	}
	s, err := status.Beside(cache.Path).Read()
	switch {
	case err != nil || s.Due.IsZero():
		return name + " puts it right"
	case now.Sub(s.Written) > s.Late():
		return fmt.Sprintf("%s should, and is silent since %s: look at its log, restart it", name, s.Written.Local().Format(time.TimeOnly))
	case now.After(s.Due):
		return name + " puts it right, any moment"
	}
	return fmt.Sprintf("%s puts it right, by %s at the latest", name, s.Due.Local().Format(time.TimeOnly))
}
