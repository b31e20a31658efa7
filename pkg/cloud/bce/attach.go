package bce

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/baidubce/bce-sdk-go/bce"
	sdk "github.com/baidubce/bce-sdk-go/services/eni"
	"github.com/enipool/enipool/pkg/cloud"
)

// waiter is the pauses between looks at something that changes.
type waiter struct {
	pause time.Duration
	until time.Time
}

// wait begins to wait for at most so long.
func (c *Client) wait(most time.Duration) *waiter {
	return &waiter{pause: c.poll, until: time.Now().Add(most)}
}

// over tells whether it has waited long enough.
func (w *waiter) over() bool { return !time.Now().Before(w.until) }

// next pauses, each time a little longer, and tells whether to look again.
func (w *waiter) next(ctx context.Context) (more bool, ended error) {
	if w.over() {
		return false, nil
	}
	t := time.NewTimer(w.pause)
	defer t.Stop()
	w.pause = min(w.pause*3/2, 3*time.Second)
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case <-t.C:
		return true, nil
	}
}

// passing tells whether an error of a look is worth another look.
func passing(err error) bool {
	return errors.Is(err, cloud.ErrThrottled) || errors.Is(err, cloud.ErrUnavailable)
}

// detail asks for one ENI.
func (c *Client) detail(ctx context.Context, op, id string) (sdk.Eni, error) {
	k := call{op: op, object: id}
	if !validID(id) {
		return sdk.Eni{}, c.problem(k, cloud.ErrNotFound, ctx.Err(), "no such ENI")
	}
	var a *sdk.Eni
	if err := c.do(ctx, k, func(b *bce.BceClient) (err error) {
		a, err = (&sdk.Client{BceClient: b}).GetEniDetail(id)
		return err
	}); err != nil {
		return sdk.Eni{}, err
	}
	if a.EniId != id {
		return sdk.Eni{}, c.badAnswer(k, "it is about another ENI")
	}
	return *a, nil
}

// status asks for the state of an ENI alone.
func (c *Client) status(ctx context.Context, op, id string) (string, error) {
	var a *sdk.EniStatusInfo
	if err := c.do(ctx, call{op: op, object: id}, func(b *bce.BceClient) (err error) {
		a, err = (&sdk.Client{BceClient: b}).GetEniStatus(id)
		return err
	}); err != nil {
		return "", err
	}
	return a.Status, nil
}

// attach attaches the ENI and waits until it is in use. States lag: an ENI that is
// shown as available after it was asked for is on its way, and one that the cloud
// refuses to attach may be attached already, until that has lasted.
func (c *Client) attach(ctx context.Context, id, instance string) error {
	k := call{op: createOp, object: id}
	var refused error
	believe := c.wait(c.settle)
	for asked, w := false, c.wait(c.o.Wait); ; {
		state, err := c.status(ctx, createOp, id)
		switch {
		case err != nil && !passing(err) && !errors.Is(err, cloud.ErrNotFound):
			return err
		case state == inUse:
			return nil
		case state == attaching:
			refused = nil
		case state == available && !asked:
			err := c.change(ctx, k, instance, (*sdk.Client).AttachEniInstance)
			if err != nil && !isState(err) && !errors.Is(err, cloud.ErrNotFound) {
				return err
			}
			asked, refused = err == nil, err
		}
		more, ended := w.next(ctx)
		switch {
		case ended != nil:
			return c.problem(k, nil, ended, "")
		case refused != nil && believe.over():
			return refused
		case !more:
			return c.problem(k, cloud.ErrUnknown, nil, fmt.Sprintf("it is %s after %v", state, c.o.Wait))
		}
	}
}

// change attaches or detaches an ENI.
func (c *Client) change(ctx context.Context, k call, instance string, do func(*sdk.Client, *sdk.EniInstance) error) error {
	k.mutates = true
	args := &sdk.EniInstance{EniId: k.object, InstanceId: &instance, ClientToken: fresh()}
	return c.do(ctx, k, func(b *bce.BceClient) error { return do(&sdk.Client{BceClient: b}, args) })
}
