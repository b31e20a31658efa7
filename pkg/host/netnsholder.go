package host

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// NetnsHolder says what keeps a namespace alive whose name is gone, as far as this
// process sees it: processes in it, or another name. Open files and sockets keep one too,
// and are not looked for.
func NetnsHolder(inode uint64) string { return holderIn("/proc", inode) }

const nobodySeen = "no process is seen in it: a socket or an open file keeps it, or the kernel is about to remove it"

func holderIn(proc string, inode uint64) string {
	if inode == 0 {
		return nobodySeen
	}
	name := fmt.Sprintf("net:[%d]", inode)
	entries, _ := os.ReadDir(proc)
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if link, err := os.Readlink(filepath.Join(proc, e.Name(), "ns/net")); err == nil && link == name {
			pids = append(pids, pid)
		}
	}
	if len(pids) > 0 {
		slices.Sort(pids)
		first := strconv.Itoa(pids[0])
		command, _ := os.ReadFile(filepath.Join(proc, first, "comm"))
		text := fmt.Sprintf("process %s (%s)", first, strings.TrimSpace(string(command)))
		if n := len(pids) - 1; n > 0 {
			return fmt.Sprintf("%s and %d more are in it", text, n)
		}
		return text + " is in it"
	}
	if path := mountOf(proc, name); path != "" {
		return "it is mounted at " + path
	}
	return nobodySeen
}

// mountOf returns where the first process sees the namespace mounted, "" for nowhere.
func mountOf(proc, name string) string {
	mounts, _ := os.ReadFile(filepath.Join(proc, "1/mountinfo"))
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 4 && f[3] == name {
			return f[4]
		}
	}
	return ""
}
