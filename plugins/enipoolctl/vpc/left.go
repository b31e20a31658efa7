package vpc

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/enipool/enipool/pkg/config/lastgood"
)

// removeLeft removes what a server has left that was killed: its namespaces, if they are of this machine, and its files but the log.
func removeLeft(at *place) error {
	left, err := readServed(at)
	if err != nil {
		return err
	}
	var errs []error
	if left.PID != 0 && !left.Sandbox {
		for _, name := range append([]string{"vpc", "internet"}, left.Nodes...) {
			errs = append(errs, left.namespace(name).Remove())
		}
	}
	for _, name := range left.Nodes {
		errs = append(errs, at.removeLasting(name))
	}
	for _, name := range append([]string{"serve.json", "vpc.sock"}, left.Nodes...) {
		errs = append(errs, os.RemoveAll(at.pathOf(name)))
	}
	return errors.Join(errs...)
}

// removeLasting removes what a node's agent keeps over a reboot, which does not lie in the folder: its files alone, as others may have some there.
func (at *place) removeLasting(node string) error {
	kept := lastgood.Durable(at.statePath(node), "").Path
	folder := filepath.Dir(kept)
	if folder == at.pathOf(node) {
		return nil
	}
	for _, file := range []string{kept, lastgood.Seen(at.statePath(node))} {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	_ = os.Remove(folder) // with the last of them
	_ = os.Remove(filepath.Dir(folder))
	return nil
}

// How long programs on a node may take to end by themselves, and after that.
const (
	politeTime = 5 * time.Second
	killedTime = 2 * time.Second
)

// endPrograms ends what still runs on the nodes, such as an agent that was started by hand: it would keep the network of a node that is gone, and the lock of
// the next one's files. Only the server itself does so: the number of one that was killed, and with it its namespaces' names, may be another's by now.
func (told served) endPrograms() error {
	for _, by := range []struct {
		signal syscall.Signal
		within time.Duration
	}{{syscall.SIGTERM, politeTime}, {syscall.SIGKILL, killedTime}} {
		list, err := told.programs()
		for _, pid := range list {
			_ = syscall.Kill(pid, by.signal) // it may have ended meanwhile
		}
		for end := time.Now().Add(by.within); err == nil && len(list) > 0 && time.Now().Before(end); {
			time.Sleep(20 * time.Millisecond)
			list, err = told.programs()
		}
		if err != nil || len(list) == 0 {
			return err
		}
	}
	return nil
}

// programs returns the processes in the network of a node. The server itself is in none.
func (told served) programs() (list []int, err error) {
	nodes := map[uint64]bool{}
	for _, name := range told.Nodes {
		if at, found := networkAt(told.namespace(name).Path()); found {
			nodes[at] = true
		}
	}
	if len(nodes) == 0 {
		return nil, nil
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		if at, found := networkAt(filepath.Join("/proc", e.Name(), "ns/net")); found && nodes[at] {
			list = append(list, pid)
		}
	}
	return list, nil
}

// networkAt returns the number of the network namespace that a file stands for.
func networkAt(path string) (uint64, bool) {
	var st syscall.Stat_t
	if syscall.Stat(path, &st) != nil {
		return 0, false
	}
	return st.Ino, true
}
