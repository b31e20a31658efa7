package bpf

import (
	"bytes"
	"fmt"
	"runtime"
	"unsafe"
)

const (
	cmdProgLoad     = 5
	typeSchedCLS    = 3
	instructionSize = 8
)

// license is what the kernel asks of a program that calls its own functions. The
// source is the project's, under its licence.
const license = "Dual BSD/GPL"

// Load has the kernel verify code as a program that sees packets of a link, and
// take it. The program may call functions of the module whose type information
// is open as the descriptor btf, if that is not 0.
func Load(name string, code []byte, btf FD) (FD, error) {
	attr := struct {
		kind, count         uint32
		code, license       uint64
		logLevel, logSize   uint32
		log                 uint64
		kernel, flags       uint32
		name                [16]byte
		ifindex, attachType uint32
		btfFD, infoSize     uint32
		info                uint64
		infoCount, lineSize uint32
		lines               uint64
		lineCount, attachID uint32
		attachFD, coreCount uint32
		fds                 uint64
	}{kind: typeSchedCLS, count: uint32(len(code) / instructionSize), attachType: attachTCXIngress}
	copy(attr.name[:15], name)
	text := append([]byte(license), 0)
	fds := [2]int32{0, int32(btf)}
	var pin runtime.Pinner
	defer pin.Unpin()
	for at, p := range map[*uint64]*byte{&attr.code: &code[0], &attr.license: &text[0]} {
		pin.Pin(p)
		*at = uint64(uintptr(unsafe.Pointer(p)))
	}
	if btf != 0 {
		pin.Pin(&fds)
		attr.fds = uint64(uintptr(unsafe.Pointer(&fds)))
	}
	fd, err := callBPF(cmdProgLoad, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
	if err == nil {
		return FD(fd), nil
	}
	// Once more, for its reasons.
	log := make([]byte, 256<<10)
	pin.Pin(&log[0])
	attr.log, attr.logSize, attr.logLevel = uint64(uintptr(unsafe.Pointer(&log[0]))), uint32(len(log)), 1
	if fd, again := callBPF(cmdProgLoad, unsafe.Pointer(&attr), unsafe.Sizeof(attr)); again == nil {
		return FD(fd), nil
	}
	end := bytes.IndexByte(log, 0)
	lines := bytes.Split(bytes.TrimSpace(log[:max(end, 0)]), []byte("\n"))
	return -1, fmt.Errorf("load program %s: %w: %s", name, err, bytes.Join(lines[max(0, len(lines)-12):], []byte("\n")))
}
