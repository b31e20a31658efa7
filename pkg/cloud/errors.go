package cloud

import (
	"errors"
	"strings"
	"time"
)

// The kinds of failure that callers tell apart. What each of them means is in kinds.go.
var (
	// ErrThrottled: too many calls; nothing happened beyond what the call returned. Repeat the call
	// later.
	ErrThrottled = errors.New("throttled")
	// ErrSubnetFull: the subnet has no address left.
	ErrSubnetFull = errors.New("subnet has no free address")
	// ErrLimit: the instance, the ENI or the account can't have more.
	ErrLimit = errors.New("limit reached")
	// ErrNotFound: the object of the call does not exist, or not on this node.
	ErrNotFound = errors.New("not found")
	// ErrForbidden: the credentials are wrong or lack a permission, the object is unmanaged, or an
	// argument can't be right. Repeating the call does not help.
	ErrForbidden = errors.New("forbidden")
	// ErrUnavailable: the cloud can't be reached or fails; nothing happened
	// beyond what the call returned.
	ErrUnavailable = errors.New("cloud unavailable")
	// ErrUnknown: whether the call had its effect is not known; Interfaces tells.
	ErrUnknown = errors.New("outcome unknown")
	// ErrTaken: an address that was asked for by name is not free. Only a Region returns it.
	ErrTaken = errors.New("address taken")
)

// Error is a failed call.
type Error struct {
	Op         string        // the method: "AssignAddresses"
	Object     string        // ID of the ENI or subnet it was about, "" if none
	Kind       error         // one of the kinds
	Why        Why           // the cause, as far as that says more than the kind
	Detail     string        // the cloud's own words and code, without secrets
	RetryAfter time.Duration // after which the cloud asks to be called again, 0 if it does not say
}

// Error returns the method, the object, the kind, and the cloud's own words.
func (e *Error) Error() string {
	text := e.Kind.Error()
	if about := strings.TrimSpace(e.Op + " " + e.Object); about != "" {
		text = about + ": " + text
	}
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// Unwrap returns the kind.
func (e *Error) Unwrap() error { return e.Kind }

// RetryDelay returns RetryAfter, as errors of package driver do.
func (e *Error) RetryDelay() time.Duration { return e.RetryAfter }
