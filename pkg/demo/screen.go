package demo

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// screen is what people read: the demonstration's own words, and the agents' as
// they come.
type screen struct {
	out *os.File

	mu   sync.Mutex
	step time.Time // when the step began
	bar  *progressbar.ProgressBar
}

// say prints a line. A progress bar makes room for it.
func (s *screen) say(format string, a ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bar != nil {
		_ = s.bar.Clear()
	}
	fmt.Fprintf(s.out, format+"\n", a...)
}

// title prints the heading of a step. The agents' times count from here.
func (s *screen) title(format string, a ...any) {
	s.mu.Lock()
	s.step, s.bar = time.Now(), nil
	s.mu.Unlock()
	s.say("\n== "+format, a...)
}

// table prints what draw writes as a whole.
func (s *screen) table(draw func(io.Writer)) {
	var text bytes.Buffer
	draw(&text)
	s.say("%s", bytes.TrimRight(text.Bytes(), "\n"))
}

// heard prints a line of an agent's log if it is of interest.
func (s *screen) heard(n *labNode, e entry) {
	if e.isWorthShowing() {
		s.at(n, e.time, e.line())
	}
}

// now says what is done to a node, among its agent's own lines.
func (s *screen) now(n *labNode, format string, a ...any) {
	s.at(n, time.Now(), fmt.Sprintf(format, a...))
}

func (s *screen) at(n *labNode, when time.Time, text string) {
	s.mu.Lock()
	since := when.Sub(s.step)
	s.mu.Unlock()
	s.say("%s %5.1f s  %s", n.name, max(since, 0).Seconds(), text)
}

// progress is a progress bar on a terminal, and nothing elsewhere.
func (s *screen) progress(count int, what string) *progressbar.ProgressBar {
	bar := progressbar.NewOptions(count, progressbar.OptionSetDescription(what), progressbar.OptionSetWriter(s.out),
		progressbar.OptionSetVisibility(term.IsTerminal(int(s.out.Fd()))), progressbar.OptionShowCount(),
		progressbar.OptionClearOnFinish(), progressbar.OptionFullWidth())
	s.mu.Lock()
	s.bar = bar
	s.mu.Unlock()
	return bar
}
