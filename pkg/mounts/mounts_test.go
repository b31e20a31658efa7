package mounts

import (
	"errors"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"
)

func TestTheMountOfAPathIsTheLastOneOverIt(t *testing.T) {
	const info = `20 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
21 20 0:19 / /run rw,nosuid - tmpfs tmpfs rw,size=1k
22 21 0:19 /enipool /run/enipool ro,nosuid master:2 - tmpfs tmpfs rw
23 21 0:20 / /run/eni rw - tmpfs tmpfs rw
24 20 0:21 / /with\040blank rw - xfs x ro
`
	for path, want := range map[string]string{
		"/run/enipool/node.cache": "tmpfs at /run/enipool, read-only true", "/run/other": "tmpfs at /run, read-only false",
		"/etc/x": "ext4 at /, read-only false", "/with blank/x": "xfs at /with blank, read-only false",
	} {
		m := findMount(info, path)
		if got := fmt.Sprintf("%s, read-only %t", m, m.readOnly); got != want {
			t.Errorf("%s is on %s, want %s", path, got, want)
		}
	}
}

func TestAnErrorOfTheFileSystemIsExplainedAndNoOther(t *testing.T) {
	for errno, want := range map[unix.Errno]string{
		unix.EROFS:  "is read-only: look for errors in the kernel's log (dmesg), then mount -o remount,rw /proc",
		unix.ENOSPC: "is full: free space there (df /proc)",
		unix.EDQUOT: "is full: free space there (df /proc)",
		unix.EIO:    "fails: look for errors in the kernel's log (dmesg)",
	} {
		err := fmt.Errorf("write /proc/none: %w", errno)
		got := Explain("/proc/none", err)
		if want := err.Error() + "; file system proc at /proc " + want; got.Error() != want || !errors.Is(got, errno) || !errors.As(got, new(*RefusedError)) {
			t.Errorf("%v, want %s", got, want)
		}
	}
	for _, err := range []error{nil, unix.EPERM, unix.ENOENT} {
		if got := Explain("/proc/none", err); got != err {
			t.Errorf("%v becomes %v", err, got)
		}
	}
}
