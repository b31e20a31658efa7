package fastpath

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/enipool/enipool/pkg/bpf"
)

// The kernel can: a mount is what is missing, and an agent goes on by itself after it.
func TestAMissingBPFFileSystemIsNotBlamedOnTheKernel(t *testing.T) {
	dir := t.TempDir()
	_, err := Open(filepath.Join(dir, "enipool"))
	want := "the fast path needs a bpf file system, and there is none at " + dir + ": mount -t bpf bpf " + bpf.FileSystem
	if err == nil || err.Error() != want || errors.Is(err, ErrUnsupported) {
		t.Errorf("%v, want %s", err, want)
	}
}
