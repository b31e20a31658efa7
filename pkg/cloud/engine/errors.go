package engine

import (
	"errors"
	"fmt"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
)

// because makes a failure of our own.
func because(kind error, format string, args ...any) error {
	return &driver.Error{Kind: kind, Detail: fmt.Sprintf(format, args...)}
}

// halfDone turns the failure of a later step into one that tells that earlier ones have
// happened: the same call again finishes them.
func halfDone(err error) error {
	var e *driver.Error
	if !errors.As(err, &e) {
		return because(cloud.ErrUnknown, "%v", err)
	}
	out := *e
	if out.Kind != cloud.ErrUnknown {
		out.Detail = fmt.Sprintf("half done, %v: %s", e.Kind, e.Detail)
	}
	out.Kind = cloud.ErrUnknown
	return &out
}

// halfDoneIf is the error of a step, and tells of those before it.
func halfDoneIf(begun bool, err error) error {
	if begun && err != nil {
		return halfDone(err)
	}
	return err
}

// nameError makes a method's error of what failed inside.
func nameError(err *error, op, object string) {
	if *err == nil {
		return
	}
	out := cloud.Error{Op: op, Object: object, Kind: cloud.ErrUnknown, Detail: (*err).Error()}
	var inner *driver.Error
	if errors.As(*err, &inner) {
		out.Kind, out.Detail, out.RetryAfter = inner.Kind, inner.Detail, inner.RetryAfter
	}
	*err = &out
}

// detail returns what an error says besides its kind.
func detail(err error) string {
	var e *driver.Error
	if errors.As(err, &e) && e.Detail != "" {
		return e.Detail
	}
	return err.Error()
}

// aboutENI is a failure that tells which ENI it is about.
func aboutENI(id string, err error) error {
	var e *driver.Error
	if !errors.As(err, &e) {
		return fmt.Errorf("ENI %s: %w", id, err)
	}
	out := *e
	out.Detail = "ENI " + id + ": " + e.Detail
	return &out
}
