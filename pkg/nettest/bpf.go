package nettest

import (
	"errors"
	"os"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/enipool/enipool/pkg/bpf"
	"golang.org/x/sys/unix"
)

// MountBPF mounts a bpf file system that goes with the test, or skips the test where
// there can't be one. The test has a mount namespace of its own: see Need.
func MountBPF(t testing.TB) {
	t.Helper()
	if err := os.MkdirAll(bpf.FileSystem, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		t.Skipf("needs %s: %v", bpf.FileSystem, err)
	}
	if err := unix.Mount("bpf", bpf.FileSystem, "bpf", 0, ""); err != nil {
		t.Skipf("needs a bpf file system: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(bpf.FileSystem, unix.MNT_DETACH) })
}

// Program loads a program, as others may have one, that has the same answer for every
// packet, or skips the test where the kernel has no programs of the kind.
func Program(t testing.TB, kind ebpf.ProgramType, at ebpf.AttachType, answer int32) *ebpf.Program {
	t.Helper()
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: kind, AttachType: at, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, answer), asm.Return()}})
	if err != nil {
		t.Skipf("this kernel has no such program: %v", err)
	}
	t.Cleanup(func() { program.Close() })
	return program
}
