package cni

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestMissingRightsAreNamed(t *testing.T) {
	for _, missing := range []error{unix.EPERM, unix.EACCES} {
		if e := Error(fmt.Errorf("lock node cache: %w", missing)); !strings.Contains(e.Details, "CAP_NET_ADMIN") || e.Code != 999 {
			t.Errorf("%+v", e)
		}
	}
}
