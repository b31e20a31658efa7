package cni

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/containernetworking/cni/pkg/types"
	"github.com/enipool/enipool/pkg/config"
	"github.com/enipool/enipool/pkg/filelock"
	"github.com/enipool/enipool/pkg/host"
	"github.com/enipool/enipool/pkg/hostport"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/mounts"
	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/pkg/podrecord"
	"golang.org/x/sys/unix"
)

// What runtimes and scripts may compare: code and details of each row of failures.
func TestEachErrorHasItsCodeAndSaysWhatToDo(t *testing.T) {
	const (
		look   = "`enipoolctl pool show` names the pods that have addresses and those that wait"
		rights = "the plugin must run as root with CAP_NET_ADMIN and CAP_SYS_ADMIN in the node's own namespaces"
		remedy = "file system proc at /proc is full: free space there (df /proc)"
	)
	full := &os.PathError{Op: "write", Path: "/proc/none", Err: unix.ENOSPC}
	told := map[int]bool{}
	for _, tt := range []struct {
		err     error
		code    uint
		details string
		cured   bool
	}{
		{&config.KeyError{Key: "a", Unsupported: true}, types.ErrUnsupportedField, "", false},
		{&config.KeyError{Key: "a"}, types.ErrInvalidNetworkConfig, "", false},
		{&argsError{"x"}, types.ErrInvalidEnvironmentVariables, "", false},
		{host.ErrLinkExists, types.ErrInvalidEnvironmentVariables, "CNI_IFNAME names a link that another plugin made: put enipool first, or choose another name", false},
		{host.ErrNetnsGone, types.ErrInvalidNetNS, "", false},
		{host.ErrNetnsOwn, types.ErrInvalidNetNS, "", false},
		{&ipam.Exhausted{}, types.ErrTryAgainLater, look, true},
		{&awayError{&ipam.Exhausted{}, "no agent", true}, types.ErrTryAgainLater, look, true},
		{&awayError{&ipam.Exhausted{}, "no agent", false}, types.ErrTryAgainLater, look + "; on a node without an agent: `enipoolctl pool load -f inventory.yaml` brings what is added to its inventory", true},
		{&ipam.Awaited{}, types.ErrTryAgainLater, awaitedDetails, true},
		{&filelock.BusyError{}, types.ErrTryAgainLater, "", false},
		{&host.HeldError{Addr: netip.MustParseAddr("10.0.0.11"), Cause: "route 10.0.0.11 dev lo"}, types.ErrTryAgainLater,
			"other programs use addresses of the pool: `enipoolctl pool show -o wide` names the route, rule, neighbour or address of each; once that is removed the address is free again", false},
		{nodecache.ErrMissing, types.ErrTryAgainLater, "", false},
		{nodecache.ErrBoot, types.ErrTryAgainLater, "", true},
		{nodecache.ErrDamaged, types.ErrTryAgainLater, "", true},
		{&nodecache.UnwritableError{Err: full, Todo: remedy}, types.ErrIOFailure, "", false},
		{errNoSource, types.ErrTryAgainLater, "", true},
		{fmt.Errorf("%w: %w", errNoSource, unix.EPERM), types.ErrTryAgainLater, rights, true},
		{hostport.ErrNotReady, types.ErrTryAgainLater, "", true},
		{nodecache.ErrVersion, types.ErrIOFailure, "", false},
		{podrecord.ErrVersion, types.ErrIOFailure, "", false},
		{nodecache.ErrOwnerTooLong, types.ErrIOFailure, "", false},
		{unix.EROFS, types.ErrIOFailure, "", false},
		{full, types.ErrIOFailure, remedy, false},
		{mounts.Explain("/proc/none", full), types.ErrIOFailure, "", false},
		{&os.PathError{Op: "write", Path: "/proc/none", Err: unix.EPERM}, types.ErrInternal, rights, false},
		{unix.EPERM, types.ErrInternal, rights, false},
		{unix.EACCES, types.ErrInternal, rights, false},
		{ipam.ErrDuplicate, CodeDuplicate, "the runtime must DEL the first attachment before it ADDs again", false},
		{&hostport.TakenError{}, CodeTaken, "delete that pod, or choose another hostPort or hostIP", false},
		{&mismatchError{[]string{"a", "b"}}, CodeMismatch, "a\nb\n", false},
		{errors.New("anything else"), types.ErrInternal, "", false},
		{errors.Join(host.ErrLinkExists, &nodecache.UnwritableError{Err: full}), types.ErrInvalidEnvironmentVariables,
			"CNI_IFNAME names a link that another plugin made: put enipool first, or choose another name", false}, // undoing fails too
	} {
		err := fmt.Errorf("wrapped: %w", tt.err)
		if got := *Error(err); got.Code != tt.code || got.Msg != err.Error() || got.Details != tt.details || isCuredByAgent(err) != tt.cured {
			t.Errorf("%v: code %d, %q, %q, cured by an agent: %t; want code %d and %q", tt.err, got.Code, got.Msg, got.Details, isCuredByAgent(err), tt.code, tt.details)
		}
		for i, f := range failures {
			told[i] = told[i] || f.is(err)
		}
	}
	if len(told) != len(failures) || slices.Contains(slices.Collect(maps.Values(told)), false) {
		t.Errorf("rows that no error of the table has: %v", told)
	}
}

// Who waits for an agent gets the code by which runtimes try again, and a node without one has a way out.
func TestWhatAnAgentCuresIsTriedAgain(t *testing.T) {
	for _, err := range []error{(&Plugin{}).tellRepair(errNoSource), hostport.ErrNotReady} {
		if !strings.Contains(err.Error(), "enipoolctl pool load") {
			t.Error(err)
		}
	}
	for i, f := range failures {
		if f.cured && f.code != types.ErrTryAgainLater {
			t.Errorf("row %d: code %d", i, f.code)
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
