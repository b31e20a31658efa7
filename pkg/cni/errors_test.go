package cni

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/containernetworking/cni/pkg/types"
	"github.com/enipool/enipool/pkg/filelock"
	"github.com/enipool/enipool/pkg/host"
	"github.com/enipool/enipool/pkg/hostport"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nodecache"
	"golang.org/x/sys/unix"
)

// The README's table of codes has a row for each of these.
func TestEachErrorHasItsCodeAndSaysWhatToDo(t *testing.T) {
	for _, tt := range []struct {
		err  error
		code uint
		todo string // in message or details; "" where who returns the error adds it
	}{
		{&ipam.Exhausted{}, types.ErrTryAgainLater, "enipoolctl pool show"},
		{&host.HeldError{Addr: netip.MustParseAddr("10.0.0.11"), Cause: "route 10.0.0.11 dev lo"}, types.ErrTryAgainLater, "once that is removed"},
		{&filelock.BusyError{}, types.ErrTryAgainLater, ""},
		{nodecache.ErrMissing, types.ErrTryAgainLater, ""},
		{nodecache.ErrBoot, types.ErrTryAgainLater, ""},
		{nodecache.ErrDamaged, types.ErrTryAgainLater, ""},
		{errNoSource, types.ErrTryAgainLater, "enipoolctl pool load"},
		{hostport.ErrNotReady, types.ErrTryAgainLater, "enipoolctl pool load"},
		{nodecache.ErrVersion, types.ErrIOFailure, ""},
		{unix.EROFS, types.ErrIOFailure, "remount"},
		{unix.ENOSPC, types.ErrIOFailure, "free space"},
		{unix.EPERM, types.ErrInternal, "CAP_NET_ADMIN"},
		{ipam.ErrDuplicate, CodeDuplicate, "DEL"},
		{&hostport.TakenError{}, CodeTaken, "another hostPort"},
		{errors.New("anything else"), types.ErrInternal, ""},
	} {
		got := Error(fmt.Errorf("wrapped: %w", tt.err))
		if got.Code != tt.code || !strings.Contains(got.Msg+got.Details, tt.todo) {
			t.Errorf("%v: code %d, %q, %q; want code %d and %q", tt.err, got.Code, got.Msg, got.Details, tt.code, tt.todo)
		}
	}
}
