package nodecache

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

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
