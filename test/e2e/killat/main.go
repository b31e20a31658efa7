// Command killat kills a program as one of its threads enters a system call:
//
//	killat FOLDER PROGRAM ARGUMENT...
//
// A file "begin" in the folder says which: "12 before" is the twelfth call from when the file
// came, "12 after" is when that call has been told to go on. The number is counted over
// all threads, in the order in which the calls come; what other threads are about to do
// in that moment, they don't do any more. Each call that counts becomes a line of the file
// "calls". Those count which change something outside the process: a program that is killed
// at another one leaves the same behind as one that is killed at the next of these, but for
// what others do meanwhile. In detail:
//
//   - Of files: writes, but to what it inherited (the log); names that are made, changed or
//     removed, truncation, modes, owners, times; syncs, which promise something.
//   - Of sockets: everything that is sent, but what asks the kernel for something (dumps of
//     routes, rules, links, sockets, nftables).
//   - ioctl, bpf and mounts.
//
// Not among them are reads, memory, signals and threads, nor what ends with the process and
// so is the same for others whether it came to it or not: locks, connections, bound
// addresses and their end; nor what wakes the Go runtime's own poller.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/enipool/enipool/test/e2e/watched"
	"golang.org/x/sys/unix"
)

func main() {
	k := &killer{begin: filepath.Join(os.Args[1], "begin"), calls: filepath.Join(os.Args[1], "calls")}
	watched.Main(watched.Watch{Filter: filter(), Program: os.Args[2:], Judge: k.judge,
		Started: func(p *os.Process) { k.process = p }})
}

// counted are the calls that may count, by their numbers.
var counted = map[int32]string{
	unix.SYS_WRITE: "write", unix.SYS_WRITEV: "writev", unix.SYS_PWRITE64: "pwrite64", unix.SYS_PWRITEV: "pwritev",
	unix.SYS_OPENAT: "openat", unix.SYS_FTRUNCATE: "ftruncate", unix.SYS_FALLOCATE: "fallocate",
	unix.SYS_RENAMEAT: "renameat", unix.SYS_RENAMEAT2: "renameat2", unix.SYS_UNLINKAT: "unlinkat", unix.SYS_MKDIRAT: "mkdirat",
	unix.SYS_LINKAT: "linkat", unix.SYS_SYMLINKAT: "symlinkat", unix.SYS_FCHMOD: "fchmod", unix.SYS_FCHMODAT: "fchmodat",
	unix.SYS_FCHOWN: "fchown", unix.SYS_FCHOWNAT: "fchownat", unix.SYS_UTIMENSAT: "utimensat",
	unix.SYS_FSYNC: "fsync", unix.SYS_FDATASYNC: "fdatasync",
	unix.SYS_SENDTO: "sendto", unix.SYS_SENDMSG: "sendmsg", unix.SYS_SENDMMSG: "sendmmsg",
	unix.SYS_IOCTL: "ioctl", unix.SYS_BPF: "bpf", unix.SYS_MOUNT: "mount", unix.SYS_UMOUNT2: "umount2",
}

// filter has the calls judged that may count.
func filter() []unix.SockFilter {
	program := []unix.SockFilter{watched.Load(),
		watched.Jump(unix.BPF_JEQ, unix.SYS_OPENAT, 0, 3),
		watched.LoadArgument(2),
		watched.Jump(unix.BPF_JSET, unix.O_CREAT|unix.O_TRUNC, 1, 0), // to the next load of the number
		watched.Allow(),
		watched.Load(),
		watched.Jump(unix.BPF_JEQ, unix.SYS_WRITE, 0, 4),
		watched.LoadArgument(0),
		watched.Jump(unix.BPF_JEQ, watched.Talk, 1, 0),
		watched.Jump(unix.BPF_JGE, 3, 1, 0),
		watched.Allow(),
		watched.Load(),
	}
	for number := range counted {
		program = append(program, watched.Jump(unix.BPF_JEQ, uint32(number), 0, 1), watched.Notify())
	}
	return append(program, watched.Allow())
}

// killer counts the calls of a program and kills it.
type killer struct {
	begin, calls string
	process      *os.Process
	at, count    int // at is 0 as long as nothing is counted
	after        bool
	dying        atomic.Bool
}

func (k *killer) judge(c watched.Call) (v watched.Verdict) {
	if c.Process() != k.process.Pid || k.at == 0 && !k.begun() {
		return v
	}
	what := describe(c)
	if what == "" {
		return v
	}
	k.count++
	if err := k.note(what); err != nil {
		fmt.Fprintln(os.Stderr, "killat:", err)
		k.kill()
		return watched.Verdict{Hold: true}
	}
	switch {
	case k.count < k.at:
	case k.count > k.at || !k.after:
		k.kill()
		v.Hold = true
	default: // as soon as whom it was sent to may have it, or at the next call
		v.After = func() { time.AfterFunc(2*time.Millisecond, k.kill) }
	}
	return v
}

// begun looks for what was wanted.
func (k *killer) begun() bool {
	text, err := os.ReadFile(k.begin)
	if err != nil {
		return false
	}
	var when string
	if _, err := fmt.Sscan(string(text), &k.at, &when); err != nil {
		return false
	}
	k.after = when == "after"
	return true
}

func (k *killer) note(what string) error {
	f, err := os.OpenFile(k.calls, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, what)
	return errors.Join(err, f.Close())
}

func (k *killer) kill() {
	if !k.dying.Swap(true) {
		_ = k.process.Kill()
	}
}
