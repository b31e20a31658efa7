package bpf

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	cmdInfoByFD    = 15
	cmdProgQuery   = 16
	cmdLinkByID    = 30
	cmdNextLink    = 31
	linkNetfilter  = 10
	mostProgsAsked = 8
)

// IngressPrograms returns the ids of the programs that see what comes in by the link
// with the index, in their order, in the network namespace of the calling thread. Of
// a long list it returns the beginning. A link that is gone has none.
func IngressPrograms(link int) ([]uint32, error) {
	var ids [mostProgsAsked]uint32
	attr := struct {
		target, kind, flags, attachFlags uint32
		ids                              uint64
		count, _                         uint32
		flagsOfEach, links, linkFlags    uint64
		revision                         uint64
	}{target: uint32(link), kind: attachTCXIngress, count: mostProgsAsked}
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(&ids)
	attr.ids = uint64(uintptr(unsafe.Pointer(&ids)))
	_, err := callBPF(cmdProgQuery, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
	switch {
	case errors.Is(err, unix.ENODEV):
		return nil, nil
	case err != nil && !errors.Is(err, unix.ENOSPC): // that is a longer list
		return nil, fmt.Errorf("list programs of link %d: %w", link, err)
	}
	return ids[:min(attr.count, mostProgsAsked)], nil
}

// NextLink returns the id of the bpf link after the one with the id, false if there
// is none. It takes CAP_SYS_ADMIN.
func NextLink(after uint32) (id uint32, ok bool, err error) {
	attr := struct{ after, next, flags uint32 }{after: after}
	_, err = callBPF(cmdNextLink, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
	if errors.Is(err, unix.ENOENT) {
		return 0, false, nil
	}
	return attr.next, err == nil, err
}

// NetfilterLink is a program at a hook of netfilter.
type NetfilterLink struct{ Family, Hook uint32 }

// ReadNetfilterLink tells where the bpf link with the id hangs. ok is false if it is
// no link to netfilter. A link that is just being made is unix.EAGAIN, one that is
// gone unix.ENOENT.
func ReadNetfilterLink(id uint32) (at NetfilterLink, ok bool, err error) {
	open := struct{ id, next, flags uint32 }{id: id}
	// Not by call, which waits for what is interrupted: here EAGAIN is an answer.
	fd, _, errno := unix.Syscall(unix.SYS_BPF, cmdLinkByID, uintptr(unsafe.Pointer(&open)), unsafe.Sizeof(open))
	if errno != 0 {
		return at, false, errno
	}
	defer FD(fd).Close()
	var info struct {
		kind, id, program, _             uint32
		family, hook, priority, hookFlag uint32
		_                                [32]byte
	}
	attr := struct {
		fd, size uint32
		info     uint64
	}{fd: uint32(fd), size: uint32(unsafe.Sizeof(info))}
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(&info)
	attr.info = uint64(uintptr(unsafe.Pointer(&info)))
	if _, err := callBPF(cmdInfoByFD, unsafe.Pointer(&attr), unsafe.Sizeof(attr)); err != nil {
		return at, false, err
	}
	return NetfilterLink{Family: info.family, Hook: info.hook}, info.kind == linkNetfilter, nil
}
