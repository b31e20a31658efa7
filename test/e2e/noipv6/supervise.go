package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// forward hands the signals that end us to the program.
func forward(p *os.Process) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT, unix.SIGHUP)
	go func() {
		for s := range signals {
			_ = p.Signal(s)
		}
	}()
}

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

// filter refuses sockets of IPv6 and has what is sent looked at. It returns the file
// by which the kernel asks.
func filter() (int, error) {
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	equal := func(k uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: yes, Jf: no, K: k}
	}
	ret := func(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }
	program := []unix.SockFilter{
		load(0), // the call's number
		equal(unix.SYS_SOCKET, 0, 3),
		load(16), // its first argument, the lower half
		equal(unix.AF_INET6, 0, 2),
		ret(retErrno | uint32(unix.EAFNOSUPPORT)),
		equal(unix.SYS_SENDTO, 1, 0),
		equal(unix.SYS_SENDMSG, 0, 1),
		ret(retNotify),
		ret(retAllow),
	}
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

// notification is struct seccomp_notif.
type notification struct {
	id         uint64
	pid, flags uint32
	nr         int32
	arch       uint32
	ip         uint64
	args       [6]uint64
}

// response is struct seccomp_notif_resp.
type response struct {
	id    uint64
	val   int64
	errno int32
	flags uint32
}

// supervise answers until the program has ended.
func supervise(listener int) {
	for {
		var n notification
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), notifRecv, uintptr(unsafe.Pointer(&n)))
		if errno == unix.EINTR || errno == unix.ENOENT { // the caller is gone
			continue
		}
		if errno != 0 {
			return
		}
		r := response{id: n.id, flags: flagContinue}
		if errno := judge(n); errno != 0 {
			r.errno, r.flags = -int32(errno), 0
		}
		_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(listener), notifSend, uintptr(unsafe.Pointer(&r)))
	}
}

// judge returns the error that the kernel would answer with, or 0. A dump is made one
// of IPv4, in the program's memory.
func judge(n notification) unix.Errno {
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", n.pid), os.O_RDWR, 0)
	if err != nil {
		return 0
	}
	defer memory.Close()
	at, size := n.args[1], n.args[2]
	if n.nr == unix.SYS_SENDMSG {
		var head, vector [16]byte
		if err := errors.Join(read(memory, at+16, head[:]), read(memory, binary.NativeEndian.Uint64(head[:]), vector[:])); err != nil {
			return 0 // no vector
		}
		at, size = binary.NativeEndian.Uint64(vector[:]), binary.NativeEndian.Uint64(vector[8:])
	}
	b := make([]byte, min(size, 1<<16))
	if read(memory, at, b) != nil || !isNetlink(int(n.pid), int(n.args[0])) {
		return 0
	}
	for start := 0; start+unix.SizeofNlMsghdr < len(b); {
		m := b[start:]
		length, kind, flags := int(binary.NativeEndian.Uint32(m)), binary.NativeEndian.Uint16(m[4:]), binary.NativeEndian.Uint16(m[6:])
		if m[unix.SizeofNlMsghdr] == unix.AF_INET6 {
			family := []byte{unix.AF_INET}
			switch dumps := flags&unix.NLM_F_DUMP == unix.NLM_F_DUMP; {
			case kind >= unix.RTM_NEWRULE && kind <= unix.RTM_GETRULE, kind == unix.RTM_NEWNEIGH, kind == unix.RTM_DELNEIGH:
				return unix.EAFNOSUPPORT
			case !dumps && kind >= unix.RTM_NEWADDR && kind <= unix.RTM_GETROUTE:
				return unix.EOPNOTSUPP
			case dumps && (kind == unix.RTM_GETADDR || kind == unix.RTM_GETROUTE):
				_, _ = memory.WriteAt(family, int64(at)+int64(start)+unix.SizeofNlMsghdr)
			}
		}
		start += max((length+3)&^3, unix.SizeofNlMsghdr)
	}
	return 0
}

func read(memory *os.File, at uint64, b []byte) error {
	_, err := memory.ReadAt(b, int64(at))
	return err
}

// leader returns the process that the thread belongs to.
func leader(thread int) int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", thread))
	_, rest, _ := strings.Cut(string(status), "\nTgid:")
	pid := 0
	if _, errNumber := fmt.Sscan(rest, &pid); err != nil || errNumber != nil {
		return thread
	}
	return pid
}

// isNetlink tells whether the thread has a netlink socket of routing at the number.
func isNetlink(thread, fd int) bool {
	process, err := unix.PidfdOpen(leader(thread), 0)
	if err != nil {
		return false
	}
	defer unix.Close(process)
	socket, err := unix.PidfdGetfd(process, fd, 0)
	if err != nil {
		return false
	}
	defer unix.Close(socket)
	domain, err1 := unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_DOMAIN)
	protocol, err2 := unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_PROTOCOL)
	return err1 == nil && err2 == nil && domain == unix.AF_NETLINK && protocol == unix.NETLINK_ROUTE
}
