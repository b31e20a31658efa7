// Package cli holds what the commands of enipool-agent share: which failures are the node's,
// and not the call's.
package cli

import (
	"errors"
	"fmt"
	"io/fs"
)

// NodeError is a failure of the node or the cloud, not of the call.
type NodeError struct{ Err error }

func (e *NodeError) Error() string { return e.Err.Error() }

func (e *NodeError) Unwrap() error { return e.Err }

// RootError is a failure of a run that is not root's, which comes of that.
type RootError struct {
	UID int
	Err error
}

func (e *RootError) Error() string {
	return fmt.Sprintf("needs root on the node, and runs as user %d: %v", e.UID, e.Err)
}

func (e *RootError) Unwrap() error { return e.Err }

// NeedsRoot returns err, and that the run needs root where the user is not root and what failed was not
// permitted. That is said once, and first: whatever else fails then comes of it.
func NeedsRoot(uid int, err, failed error) error {
	if uid == 0 || !errors.Is(failed, fs.ErrPermission) || errors.As(err, new(*RootError)) {
		return err
	}
	return &RootError{uid, err}
}
