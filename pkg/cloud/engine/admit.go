package engine

import (
	"context"
	"errors"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
)

// ErrRepeated is how a request has ended that failed in a way that passes: the driver sends it again.
var ErrRepeated = errors.New("repeated")

// admitted is a driver that asks admit before each request, so that a process for many nodes
// can keep all of them within the account's rate. The later steps of an operation are asked
// for too.
type admitted struct {
	driver.Driver
	traits driver.Traits
	admit  func(ctx context.Context, action string) error
	limit  time.Duration // of a request, 0 for none
	ended  func(action string, err error)
}

// whenAdmitted makes the requests of a method, or of a part of one, if all of them are admitted.
// Before the driver repeats one, all are asked for again: it does not tell which one it repeats.
func whenAdmitted[T any](ctx context.Context, d admitted, part string, do func(context.Context) (T, error)) (T, error) {
	ask := func(ctx context.Context) error { return d.askAdmission(ctx, part) }
	if err := ask(ctx); err != nil {
		var none T
		return none, err
	}
	if d.limit > 0 {
		// From here on, not from when the token was asked for: by this deadline whoever admits it knows when it has ended.
		within, cancel := context.WithTimeout(ctx, d.limit)
		defer cancel()
		ctx = within
	}
	got, err := do(driver.WithAgain(ctx, func(ctx context.Context) error {
		d.tellEnded(part, ErrRepeated)
		return ask(ctx)
	}))
	d.tellEnded(part, err)
	return got, err
}

// tellEnded tells how the requests of a part have ended: one after the other, so that only the last can have failed.
func (d admitted) tellEnded(part string, err error) {
	actions := d.traits.ActionsOf(part)
	for i, action := range actions {
		if d.ended == nil {
			return
		}
		if i < len(actions)-1 {
			d.ended(action, nil)
		} else {
			d.ended(action, err)
		}
	}
}

func (d admitted) askAdmission(ctx context.Context, part string) error {
	for _, action := range d.traits.ActionsOf(part) {
		err := d.admit(ctx, action)
		if err == nil {
			continue
		}
		if _, is := errors.AsType[*driver.Error](err); !is {
			err = errorf(cloud.ErrThrottled, "%s was not admitted: %v", action, err)
		}
		return err
	}
	return nil
}

// stepWhenAdmitted is whenAdmitted for a method that returns only an error.
func (d admitted) stepWhenAdmitted(ctx context.Context, part string, do func(context.Context) error) error {
	_, err := whenAdmitted(ctx, d, part, func(ctx context.Context) (struct{}, error) { return struct{}{}, do(ctx) })
	return err
}

// The methods of driver.Driver that make requests.

func (d admitted) Shape(ctx context.Context, s driver.Self) (driver.Shape, error) {
	return whenAdmitted(ctx, d, "Shape", func(ctx context.Context) (driver.Shape, error) { return d.Driver.Shape(ctx, s) })
}

func (d admitted) Shapes(ctx context.Context, types []string) (map[string]driver.Shape, error) {
	return whenAdmitted(ctx, d, "Shapes", func(ctx context.Context) (map[string]driver.Shape, error) { return d.Driver.Shapes(ctx, types) })
}

func (d admitted) Alive(ctx context.Context, instances []string) (map[string]cloud.State, error) {
	return whenAdmitted(ctx, d, "Alive", func(ctx context.Context) (map[string]cloud.State, error) { return d.Driver.Alive(ctx, instances) })
}

func (d admitted) Subnets(ctx context.Context, f driver.SubnetFilter) ([]driver.Subnet, error) {
	return whenAdmitted(ctx, d, f.Part(), func(ctx context.Context) ([]driver.Subnet, error) { return d.Driver.Subnets(ctx, f) })
}

func (d admitted) Interfaces(ctx context.Context, f driver.Filter) ([]driver.Interface, error) {
	return whenAdmitted(ctx, d, f.Part(), func(ctx context.Context) ([]driver.Interface, error) { return d.Driver.Interfaces(ctx, f) })
}

func (d admitted) Page(ctx context.Context, s driver.Scan) (driver.Page, error) {
	return whenAdmitted(ctx, d, "Page", func(ctx context.Context) (driver.Page, error) { return d.Driver.Page(ctx, s) })
}

func (d admitted) Create(ctx context.Context, c driver.Create) (driver.Interface, error) {
	return whenAdmitted(ctx, d, "Create", func(ctx context.Context) (driver.Interface, error) { return d.Driver.Create(ctx, c) })
}

func (d admitted) Attach(ctx context.Context, a driver.Attach) (string, error) {
	return whenAdmitted(ctx, d, "Attach", func(ctx context.Context) (string, error) { return d.Driver.Attach(ctx, a) })
}

func (d admitted) Assign(ctx context.Context, a driver.Assign) (driver.Assigned, error) {
	return whenAdmitted(ctx, d, a.Part(), func(ctx context.Context) (driver.Assigned, error) { return d.Driver.Assign(ctx, a) })
}

func (d admitted) Bind(ctx context.Context, id, attachment string) error {
	return d.stepWhenAdmitted(ctx, "Bind", func(ctx context.Context) error { return d.Driver.Bind(ctx, id, attachment) })
}

func (d admitted) Detach(ctx context.Context, i driver.Interface, token string) error {
	return d.stepWhenAdmitted(ctx, "Detach", func(ctx context.Context) error { return d.Driver.Detach(ctx, i, token) })
}

func (d admitted) Delete(ctx context.Context, id, token string) error {
	return d.stepWhenAdmitted(ctx, "Delete", func(ctx context.Context) error { return d.Driver.Delete(ctx, id, token) })
}

func (d admitted) Unassign(ctx context.Context, u driver.Unassign) error {
	return d.stepWhenAdmitted(ctx, u.Part(), func(ctx context.Context) error { return d.Driver.Unassign(ctx, u) })
}

func (d admitted) Rewrite(ctx context.Context, id string, m driver.Mark, token string) error {
	return d.stepWhenAdmitted(ctx, "Rewrite", func(ctx context.Context) error { return d.Driver.Rewrite(ctx, id, m, token) })
}

func (d admitted) SetGroups(ctx context.Context, id string, groups []string, token string) error {
	return d.stepWhenAdmitted(ctx, "SetGroups", func(ctx context.Context) error { return d.Driver.SetGroups(ctx, id, groups, token) })
}

func (d admitted) Reserve(ctx context.Context, r driver.Reservation) (string, error) {
	return whenAdmitted(ctx, d, "Reserve", func(ctx context.Context) (string, error) { return d.Driver.Reserve(ctx, r) })
}

func (d admitted) Unreserve(ctx context.Context, id string) error {
	return d.stepWhenAdmitted(ctx, "Unreserve", func(ctx context.Context) error { return d.Driver.Unreserve(ctx, id) })
}

func (d admitted) Reservations(ctx context.Context, subnet string) ([]driver.Reservation, error) {
	return whenAdmitted(ctx, d, "Reservations", func(ctx context.Context) ([]driver.Reservation, error) { return d.Driver.Reservations(ctx, subnet) })
}

// capability returns the driver as one that has an optional interface of package driver or
// cloud. It looks inside an admitted driver: these interfaces make no requests, or only when a
// person runs a check, so nothing is asked for.
func capability[T any](d driver.Driver) (T, bool) {
	if outer, is := d.(admitted); is {
		d = outer.Driver
	}
	can, is := d.(T)
	return can, is
}
