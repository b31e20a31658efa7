package status

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/enipool/enipool/pkg/mounts"
)

// File is where the agent leaves its newest status for people on the node.
type File struct{ Path string }

// Beside returns the status file of the agent that keeps the node cache at cache.
func Beside(cache string) File {
	return File{filepath.Join(filepath.Dir(cache), "agent.status.json")}
}

// refresh is how old the file gets before it is written again with nothing new
// in it but the time.
const refresh = 30 * time.Second

// Write makes the file hold s, by temporary file and rename: readers see the old
// status or the new one. If the file already says the same and its time is less
// than 30 seconds before that of s, nothing is written. One agent writes at a time.
func (f File) Write(s Status) error {
	if old, err := f.Read(); err == nil {
		if age := s.Written.Sub(old.Written); age >= 0 && age < refresh && sameButTimes(old, s) {
			return nil
		}
	}
	return f.writeAlways(s)
}

// writeAlways makes the file hold s.
func (f File) writeAlways(s Status) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("write status: %w", err)
	}
	tmp := f.Path + ".new"
	if err = replaceFile(tmp, f.Path, append(text, '\n')); err != nil {
		_ = os.Remove(tmp)
		return fmt.Errorf("write status: %w", mounts.Explain(f.Path, err))
	}
	return nil
}

func replaceFile(tmp, path string, text []byte) error {
	if err := os.WriteFile(tmp, text, 0o644); err != nil {
		return err
	}
	// Whatever the umask is: the folder decides who may read.
	if err := os.Chmod(tmp, 0o644); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

// sameButTimes tells whether x and y differ in their times alone.
func sameButTimes(x, y Status) bool {
	x.Written, x.Due = y.Written, y.Due
	a, err := json.Marshal(x)
	b, err2 := json.Marshal(y)
	return err == nil && err2 == nil && string(a) == string(b)
}

// Read returns what the agent said last. The error is fs.ErrNotExist where no
// agent has been at work since the node started.
func (f File) Read() (Status, error) {
	var s Status
	text, err := os.ReadFile(f.Path)
	if err != nil {
		return s, fmt.Errorf("read status: %w", err)
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return Status{}, fmt.Errorf("read status %s: %w", f.Path, err)
	}
	if info, err := os.Stat(f.Path); err == nil && s.Beat > 0 {
		s.Heard = info.ModTime()
	}
	return s, nil
}
