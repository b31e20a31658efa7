// Package filelock takes the lock of a file (flock(2)) and waits for it, and tells who holds it and what a person can
// do about it. TakeAlone takes one that others ask about.
package filelock

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Holder is the process that holds a lock. The kernel tells which process took it: if that has
// ended, a child may have inherited the lock.
type Holder struct {
	PID     int    // 0: the kernel shows none here
	Command string // its name, "" if the process has ended
	Stopped bool   // by a signal or by a debugger: it goes on when it is told to

	path string
}

// HolderOf returns who holds the flock(2) of the file or folder, the zero PID if it is not known.
func HolderOf(path string) Holder {
	h := Holder{path: path}
	if id, ok := fileID(path); ok {
		h.PID = findLock(readLocks(), func(l lock) bool { return !l.waits && l.file == id }).pid
	}
	if h.PID != 0 {
		h.Command, h.Stopped = readProcess(h.PID)
	}
	return h
}

// String names the process, and says if it is stopped.
func (h Holder) String() string {
	switch {
	case h.PID == 0:
		return "a process that /proc/locks does not show here"
	case h.Command == "":
		return fmt.Sprintf("a process that process %d left behind when it ended", h.PID)
	case h.Stopped:
		return fmt.Sprintf("process %d (%s), which is stopped", h.PID, h.Command)
	}
	return fmt.Sprintf("process %d (%s)", h.PID, h.Command)
}

// Todo says what to do about a holder that is in the way.
func (h Holder) Todo() string {
	switch {
	case h.PID == 0:
		return "on the node itself `fuser -v " + h.path + "` names it"
	case h.Command == "":
		return "`fuser -v " + h.path + "` names it"
	case h.Stopped:
		return fmt.Sprintf("let it go on: kill -CONT %d", h.PID)
	}
	return fmt.Sprintf("if it hangs, end it: kill %d", h.PID)
}

// BusyError says that a lock was held for too long.
type BusyError struct {
	Path   string
	Holder Holder
	Err    error // why the wait ended
}

// Busy returns the error of a wait for the lock of the file that ended because of why.
func Busy(path string, why error) *BusyError { return &BusyError{path, HolderOf(path), why} }

// Error names the process to look at, and what to do about it.
func (e *BusyError) Error() string {
	return fmt.Sprintf("lock %s: held by %s: %v; %s", e.Path, e.Holder, e.Err, e.Holder.Todo())
}

// Unwrap returns why the wait ended.
func (e *BusyError) Unwrap() error { return e.Err }

// Awaited returns which of the files' locks this process waits for, "" if for none.
func Awaited(paths ...string) string {
	locks := readLocks()
	for _, path := range paths {
		id, ok := fileID(path)
		if ok && findLock(locks, func(l lock) bool { return l.waits && l.pid == os.Getpid() && l.file == id }).pid != 0 {
			return path
		}
	}
	return ""
}

// lock is a line of /proc/locks.
type lock struct {
	waits bool // it is wanted, not held
	pid   int
	file  string // device and inode
}

func findLock(list []lock, is func(lock) bool) lock {
	for _, l := range list {
		if is(l) {
			return l
		}
	}
	return lock{}
}

// readLocks returns the flocks that this process is shown.
func readLocks() (list []lock) {
	text, err := os.ReadFile("/proc/locks")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		// 1: FLOCK  ADVISORY  WRITE 708 00:1a:4242 0 EOF
		// 1: -> FLOCK  ADVISORY  WRITE 709 00:1a:4242 0 EOF
		words := strings.Fields(line)
		waits := len(words) > 1 && words[1] == "->"
		if waits {
			words = words[1:]
		}
		if len(words) > 5 && words[1] == "FLOCK" {
			pid, _ := strconv.Atoi(words[4])
			list = append(list, lock{waits, pid, words[5]})
		}
	}
	return list
}

// fileID is a file's name in /proc/locks.
func fileID(path string) (id string, ok bool) {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return "", false
	}
	return fmt.Sprintf("%02x:%02x:%d", unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino), true
}

// readProcess returns a process's name, "" if it has ended, and whether it is stopped.
func readProcess(pid int) (command string, stopped bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	// 12 (name of any kind) T 1 ...
	begin, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if err != nil || begin < 0 || end < begin {
		return "", false
	}
	state := strings.TrimSpace(string(text[end+1:]))
	if strings.HasPrefix(state, "Z") || strings.HasPrefix(state, "X") {
		return "", false
	}
	return string(text[begin+1 : end]), strings.HasPrefix(state, "T") || strings.HasPrefix(state, "t")
}
