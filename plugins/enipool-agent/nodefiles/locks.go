package nodefiles

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/filelock"
	"github.com/enipool/enipool/pkg/nodecache"
	"golang.org/x/sys/unix"
)

// Locks keep a second agent off the node: two would work against each other. Each
// of the two files must be one agent's.
type Locks struct {
	paths []string
	held  map[string]*os.File
}

// NewLocks returns the locks of the agent with that configuration, none of them taken.
func NewLocks(conf agentconf.Config) *Locks {
	return &Locks{
		paths: []string{nodecache.Cache{Path: conf.Cache}.AgentLock(), conf.State + ".lock"},
		held:  map[string]*os.File{},
	}
}

// TakeAll takes all of the locks that are not held.
func (n *Locks) TakeAll() error {
	for _, path := range n.paths {
		if n.held[path] != nil {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return fmt.Errorf("%w; the keys cache and state say where the agent's files are", err)
		}
		l, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o600)
		if err != nil {
			return err
		}
		if err := filelock.TakeAlone(int(l.Fd()), probed); err != nil {
			_ = l.Close()
			if errors.Is(err, unix.EWOULDBLOCK) {
				return &otherAgentError{filelock.HolderOf(path), path}
			}
			return fmt.Errorf("lock %s: %w", path, err)
		}
		n.held[path] = l
	}
	return nil
}

// probed is for how long enipoolctl and ADDs, which ask whether an agent runs, may keep one from
// its lock: each shares it for less than a millisecond.
const probed = 2 * time.Second

// takeover is how often it is tried to take what another agent still has.
const takeover = 500 * time.Millisecond

// WaitForAll takes all of the locks when no other agent has one of them any more, or ends with ctx.
// With a surge of a DaemonSet's rollout the next agent begins before the last one ends.
// waited tells that the configuration may be another one by now.
func (n *Locks) WaitForAll(ctx context.Context, log *slog.Logger) (waited bool, err error) {
	for {
		other := (*otherAgentError)(nil)
		if err := n.TakeAll(); !errors.As(err, &other) {
			return waited, err
		}
		n.ReleaseAll() // it may be another one that waits for this
		if !waited {
			log.Warn("another agent keeps this node; this one waits until that ends", "holder", other.holder.String(), "lock", other.path)
		}
		waited = true
		select {
		case <-ctx.Done():
			return waited, nil
		case <-time.After(takeover):
		}
	}
}

// ReleaseAll gives back what is held.
func (n *Locks) ReleaseAll() {
	for path := range n.held {
		n.unlockPath(path)
	}
}

func (n *Locks) unlockPath(path string) {
	_ = unix.Flock(int(n.held[path].Fd()), unix.LOCK_UN) // a program that is being started may have the file too
	_ = n.held[path].Close()
	delete(n.held, path)
}

// dropLost gives back the locks whose files are not at their paths any more, and returns
// the paths: such a lock keeps nobody off.
func (n *Locks) dropLost() (lost []string) {
	for _, path := range n.paths {
		l := n.held[path]
		if l == nil {
			continue
		}
		have, err := l.Stat()
		if at, look := os.Stat(path); err == nil && look == nil && os.SameFile(have, at) {
			continue
		}
		n.unlockPath(path)
		lost = append(lost, path)
	}
	return lost
}

// otherAgentError is returned where another agent keeps the node.
type otherAgentError struct {
	holder filelock.Holder
	path   string
}

func (e *otherAgentError) Error() string {
	return fmt.Sprintf("another agent keeps this node: %s holds %s; stop it first", e.holder, e.path)
}
