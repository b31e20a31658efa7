package lab

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// Process is a program that was started.
type Process struct {
	Cmd   *exec.Cmd
	Ended chan struct{} // closed when it has ended
	Err   error         // of Cmd.Wait; read after Ended
}

// Do runs a function in a node's namespaces, as isolate.Namespace.Do does.
type Do func(fn func() error) error

// Start starts a program where in runs functions. It dies with this one.
func Start(cmd *exec.Cmd, in Do) (*Process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	return StartFree(cmd, in)
}

// StartFree is Start for a program that does not die with this one.
func StartFree(cmd *exec.Cmd, in Do) (*Process, error) {
	p := &Process{Cmd: cmd, Ended: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		running := false
		err := in(func() error {
			// To the kernel the parent whose death kills is the thread. It waits, and is nobody else's
			// until then: a goroutine that ends locked to its thread ends the thread.
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			if err := cmd.Start(); err != nil {
				return err
			}
			running = true
			started <- nil
			return cmd.Wait()
		})
		if !running {
			started <- err
			return
		}
		p.Err = err
		close(p.Ended)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// Alive tells whether the process runs. A nil one does not.
func (p *Process) Alive() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.Ended:
		return false
	default:
		return true
	}
}

// Kill ends the process as a crash does, if it has not ended.
func (p *Process) Kill() {
	_ = p.Cmd.Process.Kill() // it may have ended itself
	<-p.Ended
}

// Stop ends the process as a system does: one that takes longer than so much is killed,
// and false returned.
func (p *Process) Stop(patience time.Duration) (inTime bool) {
	_ = p.Cmd.Process.Signal(syscall.SIGTERM) // it may be ending itself
	select {
	case <-p.Ended:
		return true
	case <-time.After(patience):
		p.Kill()
		return false
	}
}

// Get asks for a page in a node's network, of its loopback for example.
func Get(in Do, url string) (code int, body string, err error) {
	dial := func(ctx context.Context, network, addr string) (c net.Conn, err error) {
		err = in(func() error { c, err = new(net.Dialer).DialContext(ctx, network, addr); return err })
		return c, err
	}
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, DialContext: dial}}
	resp, err := client.Get(url)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

// Fine returns nil if a page in a node's network is answered with 200.
func Fine(in Do, url string) error {
	code, body, err := Get(in, url)
	if err == nil && code != http.StatusOK {
		err = fmt.Errorf("%s: %d %s", url, code, body)
	}
	return err
}
