package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"time"
)

// agentTest is the compiled test of this package among the programs.
const agentTest = "bench.test"

// The targets of an agent that rests.
const (
	mostMemory  = 44   // MB
	mostIdleCPU = 1000 // µs
)

// wakes is how often the agent is woken in a round. They are further apart than
// what it takes for one.
const (
	wakes     = 50
	wakePause = 125 * time.Millisecond
)

// idleRow measures the agent of a node whose pods all run: its memory, and its CPU
// time when it is woken for nothing and when it compares everything.
func (b *bench) idleRow(n *agentNode) error {
	path := "/proc/" + strconv.Itoa(n.process.Cmd.Process.Pid) + "/status"
	busy, err := memoryMeasure(path, "VmRSS", "memory of the agent, 250 pods just came")
	if err != nil {
		return err
	}
	wake, err := b.wakeRounds(n)
	if err != nil {
		return err
	}
	full, err := b.resyncRound(n)
	if err != nil {
		return err
	}
	idle, err := memoryMeasure(path, "VmRSS", "memory of the agent, 250 pods, idle")
	if err != nil {
		return err
	}
	most, err := memoryMeasure(path, "VmHWM", "memory of the agent, 250 pods, the most")
	if err != nil {
		return err
	}
	var targets []target
	for _, m := range []measure{busy, idle, most} {
		targets = append(targets, target{of: m, want: mostMemory})
	}
	b.report.add([]measure{busy, idle, most, wake, full}, append(targets, target{of: wake, shown: true}, target{of: full, shown: true})...)
	return nil
}

// wakeRounds returns the CPU time of the process for each tick that a wake causes.
func (b *bench) wakeRounds(n *agentNode) (measure, error) {
	m := measure{what: "CPU of the agent a wake for nothing, 250 pods", unit: "µs", command: fmt.Sprintf("%d writes to node.cache, %s apart", wakes, wakePause)}
	for round := range b.longRuns() {
		b.round("wake the agent for nothing", round+1, b.longRuns())
		cpu, ticks, err := n.during("enipool_tick_seconds_count", func() error {
			for range wakes {
				if err := touch(n.cache); err != nil {
					return err
				}
				time.Sleep(wakePause)
			}
			return nil
		})
		if err != nil {
			return m, err
		}
		m.add(cpu / ticks)
	}
	return m, nil
}

// touch writes a byte of the file that is there already: a watcher can't tell.
func touch(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	var first [1]byte
	if _, err := f.ReadAt(first[:], 0); err != nil {
		return err
	}
	_, err = f.WriteAt(first[:], 0)
	return err
}

// resyncRound returns the CPU time of the process for each complete comparison. It
// lets the agent make many of them in a short time.
func (b *bench) resyncRound(n *agentNode) (measure, error) {
	m := measure{what: "CPU of the agent a comparison with cloud and kernel, 250 pods", unit: "µs", command: "enipool-agent --config agent.yaml (resync: 1s)"}
	if err := n.configure("resync: 1s\n"); err != nil {
		return m, err
	}
	length := time.Duration(b.pick(60, 10)) * time.Second
	b.progress("let the agent compare everything, a minute at most until it begins and then %s", length)
	const compared = `enipool_cloud_calls_total{op="Describe",outcome="ok"}`
	if err := n.rises(compared); err != nil {
		return m, err
	}
	cpu, times, err := n.during(compared, func() error {
		time.Sleep(length)
		return nil
	})
	if err == nil {
		m.add(cpu / times)
	}
	return m, err
}

var idleTickLine = regexp.MustCompile(`(?m)^BenchmarkIdleTick\S*\s.*?([\d.]+) cpu-µs/tick`)

// idleTickRow runs the Go benchmark of a tick that finds nothing to do.
func (b *bench) idleTickRow() error {
	b.progress("idle ticks, %d times", b.longRuns())
	m := measure{what: "CPU of an idle tick, 250 of 320 addresses used", unit: "µs", command: "go test -run '^$' -bench IdleTick -benchtime 1000x ./test/bench"}
	cmd := exec.Command(b.bin.path(agentTest), "-test.run=^$", "-test.bench=IdleTick", "-test.benchtime=1000x", fmt.Sprintf("-test.count=%d", b.longRuns()))
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("benchmark of the idle tick: %w\n%s", err, out)
	}
	for _, found := range idleTickLine.FindAllStringSubmatch(string(out), -1) {
		v, err := strconv.ParseFloat(found[1], 64)
		if err != nil {
			return fmt.Errorf("benchmark of the idle tick: %w in %q", err, found[0])
		}
		m.add(v)
	}
	if len(m.values) == 0 {
		return fmt.Errorf("benchmark of the idle tick: no result in:\n%s", out)
	}
	b.report.add([]measure{m}, target{of: m, want: mostIdleCPU})
	return nil
}
