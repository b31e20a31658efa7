package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
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
	if isStopped("/proc", pid) {
		return fmt.Sprintf("%s should, and is stopped: kill -CONT %d", name, pid)
	}
	s, err := status.Beside(cache.Path).Read()
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

// isStopped tells whether somebody stopped the process, by a signal or as a debugger.
func isStopped(proc string, pid int) bool {
	text, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "stat"))
	if err != nil {
		return false
	}
	// 12 (name of any kind) T 1 ...
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	return len(fields) > 0 && strings.EqualFold(fields[0], "T")
}
