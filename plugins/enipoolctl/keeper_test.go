package main

import (
	"os/exec"
	"syscall"
	"testing"
	"time"
)

func TestAStoppedProcessIsToldFromOneThatWorks(t *testing.T) {
	c := exec.Command("sleep", "300")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Process.Kill(); _ = c.Wait() }()
	for _, tt := range []struct {
		signal syscall.Signal
		want   bool
	}{{syscall.SIGSTOP, true}, {syscall.SIGCONT, false}} {
		if err := c.Process.Signal(tt.signal); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(10 * time.Second); isStopped("/proc", c.Process.Pid) != tt.want; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("after %s: stopped %t", tt.signal, !tt.want)
			}
		}
	}
	if isStopped(t.TempDir(), 1) {
		t.Error("a process that is not there is stopped")
	}
}
