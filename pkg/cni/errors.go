package cni

import (
	"errors"
	"fmt"
	"os"
	"slices"

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

// Our own error codes; the specification leaves those from 100 on to plugins.
const (
	CodeDuplicate = 100 // ADD for an attachment that has an address already
	CodeMismatch  = 101 // CHECK found the kernel or the node state different
	CodeTaken     = 102 // ADD for a host port that another pod has
)

// argsError is a CNI_ARGS that can't be obeyed.
type argsError struct{ text string }

func (e *argsError) Error() string { return "CNI_ARGS: " + e.text }

// mismatchError is what CHECK found.
type mismatchError struct{ lines []string }

func (e *mismatchError) Error() string {
	if len(e.lines) == 1 {
		return e.lines[0]
	}
	return fmt.Sprintf("%s (and %d more)", e.lines[0], len(e.lines)-1)
}

// Error returns err as the protocol's error object: a code that says what kind
// of failure it is and a message that says what to do about it.
func Error(err error) *types.Error {
	var done *types.Error
	if errors.As(err, &done) {
		return done
	}
	return types.NewError(errorCode(err), err.Error(), errorDetails(err))
}

// failure is what runtime and people are told of a kind of error. Where an error is of several kinds, as one to which that of undoing
// is joined, the first row that has it counts.
type failure struct {
	is      func(error) bool
	code    uint               // 0: that of a later row
	details func(error) string // what a person can do, where the message doesn't say it yet; nil: those of a later row
	cured   bool               // an agent puts it right, and the runtime tries again until then
}

// failures are all kinds that are told in a way of their own. The specification's code 11 is what passes without the runtime's doing.
var failures = [...]failure{
	{is: isUnsupported, code: types.ErrUnsupportedField},
	{is: isA[*config.KeyError], code: types.ErrInvalidNetworkConfig},
	{is: isA[*argsError], code: types.ErrInvalidEnvironmentVariables},
	{is: isOne(host.ErrLinkExists), code: types.ErrInvalidEnvironmentVariables,
		details: text("CNI_IFNAME names a link that another plugin made: put enipool first, or choose another name")},
	{is: isOne(host.ErrNetnsGone, host.ErrNetnsOwn), code: types.ErrInvalidNetNS},
	{is: isA[*ipam.Exhausted], code: types.ErrTryAgainLater, details: exhaustedDetails, cured: true},
	{is: isA[*ipam.Awaited], code: types.ErrTryAgainLater, details: text(awaitedDetails), cured: true},
	{is: isA[*filelock.BusyError], code: types.ErrTryAgainLater},
	{is: isA[*host.HeldError], code: types.ErrTryAgainLater,
		details: text("other programs use addresses of the pool: `enipoolctl pool show -o wide` names the route, rule, neighbour or address of each; once that is removed the address is free again")},
	{is: isOne(nodecache.ErrMissing), code: types.ErrTryAgainLater}, // its text says whether an agent is at work
	{is: isOne(nodecache.ErrBoot, nodecache.ErrDamaged), code: types.ErrTryAgainLater, cured: true},
	{is: isA[*nodecache.UnwritableError], code: types.ErrIOFailure, details: text("")},
	{is: isOne(errNoSource), code: types.ErrTryAgainLater, cured: true},                   // an agent puts it back within a second
	{is: isOne(unix.EROFS, unix.ENOSPC, unix.EDQUOT, unix.EIO), code: types.ErrIOFailure}, // a pod's record, beside the node cache
	{is: isOne(nodecache.ErrVersion, podrecord.ErrVersion, nodecache.ErrOwnerTooLong), code: types.ErrIOFailure},
	{is: isA[*hostport.TakenError], code: CodeTaken, details: text("delete that pod, or choose another hostPort or hostIP")},
	{is: isOne(hostport.ErrNotReady), code: types.ErrTryAgainLater, cured: true},
	{is: isOne(ipam.ErrDuplicate), code: CodeDuplicate, details: text("the runtime must DEL the first attachment before it ADDs again")},
	{is: isA[*mismatchError], code: CodeMismatch, details: mismatchDetails},
	{is: isA[*mounts.RefusedError], details: text("")}, // its message says it
	{is: isExplained, details: explanation},
	{is: isOne(unix.EPERM, unix.EACCES), details: text("the plugin must run as root with CAP_NET_ADMIN and CAP_SYS_ADMIN in the node's own namespaces")},
}

func errorCode(err error) uint {
	for _, f := range failures {
		if f.code != 0 && f.is(err) {
			return f.code
		}
	}
	return types.ErrInternal
}

// errorDetails says what a person can do about it, where the message doesn't yet.
func errorDetails(err error) string {
	for _, f := range failures {
		if f.details != nil && f.is(err) {
			return f.details(err)
		}
	}
	return ""
}

// isCuredByAgent tells whether the runtime is told to try again because an agent puts right what is wrong.
func isCuredByAgent(err error) bool {
	return slices.ContainsFunc(failures[:], func(f failure) bool { return f.cured && f.is(err) })
}

// isA tells whether there is an error of the type.
func isA[T error](err error) bool {
	_, is := errors.AsType[T](err)
	return is
}

// isOne returns what tells whether an error is one of some.
func isOne(of ...error) func(error) bool {
	return func(err error) bool {
		return slices.ContainsFunc(of, func(one error) bool { return errors.Is(err, one) })
	}
}

func isUnsupported(err error) bool {
	key, is := errors.AsType[*config.KeyError](err)
	return is && key.Unsupported
}

// isExplained tells whether a file system that refuses is the reason.
func isExplained(err error) bool { return explanation(err) != "" }

func explanation(err error) string {
	if path, is := errors.AsType[*os.PathError](err); is {
		return mounts.Todo(path.Path, err)
	}
	return ""
}

// text returns the same details for each error.
func text(details string) func(error) string { return func(error) string { return details } }

// mismatchDetails are all lines that CHECK has found.
func mismatchDetails(err error) (list string) {
	mismatch, _ := errors.AsType[*mismatchError](err)
	for _, line := range mismatch.lines {
		list += line + "\n"
	}
	return list
}
