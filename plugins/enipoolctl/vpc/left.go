package vpc

import (
	"errors"
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
		errs = append(errs, left.endPrograms())
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

// removeLasting removes what a node's agent keeps over a reboot, which does not lie in the folder.
func (at *place) removeLasting(node string) error {
	folder := filepath.Dir(lastgood.Lasting(at.statePath(node)))
	if folder == at.pathOf(node) {
		return nil
	}
	err := os.RemoveAll(folder)
	_ = os.Remove(filepath.Dir(folder)) // with the last of them, if it is empty then
	return err
}

// How long programs on a node may take to end by themselves, and after that.
const (
	politeTime = 5 * time.Second
	killedTime = 2 * time.Second
)

// endPrograms ends what still runs on the nodes, such as an agent that was started by hand: it would keep the network of a node that is gone, and the lock of
// the next one's files.
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
