package firewall

import (
	"errors"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"
)

// Who flushes the ruleset while it is read is met in the midst of it: the log names that, and no function of a library.
func TestATableThatCantBeReadIsToldInPlainWords(t *testing.T) {
	for err, want := range map[error]string{
		fmt.Errorf("list sets: %w", fmt.Errorf("receiveAckAware: netlink receive: %w", unix.ENOENT)): "somebody removed it, or a part of it, while it was read",
		fmt.Errorf("list sets: netlink receive: %w", unix.EINTR):                                     "it can't be read: interrupted system call",
		errors.New("list sets: short message"):                                                       "it can't be read: list sets: short message",
	} {
		if got := whyUnread(err); got != want {
			t.Errorf("%v: %s, want %s", err, got, want)
		}
	}
}
