package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// initialPIDNamespace is how the kernel shows the pid namespace that all others are
// below, PROC_PID_INIT_INO in proc_ns.h.
const initialPIDNamespace = "pid:[4026531836]"

// pidOfNetns returns the process whose namespace the path is, as cri-dockerd and podman
// name them: /proc/1234/ns/net.
func pidOfNetns(path string) (pid int, ok bool) {
	rest, ok1 := strings.CutPrefix(filepath.Clean(path), "/proc/")
	number, ok2 := strings.CutSuffix(rest, "/ns/net")
	pid, err := strconv.Atoi(number)
	return pid, ok1 && ok2 && err == nil && pid > 0
}

// NetnsOfProcess tells whether the path names a namespace by a process in it.
func NetnsOfProcess(path string) bool {
	_, is := pidOfNetns(path)
	return is
}

// ofProcessGone tells whether the namespace with the inode, which was that of a process,
// is provably gone: no process is in it and nothing is mounted that keeps it. Only who
// sees all processes of the machine can tell: proc must show the initial pid namespace
// to somebody who may look into each.
func ofProcessGone(proc string, inode uint64) bool {
	own, err := os.Readlink(filepath.Join(proc, "self/ns/pid"))
	if err != nil || own != initialPIDNamespace || inode == 0 {
		return false
	}
	// With hidepid the processes of others are missing, the first among them.
	if _, err := os.Readlink(filepath.Join(proc, "1/ns/net")); err != nil {
		return false
	}
	name := fmt.Sprintf("net:[%d]", inode)
	entries, err := os.ReadDir(proc)
	if err != nil {
		return false
	}
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		link, err := os.Readlink(filepath.Join(proc, e.Name(), "ns/net"))
		ended := errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH)
		if err != nil && !ended || link == name {
			return false
		}
	}
	mounts, err := os.ReadFile(filepath.Join(proc, "1/mountinfo"))
	return err == nil && !strings.Contains(string(mounts), " "+name+" ")
}
