// Package bpf makes the calls of bpf(2) that the fast path's keeper makes several times
// a second, for each link of the node: one system call each, and nothing else.
package bpf

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Commands of bpf(2), and the numbers of its attributes; see <linux/bpf.h>.
const (
	cmdProgAttach = 8

	attachTCXIngress = 46
)

// FD is an open program or map.
type FD int

// Close closes it. What is pinned or attached lives on.
func (fd FD) Close() { _ = unix.Close(int(fd)) }

// callBPF makes one bpf(2) call. Attributes shorter than the kernel's are fine: it
// takes the rest as zero.
func callBPF(cmd uintptr, attr unsafe.Pointer, size uintptr) (int, error) {
	for {
		r, _, errno := unix.Syscall(unix.SYS_BPF, cmd, uintptr(attr), size)
		switch errno {
		case 0:
			return int(r), nil
		case unix.EINTR, unix.EAGAIN: // a program under verification, or a signal
			continue
		}
		return -1, errno
	}
}

// AttachIngress has the program see all that comes in by the link with the
// index, in the network namespace of the calling thread. It stays until it is
// detached or the link goes.
func AttachIngress(program FD, link int) error {
	attr := struct{ target, program, kind, flags uint32 }{uint32(link), uint32(program), attachTCXIngress, 0}
	if _, err := callBPF(cmdProgAttach, unsafe.Pointer(&attr), unsafe.Sizeof(attr)); err != nil {
		return fmt.Errorf("attach program to link %d: %w", link, err)
	}
	return nil
}

// FileSystem is where the bpf file system is mounted on a node.
const FileSystem = "/sys/fs/bpf"

// Folder returns where the programs of the node cache at the path are pinned.
func Folder(cache string) string {
	sum := fnv.New64a()
	sum.Write([]byte(cache))
	return FileSystem + "/enipool/" + strconv.FormatUint(sum.Sum64(), 16)
}
