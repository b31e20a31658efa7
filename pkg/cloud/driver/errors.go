package driver

import (
	"errors"
	"time"
)

// Why is the cause of an error, as far as the engine treats it in a way of its own.
type Why uint8

// The causes. Busy is for an object whose state does not allow the call now: it is being made,
// attached or detached, or is attached; the answer does not tell which.
const (
	Other           Why = iota
	NoSuchInterface     // the ENI does not exist, or does not show yet
	NoSuchAddress       // the ENI has not all of the addresses
	AddressTaken        // an address by name is not free
	NoWholeBlock        // the subnet has room, but no whole block
	IndexTaken          // another ENI is at the device index
	InUse               // the ENI is attached already
	Busy
	PageLost     // begin with the first page again
	TokenReused  // the token came with other parameters before
	Unauthorized // the credentials are right, but do not allow Error.Action
	Unsigned     // there are no credentials, so the request was not sent
	WrongClock   // the signature is too old or too new
	Between      // a proxy or something else on the way has answered, not the cloud
	NotForPods   // the ENI is tagged as not to be touched; only the engine makes this error
)

// Error is a failed request.
type Error struct {
	Kind       error // one of the kinds of pkg/cloud
	Why        Why
	Action     string        // of Unauthorized: what is not allowed, as policies or the API name it: "ec2:DescribeSubnets"
	Detail     string        // the cloud's own words and code, without secrets
	RetryAfter time.Duration // after which the cloud asks to be called again, 0 if it does not say
}

// Error returns the kind and the cloud's own words.
func (e *Error) Error() string {
	if e.Detail == "" {
		return e.Kind.Error()
	}
	return e.Kind.Error() + ": " + e.Detail
}

// Unwrap returns the kind.
func (e *Error) Unwrap() error { return e.Kind }

// Wish returns RetryAfter, as errors of package cloud do.
func (e *Error) Wish() time.Duration { return e.RetryAfter }

// Reason returns the Why of an error, Other for one that is not a driver's.
func Reason(err error) Why {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Why
	}
	return Other
}
