package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// killer builds the program that kills others at a system call; its comment says which of them
// count and why those are all.
var killer = sync.OnceValues(func() (string, error) { return helper("killat") })

// moment is when an agent is killed: at a system call, the nth that changes something.
type moment struct {
	nth   int
	after bool // not as it enters the call: when it has been told to go on
}

// never is a moment that does not come.
var never = moment{nth: 1 << 30}

func (m moment) String() string {
	if m.after {
		return fmt.Sprintf("%d after", m.nth)
	}
	return fmt.Sprintf("%d before", m.nth)
}

// doomed is an agent that is to be killed.
type doomed struct {
	*process
	folder string
}

// startDoomed starts an agent that lives on until its moment is set and comes.
func (s *site) startDoomed() doomed {
	s.t.Helper()
	program, err := killer()
	s.must(err)
	folder, err := os.MkdirTemp(s.dir, "killat")
	s.must(err)
	s.doom = []string{program, folder}
	defer func() { s.doom = nil }()
	return doomed{s.start(), folder}
}

// set lets the counting begin.
func (d doomed) set(at moment) {
	d.s.t.Helper()
	fresh := filepath.Join(d.folder, "begin.new")
	d.s.must(os.WriteFile(fresh, []byte(at.String()), 0o600))
	d.s.must(os.Rename(fresh, filepath.Join(d.folder, "begin")))
}

// calls are those that it has made since the counting began.
func (d doomed) calls() []string {
	d.s.t.Helper()
	text, err := os.ReadFile(filepath.Join(d.folder, "calls"))
	if os.IsNotExist(err) {
		return nil
	}
	d.s.must(err)
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}
