package aws

import (
	"errors"
	"fmt"

	"github.com/enipool/enipool/pkg/cloud"
)

// callError is a failed request to EC2, before it is known which method of Cloud
// failed with it.
type callError struct {
	failed cloud.Error
	code   string // EC2's
}

func (e *callError) Error() string { return e.failed.Error() }
func (e *callError) Unwrap() error { return &e.failed }

// codeOf returns EC2's code of a failed request, "" if it is not EC2's failure.
func codeOf(err error) string {
	var e *callError
	if errors.As(err, &e) {
		return e.code
	}
	return ""
}

// because makes a failure of our own.
func because(kind error, format string, args ...any) error {
	return &callError{failed: cloud.Error{Kind: kind, Detail: fmt.Sprintf(format, args...)}}
}

// unsettled turns the failure of a later step into one that tells that earlier ones
// have happened: the same call again finishes them.
func unsettled(err error) error {
	var e *callError
	if !errors.As(err, &e) {
		return because(cloud.ErrUnknown, "%v", err)
	}
	out := *e
	if out.failed.Kind != cloud.ErrUnknown {
		out.failed.Detail = fmt.Sprintf("half done, %v: %s", e.failed.Kind, e.failed.Detail)
	}
	out.failed.Kind = cloud.ErrUnknown
	return &out
}

// named makes a method's error of what failed inside. No text leaves the package by
// another door.
func (c *Client) named(err *error, op, object string) {
	if *err == nil {
		return
	}
	out := cloud.Error{Kind: cloud.ErrUnknown, Detail: (*err).Error()}
	var inner *callError
	if errors.As(*err, &inner) {
		out = inner.failed
	}
	out.Op, out.Object, out.Detail = op, object, shorten(c.secrets.redact(out.Detail))
	*err = &out
}
