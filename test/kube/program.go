package kube

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/enipool/enipool/test/lab"
)

// Program is a process that a test can stop and start again.
type Program struct {
	t       testing.TB
	name    string
	log     string           // path of what it says
	command func() *exec.Cmd // made anew for each start

	// enter runs the function on a thread in the namespaces where the program
	// belongs.
	enter func(fn func() error) error

	// inNode is for processes whose parent is in another PID namespace. They end
	// with their node.
	inNode bool

	// ready returns nil once the program serves.
	ready func() error

	life atomic.Pointer[lab.Process] // the last one
}

// current returns the process that runs, or nil.
func (p *Program) current() *lab.Process {
	if p == nil || !p.life.Load().Alive() {
		return nil
	}
	return p.life.Load()
}

// Log returns the path of the file with all that the program said in its lives.
func (p *Program) Log() string { return p.log }

// Pid returns the process id as seen from outside of nodes, or 0 if the program
// does not run.
func (p *Program) Pid() int {
	if l := p.current(); l != nil {
		return l.Cmd.Process.Pid
	}
	return 0
}

// Start starts the program and waits until it serves. One that runs is left alone.
func (p *Program) Start() {
	p.t.Helper()
	if p.current() != nil {
		return
	}
	err := p.spawn()
	if err == nil && p.ready != nil {
		err = p.serves(p.life.Load())
	}
	if err != nil {
		p.t.Fatalf("start %s: %v\n%s", p.name, err, tail(p.log, 30))
	}
}

// spawn starts a process.
func (p *Program) spawn() error {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := p.command()
	cmd.Stdout, cmd.Stderr = log, log
	start := lab.Start
	if p.inNode {
		start = lab.StartFree
	}
	l, err := start(cmd, p.enter)
	if err == nil {
		p.life.Store(l)
	}
	return err
}

// serves waits until the program is ready, or says why it will not be.
func (p *Program) serves(l *lab.Process) error {
	var ended error
	err := Wait(Patience, func() error {
		select {
		case <-l.Ended:
			ended = fmt.Errorf("it ended: %v", l.Err)
			return nil
		default:
			return p.ready()
		}
	})
	return errors.Join(err, ended)
}

// Stop asks the program to end and waits for it. One that takes longer than some
// seconds is killed; an API server that has watchers does.
func (p *Program) Stop() {
	if l := p.current(); l != nil {
		l.Stop(5 * time.Second)
	}
}

// Pause stops the program where it is, as one that hangs: its connections stay open, and nobody has an answer. Resume lets it go on.
func (p *Program) Pause() { p.signal(syscall.SIGSTOP) }

// Resume ends a Pause.
func (p *Program) Resume() { p.signal(syscall.SIGCONT) }

func (p *Program) signal(s syscall.Signal) {
	p.t.Helper()
	l := p.current()
	if l == nil {
		p.t.Fatalf("%s does not run", p.name)
	}
	if err := l.Cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("send %s to %s: %v", s, p.name, err)
	}
}

// Kill ends the program without asking, and waits for it.
func (p *Program) Kill() {
	if l := p.current(); l != nil {
		l.Kill()
	}
}
