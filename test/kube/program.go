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

	life atomic.Pointer[life] // the last one
}

// life is one process of a program.
type life struct {
	process *os.Process
	ended   chan struct{}
	err     error // of Wait; read after ended
}

// current returns the process that runs, or nil.
func (p *Program) current() *life {
	if p == nil || p.life.Load() == nil {
		return nil
	}
	l := p.life.Load()
	select {
	case <-l.ended:
		return nil
	default:
		return l
	}
}

// Log returns the path of the file with all that the program said in its lives.
func (p *Program) Log() string { return p.log }

// Pid returns the process id as seen from outside of nodes, or 0 if the program
// does not run.
func (p *Program) Pid() int {
	if l := p.current(); l != nil {
		return l.process.Pid
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

// spawn starts a process that dies with this one.
func (p *Program) spawn() error {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := p.command()
	cmd.Stdout, cmd.Stderr = log, log
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	if !p.inNode {
		cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	}
	l := &life{ended: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		defer close(l.ended)
		err := p.enter(func() error {
			err := cmd.Start()
			started <- err
			if err == nil {
				// The parent whose death kills is the thread, which therefore waits.
				l.err = cmd.Wait()
			}
			return nil
		})
		if err != nil {
			started <- err
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	l.process = cmd.Process
	p.life.Store(l)
	return nil
}

// serves waits until the program is ready, or says why it will not be.
func (p *Program) serves(l *life) error {
	var ended error
	err := Wait(patience, func() error {
		select {
		case <-l.ended:
			ended = fmt.Errorf("it ended: %v", l.err)
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
	l := p.current()
	if l == nil {
		return
	}
	_ = l.process.Signal(syscall.SIGTERM) // it may be ending itself
	select {
	case <-l.ended:
	case <-time.After(5 * time.Second):
		p.Kill()
	}
}

// Kill ends the program without asking, and waits for it.
func (p *Program) Kill() {
	if l := p.current(); l != nil {
		_ = l.process.Kill() // it may have ended itself
		<-l.ended
	}
}
