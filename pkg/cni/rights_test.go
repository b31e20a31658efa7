package cni

import (
	"fmt"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/mounts"
	"golang.org/x/sys/unix"
)

func TestMissingRightsAreNamed(t *testing.T) {
	for _, missing := range []error{unix.EPERM, unix.EACCES} {
		if e := Error(fmt.Errorf("lock node cache: %w", missing)); !strings.Contains(e.Details, "CAP_NET_ADMIN") || e.Code != 999 {
			t.Errorf("%+v", e)
		}
	}
}

// 11 would say "try again", which helps nobody.
func TestAFilterThatMayNotBeReadIsAMissingRight(t *testing.T) {
	e := Error(cutOff(nil, fmt.Errorf("look up an element: %w", unix.EPERM)))
	if e.Code != 999 || !strings.Contains(e.Msg, "lacks CAP_NET_ADMIN") || strings.Contains(e.Msg, "packet filter") || !strings.Contains(e.Details, "CAP_NET_ADMIN") {
		t.Errorf("%+v", e)
	}
}

func TestAFileSystemThatRefusesTellsWhatToDo(t *testing.T) {
	for refused, want := range map[error]string{unix.EROFS: "read-only", unix.ENOSPC: "full"} {
		err := mounts.Explain("/run/enipool/x", fmt.Errorf("remove record of a at /run/enipool/x: %w", refused))
		if e := Error(err); e.Code != 5 || !strings.Contains(e.Msg, want+":") {
			t.Errorf("%+v", e)
		}
	}
}
