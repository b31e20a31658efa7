package cni

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestMissingRightsAreNamed(t *testing.T) {
	if e := Error(fmt.Errorf("enter network namespace: %w", unix.EPERM)); !strings.Contains(e.Details, "CAP_NET_ADMIN") || e.Code != 999 {
		t.Errorf("%+v", e)
	}
}
