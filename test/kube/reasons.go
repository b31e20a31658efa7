package kube

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// reasons is a test that tells again why it failed when all is over: pages of what
// the programs said come after the failure itself, and who looks at the end of a long
// output would not find it.
type reasons struct {
	testing.TB

	mu    sync.Mutex
	lines []string
}

// The most that is told again: how many failures, and how much of each.
const (
	mostReasons = 10
	mostOfOne   = 600
)

func (r *reasons) note(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	text = strings.TrimSpace(text)
	if len(text) > mostOfOne {
		text = text[:mostOfOne] + "..."
	}
	if len(r.lines) < mostReasons {
		r.lines = append(r.lines, text)
	}
}

// repeat logs what has failed.
func (r *reasons) repeat() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.lines) > 0 {
		r.Logf("%s failed:\n%s", r.Name(), strings.Join(r.lines, "\n"))
	}
}

func (r *reasons) Error(args ...any) {
	r.Helper()
	r.note(fmt.Sprintln(args...))
	r.TB.Error(args...)
}

func (r *reasons) Errorf(format string, args ...any) {
	r.Helper()
	r.note(fmt.Sprintf(format, args...))
	r.TB.Errorf(format, args...)
}

func (r *reasons) Fatal(args ...any) {
	r.Helper()
	r.note(fmt.Sprintln(args...))
	r.TB.Fatal(args...)
}

func (r *reasons) Fatalf(format string, args ...any) {
	r.Helper()
	r.note(fmt.Sprintf(format, args...))
	r.TB.Fatalf(format, args...)
}
