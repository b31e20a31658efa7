package nodecache

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/filelock"
	"golang.org/x/sys/unix"
)

// Wait is how an ADD ended that found no free address.
type Wait struct {
	Took    time.Duration
	Outcome Outcome
}

// Outcome is what came of a wait.
type Outcome string

// The outcomes of a wait.
const (
	Served    Outcome = "served"    // it got an address
	Exhausted Outcome = "exhausted" // its time was over, or it may not wait
	Failed    Outcome = "failed"    // anything else
)

const (
	// maxWaits limits the file where no agent reads it.
	maxWaits = 1 << 20
	// waitsTries is how often a lock is tried, a millisecond apart, that is held for microseconds.
	waitsTries = 5
)

func (c Cache) waitsFile() string { return c.Path + ".waits" }

// RecordWait tells the agent how an ADD's wait ended. Where no agent reads the file it stops at
// 1 MiB: later waits are dropped.
func (c Cache) RecordWait(w Wait) error {
	f, err := c.openWaits(os.O_CREATE | os.O_APPEND | os.O_WRONLY)
	if err != nil {
		return fmt.Errorf("record wait: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && info.Size() < maxWaits {
		_, err = fmt.Fprintf(f, "%d %s\n", w.Took.Milliseconds(), w.Outcome)
	}
	if err != nil {
		return fmt.Errorf("record wait: %w", err)
	}
	return nil
}

// TakeWaits returns the waits that ended since it was called last, oldest first. Lines
// that can't be read are left out.
func (c Cache) TakeWaits() ([]Wait, error) {
	info, err := os.Stat(c.waitsFile())
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("take waits: %w", err)
	}
	f, err := c.openWaits(os.O_RDWR)
	if err != nil {
		return nil, fmt.Errorf("take waits: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 2*maxWaits))
	if err == nil {
		err = f.Truncate(0)
	}
	if err != nil {
		return nil, fmt.Errorf("take waits: %w", err)
	}
	var list []Wait
	for line := range strings.Lines(string(text)) {
		if w, ok := decodeWait(line); ok {
			list = append(list, w)
		}
	}
	return list, nil
}

// openWaits opens and locks the file, so that nothing is written between the reading of
// it and its emptying.
func (c Cache) openWaits(flag int) (*os.File, error) {
	f, err := os.OpenFile(c.waitsFile(), flag|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	for range waitsTries {
		if err = filelock.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != unix.EWOULDBLOCK {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func decodeWait(line string) (w Wait, ok bool) {
	var ms int64
	n, err := fmt.Sscanf(strings.TrimSpace(line), "%d %s", &ms, &w.Outcome)
	w.Took = time.Duration(ms) * time.Millisecond
	return w, err == nil && n == 2 && ms >= 0 && (w.Outcome == Served || w.Outcome == Exhausted || w.Outcome == Failed)
}
