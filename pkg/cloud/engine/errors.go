package engine

import (
	"errors"
	"fmt"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
)

// errorf makes an error of the engine's own.
func errorf(kind error, format string, args ...any) error {
	return &driver.Error{Kind: kind, Detail: fmt.Sprintf(format, args...)}
}

// halfDone makes the error of a later step ErrUnknown, because earlier steps have happened. The
// same call again finishes them.
func halfDone(err error) error {
	var e *driver.Error
	if !errors.As(err, &e) {
		return errorf(cloud.ErrUnknown, "%v", err)
	}
	out := *e
	if out.Kind != cloud.ErrUnknown {
		out.Detail = fmt.Sprintf("half done, %v: %s", e.Kind, e.Detail)
	}
	out.Kind = cloud.ErrUnknown
	return &out
}

// halfDoneIf returns the error of a step, as halfDone if steps before it have happened.
func halfDoneIf(begun bool, err error) error {
	if begun && err != nil {
		return halfDone(err)
	}
	return err
}

// nameError makes the *cloud.Error of a method out of any error inside. It is deferred.
func nameError(err *error, op, object string) {
	if *err == nil {
		return
	}
	out := cloud.Error{Op: op, Object: object, Kind: cloud.ErrUnknown, Detail: (*err).Error()}
	var inner *driver.Error
	if errors.As(*err, &inner) {
		out.Kind, out.Why, out.Detail, out.RetryAfter = inner.Kind, inner.Why, inner.Detail, inner.RetryAfter
	}
	*err = &out
}

// detailOf returns what an error says besides its kind.
func detailOf(err error) string {
	var e *driver.Error
	if errors.As(err, &e) && e.Detail != "" {
		return e.Detail
	}
	return err.Error()
}

// aboutENI adds to an error which ENI it is about.
func aboutENI(id string, err error) error {
	var e *driver.Error
	if !errors.As(err, &e) {
		return fmt.Errorf("ENI %s: %w", id, err)
	}
	out := *e
	out.Detail = "ENI " + id + ": " + e.Detail
	return &out
}
