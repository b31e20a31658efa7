package driver

import (
	"errors"
	"time"
)

// Why is what the engine tells apart besides the kind of an error.
type Why uint8

// The reasons. Busy is for an object whose state refuses the call for now, as far as the
// answer tells: it is being made, attached, detached, or is attached.
const (
	Other           Why = iota
	NoSuchInterface     // the ENI does not exist, or does not show yet
	NoSuchAddress       // the ENI has not all of the addresses
	AddressTaken        // an address by name is not free
	NoWholeBlock        // the subnet has room, and no whole block
	IndexTaken          // another ENI is at the device index
	InUse               // the ENI is attached already
	Busy
	PageLost     // the first page has to be asked for again
	TokenReused  // the token came with other parameters before
	Unauthorized // the credentials are good and may not do Error.Action
	Unsigned     // there are no credentials, so the cloud was not asked
	WrongClock   // the signature is too old or too new
	Between      // somebody between the machine and the cloud answered: the cloud was not asked
	NotForPods   // somebody has told all to leave the ENI alone: the engine's own
)

// Error is a failed request.
type Error struct {
	Kind       error // one of the kinds of pkg/cloud
	Why        Why
	Action     string        // what is not allowed, as policies or the API name it: "ec2:DescribeSubnets"; of Unauthorized alone
	Detail     string        // the cloud's own words and code, without secrets
	RetryAfter time.Duration // the cloud's wish, 0 if it has none
}

// Error says what failed and the cloud's own words.
func (e *Error) Error() string {
	if e.Detail == "" {
		return e.Kind.Error()
	}
	return e.Kind.Error() + ": " + e.Detail
}

// Unwrap returns the kind.
func (e *Error) Unwrap() error { return e.Kind }

// Wish is when the cloud wants to be asked again, 0 if it says nothing of that.
func (e *Error) Wish() time.Duration { return e.RetryAfter }

// Reason returns why a request failed, Other for an error that is not a driver's.
func Reason(err error) Why {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Why
	}
	return Other
}
