package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/enipool/enipool/test/bench/table"
)

// results is the whole of RESULTS.md.
func (b *bench) results() string {
	return fmt.Sprintf(`# Benchmark results

Written by `+"`make bench`"+` (`+"`go run ./test/bench`"+`) on %s. %s

Whole processes, timed from outside (fork, exec, wait), the contenders in turn, in one run; medians. The reference
plugins are of github.com/containernetworking/plugins v1.9.1. The floor is a Go program that makes the same netlink
calls as an ADD, or deletes the veth pair, and does nothing else.

## Targets

%s
## Measurements

%s
%s`, time.Now().Format(time.DateOnly), machine(), table.Markdown(b.report.targetTable()), table.Markdown(b.report.measureTable()), packetsNote+"\n"+talksNote)
}

// machine describes what the numbers are of, and not whose it is.
func machine() string {
	var u unix.Utsname
	kernel := "?"
	if unix.Uname(&u) == nil {
		kernel = unix.ByteSliceToString(u.Release[:])
	}
	var used unix.CPUSet
	_ = unix.SchedGetaffinity(0, &used) // can't fail for the calling thread
	return fmt.Sprintf("Linux %s, %d CPUs (%s), %s.", kernel, used.Count(), cpuModel(), runtime.Version())
}

func cpuModel() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "model not known"
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "model not known"
}
