package nodecache

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

func TestAnErrorOfTheFileSystemSaysWhichItIsAndWhatToDo(t *testing.T) {
	c := Cache{Path: "/proc/self/none"}
	for _, errno := range []unix.Errno{unix.EROFS, unix.ENOSPC, unix.EDQUOT, unix.EIO} {
		var refused *UnwritableError
		if err := c.unwritable("write", errno); !errors.As(err, &refused) || !errors.Is(err, errno) || refused.Todo == "" || Unusable(err) {
			t.Errorf("%v: %v", errno, err)
		}
	}
	for err, want := range map[error]string{unix.EPERM: "write node cache: operation not permitted", ErrDamaged: "node cache is damaged"} {
		if got := c.unwritable("write", err); !errors.Is(got, err) || got.Error() != want {
			t.Errorf("%v becomes %v", err, got)
		}
	}
}
