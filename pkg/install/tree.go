package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/filelock"
	"golang.org/x/sys/unix"
)

// Tree is the files of a node. All paths given to it are those on the node, wherever its file
// system is mounted here.
type Tree struct {
	// Root is where the node's file system is mounted, "" for this process's own.
	Root string

	// step is called before each change, which its error prevents: for tests of crashes.
	step func(change string) error
}

// maxLinks is how many symbolic links the kernel follows on a path.
const maxLinks = 40

// Path returns where the node's path is found from here. Links on the way to it are
// followed as on the node: an absolute one starts at Root.
func (t Tree) Path(path string) (string, error) { return t.resolve(path, false) }

// Target is Path, with the last name followed too if it is a link.
func (t Tree) Target(path string) (string, error) { return t.resolve(path, true) }

func (t Tree) resolve(path string, last bool) (string, error) {
	root := t.Root
	if root == "" {
		root = "/"
	}
	done, rest := "/", splitPath(path)
	for links := 0; len(rest) > 0; {
		next := filepath.Join(done, rest[0]) // ".." goes up, and not above "/"
		rest = rest[1:]
		to, err := os.Readlink(filepath.Join(root, next))
		if err != nil || len(rest) == 0 && !last {
			done = next // no link, or nothing there yet
			continue
		}
		if links++; links > maxLinks {
			return "", fmt.Errorf("follow %s: too many symbolic links", path)
		}
		if filepath.IsAbs(to) {
			done = "/"
		}
		rest = slices.Concat(splitPath(to), rest)
	}
	return filepath.Join(root, done), nil
}

// splitPath splits a path at its slashes.
func splitPath(path string) []string {
	return slices.DeleteFunc(strings.Split(path, "/"), func(s string) bool { return s == "" || s == "." })
}

// StateDir is where the node remembers what was installed.
const StateDir = "/var/lib/enipool"

// lockWait is how long one run waits for another. Each takes seconds at most.
const lockWait = time.Minute

// Lock keeps other runs off the node until unlock is called.
func (t Tree) Lock(ctx context.Context) (unlock func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	dir, err := t.Target(StateDir)
	for err == nil {
		if err = os.MkdirAll(dir, 0o755); err != nil {
			break
		}
		var held *os.File
		if held, err = lockDir(ctx, dir); held != nil {
			return func() {
				_ = os.Remove(dir) // if nothing came into it
				held.Close()
			}, nil
		}
	}
	return nil, fmt.Errorf("lock %s: %w", dir, withRemedy(err))
}

// lockDir locks the folder itself: a lock file in it would be left behind, or removed while another
// run waits for it. It returns nil if the folder was removed, or made again, before it was locked.
func lockDir(ctx context.Context, dir string) (*os.File, error) {
	folder, err := os.Open(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for {
		err := unix.Flock(int(folder.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			folder.Close()
			return nil, err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			folder.Close()
			other := filelock.HolderOf(dir)
			return nil, fmt.Errorf("%w: another install, uninstall or publication is at work: %s; %s", ctx.Err(), other, other.Todo())
		}
	}
	// Unlocking removes an empty folder: this run may have locked one that the next run does not find.
	mine, err := folder.Stat()
	now, err2 := os.Stat(dir)
	if err == nil && err2 == nil && os.SameFile(mine, now) {
		return folder, nil
	}
	folder.Close()
	return nil, err
}
