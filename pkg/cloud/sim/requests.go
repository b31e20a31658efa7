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
	Why        cloud.Why     `json:"why,omitempty"`
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
	"Shape":        answerMethod((*Driver).Shape),
	"Shapes":       answerMethod((*Driver).Shapes),
	"Alive":        answerMethod((*Driver).Alive),
	"Subnets":      answerMethod((*Driver).Subnets),
	"Interfaces":   answerMethod((*Driver).Interfaces),
	"Page":         answerMethod((*Driver).Page),
	"Create":       answerMethod((*Driver).Create),
	"Attach":       answerMethod((*Driver).Attach),
	"Assign":       answerMethod((*Driver).Assign),
	"Reserve":      answerMethod((*Driver).Reserve),
	"Unreserve":    changeMethod(func(d *Driver, ctx context.Context, id string) error { return d.Unreserve(ctx, id) }),
	"Reservations": answerMethod((*Driver).Reservations),
	"Unassign":     changeMethod(func(d *Driver, ctx context.Context, u driver.Unassign) error { return d.Unassign(ctx, u) }),
	"Bind":         changeMethod(func(d *Driver, ctx context.Context, o onAttachment) error { return d.Bind(ctx, o.ID, o.Attachment) }),
	"Detach":       changeMethod(func(d *Driver, ctx context.Context, o onInterface) error { return d.Detach(ctx, o.On, o.Token) }),
	"Delete":       changeMethod(func(d *Driver, ctx context.Context, o onID) error { return d.Delete(ctx, o.ID, o.Token) }),
	"Rewrite":      changeMethod(func(d *Driver, ctx context.Context, o marked) error { return d.Rewrite(ctx, o.ID, o.Mark, o.Token) }),
	"SetGroups": changeMethod(func(d *Driver, ctx context.Context, o grouped) error {
		return d.SetGroups(ctx, o.ID, o.Groups, o.Token)
	}),
}

// isRead tells whether a method changes nothing.
func isRead(name string) bool {
	return name == "Shape" || name == "Shapes" || name == "Alive" || name == "Subnets" || name == "Interfaces" || name == "Page" || name == "Reservations"
}

func answerMethod[A, R any](do func(*Driver, context.Context, A) (R, error)) func(context.Context, *Driver, json.RawMessage) (any, error) {
	return func(ctx context.Context, d *Driver, text json.RawMessage) (any, error) {
		var args A
		if err := json.Unmarshal(text, &args); err != nil {
			return nil, &driver.Error{Kind: cloud.ErrForbidden, Detail: fmt.Sprintf("bad arguments: %v", err)}
		}
		return do(d, ctx, args)
	}
}

func changeMethod[A any](do func(*Driver, context.Context, A) error) func(context.Context, *Driver, json.RawMessage) (any, error) {
	return answerMethod(func(d *Driver, ctx context.Context, args A) (struct{}, error) { return struct{}{}, do(d, ctx, args) })
}
