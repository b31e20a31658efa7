package cni

import (
	"errors"
	"fmt"
	"os"

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

func errorCode(err error) uint {
	var (
		key       *config.KeyError
		args      *argsError
		exhausted *ipam.Exhausted
		held      *host.HeldError
		busy      *filelock.BusyError
		mismatch  *mismatchError
	)
	switch {
	case errors.As(err, &key) && key.Unsupported:
		return types.ErrUnsupportedField
	case errors.As(err, &key):
		return types.ErrInvalidNetworkConfig
	case errors.As(err, &args), errors.Is(err, host.ErrLinkExists):
		return types.ErrInvalidEnvironmentVariables
	case errors.Is(err, host.ErrNetnsGone), errors.Is(err, host.ErrNetnsOwn):
		return types.ErrInvalidNetNS
	case errors.As(err, &exhausted), errors.As(err, &busy), errors.As(err, &held):
		return types.ErrTryAgainLater
	case errors.Is(err, nodecache.ErrMissing), errors.Is(err, nodecache.ErrBoot), errors.Is(err, nodecache.ErrDamaged):
		return types.ErrTryAgainLater // the agent is about to write a good one
	case errors.As(err, new(*nodecache.UnwritableError)):
		return types.ErrIOFailure
	case errors.Is(err, errNoSource):
		return types.ErrTryAgainLater // an agent puts it back within a second
	case errors.Is(err, unix.EROFS), errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT), errors.Is(err, unix.EIO):
		return types.ErrIOFailure // a pod's record, beside the node cache
	case errors.Is(err, nodecache.ErrVersion), errors.Is(err, podrecord.ErrVersion), errors.Is(err, nodecache.ErrOwnerTooLong):
		return types.ErrIOFailure
	case errors.As(err, new(*hostport.TakenError)):
		return CodeTaken
	case errors.Is(err, hostport.ErrNotReady):
		return types.ErrTryAgainLater
	case errors.Is(err, ipam.ErrDuplicate):
		return CodeDuplicate
	case errors.As(err, &mismatch):
		return CodeMismatch
	}
	return types.ErrInternal
}

// errorDetails says what a person can do about it, where the message doesn't yet.
func errorDetails(err error) string {
	var mismatch *mismatchError
	var path *os.PathError
	switch {
	case errors.As(err, new(*nodecache.UnwritableError)), errors.As(err, new(*mounts.RefusedError)):
		return "" // its message says it
	case errors.As(err, &mismatch):
		text := ""
		for _, l := range mismatch.lines {
			text += l + "\n"
		}
		return text
	case errors.Is(err, ipam.ErrDuplicate):
		return "the runtime must DEL the first attachment before it ADDs again"
	case errors.As(err, new(*ipam.Exhausted)):
		return exhaustedDetails(err)
	case errors.As(err, new(*host.HeldError)):
		return "other programs use addresses of the pool: `enipoolctl pool show -o wide` names the route, rule, neighbour or address of each; once that is removed the address is free again"
	case errors.As(err, new(*hostport.TakenError)):
		return "delete that pod, or choose another hostPort or hostIP"
	case errors.As(err, &path) && mounts.Todo(path.Path, err) != "":
		return mounts.Todo(path.Path, err)
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return "the plugin must run as root with CAP_NET_ADMIN and CAP_SYS_ADMIN in the node's own namespaces"
	case errors.Is(err, host.ErrLinkExists):
		return "CNI_IFNAME names a link that another plugin made: put enipool first, or choose another name"
	}
	return ""
}
