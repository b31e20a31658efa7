package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// agentConfig is the agents' file, with delays that fit into a demonstration: a
// pool is given back after seconds and not after minutes.
const agentConfig = `node: %s
cache: %s
state: %s
vpcCIDRs: [%s]
coolDown: 2s
maxPods: 110
resync: 10s
settle: 1s
leakAge: 15s
listen: ""
logFormat: json
cloud:
  endpoint: unix://%s
  timeout: 10s
pool:
  mode: batch
  strategy: %s
  batch: 16
  minFree: 50%%
  stable: 5s
  delay: %s
  burstWindow: 1s
  releaseInterval: 1s
`

// delay is how long n1's pool stays as large as its pods needed it. It is longer
// than a slow machine takes to delete them all: what goes back has rested by then.
const delay = 15 * time.Second

// agent is an enipool-agent process on a node.
type agent struct {
	on    *machine
	cmd   *exec.Cmd
	ended chan struct{} // closed when it is gone; err is set then
	err   error

	mu      sync.Mutex
	ordered bool // we told it to end
	rest    []byte
	entries []entry
	hear    func(*machine, entry)
	gone    func(*machine, error)
}

func (m *machine) configPath() string { return "/run/demo/" + m.name + "/agent.yaml" }
func (m *machine) logPath() string    { return "/run/demo/" + m.name + "/agent.log" }

// config is the configuration of the node's agent.
func (m *machine) config() string {
	return fmt.Sprintf(agentConfig, m.name, m.cache.Path, filepath.Join(m.folder(), "agent.json"), vpcRange, apiSocket, m.strategy, delay)
}

// configure writes the configuration to where the agent reads it.
func (m *machine) configure() error {
	if err := os.MkdirAll(filepath.Dir(m.configPath()), 0o700); err != nil {
		return err
	}
	return os.WriteFile(m.configPath(), []byte(m.config()), 0o600)
}

// startAgent starts the program in the node's network namespace. hear gets each
// line of its log. gone is called if it ends without being told to.
func (m *machine) startAgent(program string, hear func(*machine, entry), gone func(*machine, error)) error {
	log, err := os.OpenFile(m.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	a := &agent{on: m, ended: make(chan struct{}), hear: hear, gone: gone, cmd: exec.Command(program, "--config", m.configPath())}
	a.cmd.Stderr = io.MultiWriter(log, a)
	// A group of its own: Ctrl-C in a terminal is for us, who end it in order. It
	// dies with us all the same, as the thread that started it waits for it.
	a.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		defer log.Close()
		running := false
		err := m.ns.Do(func() error {
			if err := a.cmd.Start(); err != nil {
				return err
			}
			running = true
			started <- nil
			return a.cmd.Wait()
		})
		if !running {
			started <- err
			return
		}
		a.end(err)
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start the agent of %s: %w", m.name, err)
	}
	m.agent = a
	return nil
}

// end notes that the process is gone.
func (a *agent) end(err error) {
	a.mu.Lock()
	ordered := a.ordered
	a.mu.Unlock()
	a.err = err
	close(a.ended)
	if !ordered {
		a.gone(a.on, fmt.Errorf("the agent of %s ended by itself: %s", a.on.name, a.cmd.ProcessState))
	}
}

// Write takes the log in.
func (a *agent) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rest = append(a.rest, p...)
	for {
		line, rest, whole := bytes.Cut(a.rest, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		e := parseEntry(line)
		a.rest, a.entries = rest, append(a.entries, e)
		a.hear(a.on, e)
	}
}

// said returns the steps of that name in the log so far.
func (a *agent) said(msg string) []entry {
	a.mu.Lock()
	defer a.mu.Unlock()
	var list []entry
	for _, e := range a.entries {
		if e.msg == msg {
			list = append(list, e)
		}
	}
	return list
}

func (a *agent) signal(s syscall.Signal) error {
	a.mu.Lock()
	a.ordered = true
	a.mu.Unlock()
	if err := a.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal the agent of %s: %w", a.on.name, err)
	}
	return nil
}

// kill ends the process as a crash would.
func (a *agent) kill() error {
	if err := a.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-a.ended
	return nil
}

// stopTime is how long an agent may take to end: it waits for its calls.
const stopTime = 15 * time.Second

// stop ends the process as a service manager would, and returns an error unless it
// ends cleanly. Of one that is gone already gone was told.
func (a *agent) stop() error {
	select {
	case <-a.ended:
		return nil
	default:
	}
	if err := a.signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-a.ended:
	case <-time.After(stopTime):
		return errors.Join(fmt.Errorf("the agent of %s did not end within %s of SIGTERM", a.on.name, stopTime), a.kill())
	}
	if a.err != nil {
		return fmt.Errorf("the agent of %s: %w", a.on.name, a.err)
	}
	return nil
}

// tailLines is how much of an agent's log a failure shows.
const tailLines = 20

// tail returns the end of the node's agents' log.
func (m *machine) tail() string {
	text, err := os.ReadFile(m.logPath())
	if err != nil {
		return ""
	}
	lines := strings.SplitAfter(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "")
}

// until waits for a condition that the agents bring about.
func until(ctx context.Context, most time.Duration, what string, holds func() bool) error {
	ctx, stop := context.WithTimeoutCause(ctx, most, fmt.Errorf("not within %s: %s", most, what))
	defer stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
