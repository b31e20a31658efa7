// Package bpf is the little of bpf(2) that enipool needs, without a library: the
// plugin attaches a pinned program with it, and what it links it pays for at
// every pod's start.
package bpf

import (
	"fmt"
	"hash/fnv"
	"runtime"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Commands of bpf(2), and the numbers of its attributes; see <linux/bpf.h>.
const (
	cmdObjGet     = 7
	cmdProgAttach = 8

	attachTCXIngress = 46
)

// FD is an open program or map.
type FD int

// Close closes it. What is pinned or attached lives on.
func (fd FD) Close() { _ = unix.Close(int(fd)) }

// call makes one bpf(2) call. Attributes shorter than the kernel's are fine: it
// takes the rest as zero.
func call(cmd uintptr, attr unsafe.Pointer, size uintptr) (int, error) {
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

// Open opens what is pinned at the path.
func Open(path string) (FD, error) {
	name, err := unix.BytePtrFromString(path)
	if err != nil {
		return -1, err
	}
	attr := struct {
		path  uint64
		fd    uint32
		flags uint32
	}{path: uint64(uintptr(unsafe.Pointer(name)))}
	fd, err := call(cmdObjGet, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
	runtime.KeepAlive(name)
	if err != nil {
		return -1, fmt.Errorf("open pinned %s: %w", path, err)
	}
	return FD(fd), nil
}

// AttachIngress has the program see all that comes in by the link with the
// index, in the network namespace of the calling thread. It stays until it is
// detached or the link goes.
func AttachIngress(program FD, link int) error {
	attr := struct{ target, program, kind, flags uint32 }{uint32(link), uint32(program), attachTCXIngress, 0}
	if _, err := call(cmdProgAttach, unsafe.Pointer(&attr), unsafe.Sizeof(attr)); err != nil {
		return fmt.Errorf("attach program to link %d: %w", link, err)
	}
	return nil
}

// FileSystem is where the bpf file system is mounted on a node.
const FileSystem = "/sys/fs/bpf"

// ProgramName is the name of the pinned program in its folder.
const ProgramName = "program"

// Folder returns where the programs of the node cache at the path are pinned.
func Folder(cache string) string {
	sum := fnv.New64a()
	sum.Write([]byte(cache))
	return FileSystem + "/enipool/" + strconv.FormatUint(sum.Sum64(), 16)
}

// ProgramPath returns where the plugin finds the program.
func ProgramPath(cache string) string { return Folder(cache) + "/" + ProgramName }
