package driver

import (
	"errors"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
)

// Error is a failed request.
type Error struct {
	Kind       error // one of the kinds of pkg/cloud
	Why        cloud.Why
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

// RetryDelay returns RetryAfter, as errors of package cloud do.
func (e *Error) RetryDelay() time.Duration { return e.RetryAfter }

// Reason returns the cloud.Why of an error, Other for one that is not a driver's.
func Reason(err error) cloud.Why {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Why
	}
	return cloud.Other
}
