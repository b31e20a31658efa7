package watched

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Of linux/seccomp.h.
const (
	setModeFilter = 1
	newListener   = 1 << 3
	retAllow      = 0x7fff0000
	retErrno      = 0x00050000
	retNotify     = 0x7fc00000
	notifRecv     = 0xc0502100
	notifSend     = 0xc0182101
	flagContinue  = 1
)

// Load loads the number of the call.
func Load() unix.SockFilter { return load(0) }

// LoadArgument loads the lower half of an argument of the call.
func LoadArgument(i uint32) unix.SockFilter { return load(16 + 8*i) }

func load(at uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
}

// Jump goes on so many instructions behind the next one, by what was loaded: op is
// unix.BPF_JEQ, BPF_JGE or BPF_JSET.
func Jump(op uint16, k uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | op | unix.BPF_K, Jt: yes, Jf: no, K: k}
}

// Allow lets the call pass.
func Allow() unix.SockFilter { return ret(retAllow) }

// Notify has the call judged.
func Notify() unix.SockFilter { return ret(retNotify) }

// Refuse lets the call fail.
func Refuse(errno unix.Errno) unix.SockFilter { return ret(retErrno | uint32(errno)) }

func ret(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }

// install filters the calls of this process from now on, and returns the file by which the
// kernel asks.
func install(program []unix.SockFilter) (int, error) {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("give up new privileges: %w", err)
	}
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, setModeFilter, newListener, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return 0, fmt.Errorf("filter system calls: %w", errno)
	}
	return int(fd), nil
}
