package nodecache

import (
	"errors"
	"fmt"

	"github.com/enipool/enipool/pkg/filelock"
)

// The ways in which a cache can be unusable. Nothing is handed out from such a
// cache; the agent, or `enipoolctl pool load`, rebuilds it from the cloud and
// the kernel.
var (
	// ErrMissing: there is no cache file.
	ErrMissing = errors.New("node cache is missing")
	// ErrDamaged: its head, size or an ENI's line can't be trusted.
	ErrDamaged = errors.New("node cache is damaged")
	// ErrVersion: a newer enipool wrote it and says that this one can't read it.
	ErrVersion = errors.New("node cache has a newer format")
	// ErrBoot: it was written before the last reboot, so its owners are gone.
	ErrBoot = errors.New("node cache is of another boot")
	// ErrOwnerTooLong: an owner's names don't fit the file's fixed lines.
	ErrOwnerTooLong = errors.New("owner does not fit a line of the node cache")
)

// Unusable tells whether err says that the cache itself must be rebuilt.
func Unusable(err error) bool {
	return errors.Is(err, ErrMissing) || errors.Is(err, ErrDamaged) || errors.Is(err, ErrVersion) || errors.Is(err, ErrBoot)
}

// BusyError is returned when the cache stayed locked for too long.
type BusyError struct {
	Path   string // the lock file
	Holder filelock.Holder
	Err    error // why the wait ended
}

// Error names the process to look at, and what to do about it.
func (e *BusyError) Error() string {
	return fmt.Sprintf("lock %s: held by %s: %v; %s", e.Path, e.Holder, e.Err, e.Holder.Todo())
}

// Unwrap returns why the wait ended.
func (e *BusyError) Unwrap() error { return e.Err }

func damaged(format string, a ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, a...))
}

// missing says that there is no cache, and with it what an agent, of whom it would be,
// says of it: most often the cloud does not answer.
func (c Cache) missing() error {
	agent, running := c.Agent()
	cure := "is the agent running on this node? `enipoolctl pool load` makes one by hand"
	said := "; the agent last said: "
	if running {
		cure, said = agentName(agent)+" makes it", " and says: "
	}
	why := c.Why()
	if why == "" {
		said = ""
	}
	return fmt.Errorf("%w: %s; %s%s%s", ErrMissing, c.Path, cure, said, why)
}
