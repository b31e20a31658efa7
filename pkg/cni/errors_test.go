package cni

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/containernetworking/cni/pkg/types"
	"github.com/enipool/enipool/pkg/filelock"
	"github.com/enipool/enipool/pkg/host"
	"github.com/enipool/enipool/pkg/hostport"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/mounts"
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
		{unix.EROFS, types.ErrIOFailure, ""},
		{&os.PathError{Op: "write", Path: "/proc/none", Err: unix.EROFS}, types.ErrIOFailure, "mount -o remount,rw /proc"},
		{&os.PathError{Op: "write", Path: "/proc/none", Err: unix.ENOSPC}, types.ErrIOFailure, "file system proc at /proc is full: free space there (df /proc)"},
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

// Where the message says which file system refused and what to do, details don't say it again.
func TestARefusalOfTheFileSystemIsExplainedOnce(t *testing.T) {
	full := &os.PathError{Op: "write", Path: "/proc/none", Err: unix.ENOSPC}
	for _, err := range []error{full, fmt.Errorf("write record: %w", mounts.Explain("/proc/none", full)), &nodecache.UnwritableError{Err: full, Todo: mounts.Todo("/proc/none", full)}} {
		if n := saidTimes(err, "file system proc at /proc is full: free space there (df /proc)"); n != 1 {
			t.Errorf("said %d times: %v", n, Error(err))
		}
	}
}
