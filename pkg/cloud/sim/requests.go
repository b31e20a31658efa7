package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
)

// wireCall is a half-operation on its way to another process.
type wireCall struct {
	Method string          `json:"method"` // of driver.Driver
	Node   string          `json:"node"`
	Args   json.RawMessage `json:"args,omitempty"`
}

// wireReply is what came of it.
type wireReply struct {
	Value json.RawMessage `json:"value,omitempty"`
	Error *wireError      `json:"error,omitempty"`
}

// wireError is a *driver.Error; the kind travels as its text.
type wireError struct {
	Kind       string        `json:"kind"`
	Why        driver.Why    `json:"why,omitempty"`
	Detail     string        `json:"detail,omitempty"`
	RetryAfter time.Duration `json:"retryAfter,omitempty"` // nanoseconds
}

// The arguments of methods that have no type of their own for them.
type (
	onAttachment struct {
		ID, Attachment string
	}
	onInterface struct {
		On    driver.Interface
		Token string
	}
	onID struct {
		ID, Token string
	}
	marked struct {
		ID, Token string
		Mark      driver.Mark
	}
	grouped struct {
		ID, Token string
		Groups    []string
	}
)

// methods carry out half-operations that came from another process.
var methods = map[string]func(context.Context, *Driver, json.RawMessage) (any, error){
	"Shape":        method((*Driver).Shape),
	"Shapes":       method((*Driver).Shapes),
	"Alive":        method((*Driver).Alive),
	"Subnets":      method((*Driver).Subnets),
	"Interfaces":   method((*Driver).Interfaces),
	"Page":         method((*Driver).Page),
	"Create":       method((*Driver).Create),
	"Attach":       method((*Driver).Attach),
	"Assign":       method((*Driver).Assign),
	"Reserve":      method((*Driver).Reserve),
	"Unreserve":    change(func(d *Driver, ctx context.Context, id string) error { return d.Unreserve(ctx, id) }),
	"Reservations": method((*Driver).Reservations),
	"Unassign":     change(func(d *Driver, ctx context.Context, u driver.Unassign) error { return d.Unassign(ctx, u) }),
	"Bind":         change(func(d *Driver, ctx context.Context, o onAttachment) error { return d.Bind(ctx, o.ID, o.Attachment) }),
	"Detach":       change(func(d *Driver, ctx context.Context, o onInterface) error { return d.Detach(ctx, o.On, o.Token) }),
	"Delete":       change(func(d *Driver, ctx context.Context, o onID) error { return d.Delete(ctx, o.ID, o.Token) }),
	"Rewrite":      change(func(d *Driver, ctx context.Context, o marked) error { return d.Rewrite(ctx, o.ID, o.Mark, o.Token) }),
	"SetGroups": change(func(d *Driver, ctx context.Context, o grouped) error {
		return d.SetGroups(ctx, o.ID, o.Groups, o.Token)
	}),
}

// looks tells whether a method changes nothing.
func looks(name string) bool {
	return name == "Shape" || name == "Shapes" || name == "Alive" || name == "Subnets" || name == "Interfaces" || name == "Page" || name == "Reservations"
}

func method[A, R any](do func(*Driver, context.Context, A) (R, error)) func(context.Context, *Driver, json.RawMessage) (any, error) {
	return func(ctx context.Context, d *Driver, text json.RawMessage) (any, error) {
		var args A
		if err := json.Unmarshal(text, &args); err != nil {
			return nil, &driver.Error{Kind: cloud.ErrForbidden, Detail: fmt.Sprintf("bad arguments: %v", err)}
		}
		return do(d, ctx, args)
	}
}

func change[A any](do func(*Driver, context.Context, A) error) func(context.Context, *Driver, json.RawMessage) (any, error) {
	return method(func(d *Driver, ctx context.Context, args A) (struct{}, error) { return struct{}{}, do(d, ctx, args) })
}
