package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"time"

	"github.com/enipool/enipool/test/lab"
	"golang.org/x/sys/unix"
)

// during returns how many microseconds of CPU time the agent took while fn ran, and
// by how much a counter of its metrics rose.
func (n *agentNode) during(counter string, fn func() error) (cpu, count float64, err error) {
	before, err := n.counter(counter)
	if err != nil {
		return 0, 0, err
	}
	time.Sleep(wakePause) // what asking took is over
	start, err := cpuTime(n.process.Cmd.Process.Pid)
	if err != nil {
		return 0, 0, err
	}
	if err := fn(); err != nil {
		return 0, 0, err
	}
	end, err := cpuTime(n.process.Cmd.Process.Pid)
	if err != nil {
		return 0, 0, err
	}
	after, err := n.counter(counter)
	if err == nil && after <= before {
		err = fmt.Errorf("the agent does not count: %s is %g", counter, after)
	}
	return float64((end - start).Nanoseconds()) / 1000, after - before, err
}

// rises waits until a counter of the agent's metrics is higher.
func (n *agentNode) rises(counter string) error {
	before, err := n.counter(counter)
	for deadline := time.Now().Add(90 * time.Second); err == nil && time.Now().Before(deadline); time.Sleep(time.Second) {
		var now float64
		if now, err = n.counter(counter); now > before {
			return nil
		}
	}
	return errors.Join(err, fmt.Errorf("the agent's %s does not rise from %g", counter, before))
}

// cpuTime is what all threads of the process took so far, to the nanosecond.
func cpuTime(pid int) (time.Duration, error) {
	// clock_getcpuclockid(3): a process's clock is its number, inverted, above three
	// bits that ask for the scheduler's count.
	const scheduler = 2
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|scheduler), &ts); err != nil {
		return 0, fmt.Errorf("read CPU time of process %d: %w", pid, err)
	}
	return time.Duration(ts.Nano()), nil
}

// counter returns a value of the agent's metrics.
func (n *agentNode) counter(name string) (float64, error) {
	_, text, err := lab.Get(n.space.do, "http://127.0.0.1:9809/metrics")
	if err != nil {
		return 0, err
	}
	return valueOf(text, name)
}

// valueOf finds a series in what Prometheus reads.
func valueOf(text, name string) (float64, error) {
	found := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` (\S+)$`).FindStringSubmatch(text)
	if found == nil {
		return 0, fmt.Errorf("the agent's metrics have no %s", name)
	}
	return strconv.ParseFloat(found[1], 64)
}

// memoryMeasure is a line of a process's status, in MB.
func memoryMeasure(path, line, what string) (measure, error) {
	m := measure{what: what, unit: "MB", command: "grep " + line + " /proc/PID/status"}
	text, err := os.ReadFile(path)
	if err != nil {
		return m, err
	}
	kib, err := kibOf(string(text), line)
	m.add(kib * 1024 / 1e6)
	return m, err
}

func kibOf(text, line string) (float64, error) {
	found := regexp.MustCompile(`(?m)^` + line + `:\s+(\d+) kB$`).FindStringSubmatch(text)
	if found == nil {
		return 0, fmt.Errorf("no %s in:\n%s", line, text)
	}
	return strconv.ParseFloat(found[1], 64)
}
