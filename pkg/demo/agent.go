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

	"github.com/enipool/enipool/test/lab"
)

// agentConfig is the agents' file, with delays that fit into a demonstration: addresses are
// released after seconds and not after minutes.
const agentConfig = `node: %s
cache: %s
state: %s
vpcCIDRs: [%s]
coolDown: 2s
maxPods: 110
resync: 10s
settle: 1s
leakAge: 15s
listen: 127.0.0.1:9809
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

// delay is how long n1's pool stays as large as its pods needed it. It is longer than a slow
// machine takes to delete them all: all their addresses have cooled down by then.
const delay = 15 * time.Second

// agent is an enipool-agent process on a node.
type agent struct {
	*lab.Process
	on *labNode

	mu      sync.Mutex
	ordered bool   // the demonstration told it to end
	rest    []byte // of the log: the start of a line
	entries []entry
	hear    func(*labNode, entry)
	gone    func(*labNode, error)
}

func (n *labNode) configPath() string { return "/run/demo/" + n.name + "/agent.yaml" }
func (n *labNode) logPath() string    { return "/run/demo/" + n.name + "/agent.log" }

// configText is the configuration of the node's agent.
func (n *labNode) configText() string {
	return fmt.Sprintf(agentConfig, n.name, n.cache.Path, filepath.Join(n.folder(), "agent.json"), vpcRange, apiSocket, n.strategy, delay)
}

// writeConfig writes the configuration to where the agent reads it.
func (n *labNode) writeConfig() error {
	if err := os.MkdirAll(filepath.Dir(n.configPath()), 0o700); err != nil {
		return err
	}
	return os.WriteFile(n.configPath(), []byte(n.configText()), 0o600)
}

// startAgent starts the program in the node's network namespace. hear gets each
// line of its log. gone is called if it ends without being told to.
func (n *labNode) startAgent(program string, hear func(*labNode, entry), gone func(*labNode, error)) error {
	log, err := os.OpenFile(n.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	a := &agent{on: n, hear: hear, gone: gone}
	cmd := exec.Command(program, "--config", n.configPath())
	cmd.Stderr = io.MultiWriter(log, a)
	// A group of its own: Ctrl-C in a terminal is for us, who end it in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if a.Process, err = lab.Start(cmd, n.ns.Do); err != nil {
		return fmt.Errorf("start the agent of %s: %w", n.name, errors.Join(err, log.Close()))
	}
	go func() {
		<-a.Ended
		log.Close()
		a.tellEnded()
	}()
	n.agent = a
	return nil
}

// tellEnded tells of a process that is gone and was not told to end.
func (a *agent) tellEnded() {
	a.mu.Lock()
	ordered := a.ordered
	a.mu.Unlock()
	if !ordered {
		a.gone(a.on, fmt.Errorf("the agent of %s ended by itself: %s", a.on.name, a.Cmd.ProcessState))
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

// entriesOf returns the steps of that name in the log so far.
func (a *agent) entriesOf(msg string) []entry {
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

// orderEnd notes that the demonstration ends the process.
func (a *agent) orderEnd() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ordered = true
}

// kill ends the process as a crash would.
func (a *agent) kill() {
	a.orderEnd()
	a.Kill()
}

// stopTime is how long an agent may take to end: it waits for its calls.
const stopTime = 15 * time.Second

// stop ends the process as a service manager would, and returns an error unless it ends
// cleanly. One that has ended by itself is no error here: tellEnded has told of it.
func (a *agent) stop() error {
	if !a.Alive() {
		return nil
	}
	a.orderEnd()
	if !a.Stop(stopTime) {
		return fmt.Errorf("the agent of %s did not end within %s of SIGTERM", a.on.name, stopTime)
	}
	if a.Err != nil {
		return fmt.Errorf("the agent of %s: %w", a.on.name, a.Err)
	}
	return nil
}

// tailLines is how much of an agent's log a failure shows.
const tailLines = 20

// logTail returns the end of the node's agents' log.
func (n *labNode) logTail() string {
	text, err := os.ReadFile(n.logPath())
	if err != nil {
		return ""
	}
	lines := strings.SplitAfter(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "")
}

// waitUntil waits for a condition that the agents bring about.
func waitUntil(ctx context.Context, most time.Duration, what string, holds func() bool) error {
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
