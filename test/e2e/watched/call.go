package watched

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"unsafe"

	"github.com/enipool/enipool/pkg/nlmsg"
	"golang.org/x/sys/unix"
)

// Call is a call that waits, struct seccomp_notif.
type Call struct {
	id        uint64
	Thread, _ uint32
	Number    int32
	_         uint32
	_         uint64
	Args      [6]uint64
}

// response is struct seccomp_notif_resp.
type response struct {
	id    uint64
	val   int64
	errno int32
	flags uint32
}

// Verdict is what becomes of a call: it goes on, if nothing else is said.
type Verdict struct {
	Errno unix.Errno // it fails
	Hold  bool       // it waits on, and so do all others after it
	After func()     // is called when it was told to go on
}

// supervise answers until the program has ended or a call is held.
func supervise(listener int, judge func(Call) Verdict) {
	for {
		var c Call
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), notifRecv, uintptr(unsafe.Pointer(&c)))
		if errno == unix.EINTR || errno == unix.ENOENT { // the caller is gone
			continue
		}
		if errno != 0 {
			return
		}
		v := judge(c)
		if v.Hold {
			return
		}
		r := response{id: c.id, flags: flagContinue}
		if v.Errno != 0 {
			r.errno, r.flags = -int32(v.Errno), 0
		}
		_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(listener), notifSend, uintptr(unsafe.Pointer(&r)))
		if v.After != nil {
			v.After()
		}
	}
}

// Sent returns what the call sends or writes, and where in the program's memory that stands,
// which is open.
func (c Call) Sent() (b []byte, at int64, memory *os.File, err error) {
	memory, err = os.OpenFile(fmt.Sprintf("/proc/%d/mem", c.Thread), os.O_RDWR, 0)
	if err != nil {
		return nil, 0, nil, err
	}
	start, size := c.Args[1], c.Args[2]
	if c.Number == unix.SYS_SENDMSG {
		var head, vector [16]byte
		if err := errors.Join(read(memory, start+16, head[:]), read(memory, binary.NativeEndian.Uint64(head[:]), vector[:])); err != nil {
			memory.Close()
			return nil, 0, nil, err // no vector
		}
		start, size = binary.NativeEndian.Uint64(vector[:]), binary.NativeEndian.Uint64(vector[8:])
	}
	b = make([]byte, min(size, 1<<16))
	if err := read(memory, start, b); err != nil {
		memory.Close()
		return nil, 0, nil, err
	}
	return b, int64(start), memory, nil
}

func read(memory *os.File, at uint64, b []byte) error {
	_, err := memory.ReadAt(b, int64(at))
	return err
}

// Process returns the process that the calling thread belongs to.
func (c Call) Process() int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.Thread))
	_, rest, _ := strings.Cut(string(status), "\nTgid:")
	pid := 0
	if _, errNumber := fmt.Sscan(rest, &pid); err != nil || errNumber != nil {
		return int(c.Thread)
	}
	return pid
}

// Netlink returns the protocol of the netlink socket that is the call's first argument; ok
// is false where that is no such socket.
func (c Call) Netlink() (protocol int, ok bool) {
	process, err := unix.PidfdOpen(c.Process(), 0)
	if err != nil {
		return 0, false
	}
	defer unix.Close(process)
	socket, err := unix.PidfdGetfd(process, int(c.Args[0]), 0)
	if err != nil {
		return 0, false
	}
	defer unix.Close(socket)
	domain, err1 := unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_DOMAIN)
	protocol, err2 := unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_PROTOCOL)
	return protocol, err1 == nil && err2 == nil && domain == unix.AF_NETLINK
}

// Text returns the string at an address of the program's memory.
func (c Call) Text(at uint64) (string, error) {
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", c.Thread))
	if err != nil {
		return "", err
	}
	defer memory.Close()
	b := make([]byte, unix.PathMax)
	n, err := memory.ReadAt(b, int64(at)) // the end of the memory may come before the end of b
	if end := bytes.IndexByte(b[:n], 0); end >= 0 {
		return string(b[:end]), nil
	}
	return "", fmt.Errorf("read a text of process %d: %w", c.Thread, err)
}

// Messages calls f with each netlink message of b and where it begins, up to one that is
// cut short: of what is long only the start is read.
func Messages(b []byte, f func(start int, m nlmsg.Message)) {
	for rest := b; len(rest) > 0; {
		m, next, err := nlmsg.Next(rest)
		if err != nil {
			return
		}
		f(len(b)-len(rest), m)
		rest = next
	}
}
