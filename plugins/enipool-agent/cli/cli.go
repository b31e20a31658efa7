// Package cli holds what the commands of enipool-agent share: which failures are the node's,
// and not the call's.
package cli

// NodeError is a failure of the node or the cloud, not of the call.
type NodeError struct{ Err error }

func (e *NodeError) Error() string { return e.Err.Error() }

func (e *NodeError) Unwrap() error { return e.Err }
