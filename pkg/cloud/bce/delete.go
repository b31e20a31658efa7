package bce

import (
	"context"
	"errors"
	"fmt"

	"github.com/baidubce/bce-sdk-go/bce"
	sdk "github.com/baidubce/bce-sdk-go/services/eni"
	"github.com/enipool/enipool/pkg/cloud"
)

// DeleteInterface detaches and deletes an ENI that CreateInterface made for this
// instance.
func (c *Client) DeleteInterface(ctx context.Context, id string) (err error) {
	defer plain(&err)
	const op = "DeleteInterface"
	k := call{op: op, object: id}
	if err := ctx.Err(); err != nil {
		return c.problem(k, nil, err, "")
	}
	if !validID(id) {
		return nil // nothing has such a name
	}
	c.mu.Lock()
	r, known := c.known[id]
	c.mu.Unlock()
	if !known {
		ours, exists, err := c.whose(ctx, op, id)
		if err != nil || !exists {
			return err
		}
		r.ours = ours
	}
	if !r.ours {
		return c.problem(k, cloud.ErrForbidden, nil, "CreateInterface did not make it for this instance")
	}
	err = c.destroy(ctx, op, id)
	if err != nil {
		c.doubt()
	}
	return err
}

// whose tells whether an ENI exists and is ours. The own one may be nothing that
// the service for ENIs knows.
func (c *Client) whose(ctx context.Context, op, id string) (ours, exists bool, err error) {
	if own, err := c.isOwn(ctx, op, id); own || err != nil {
		return false, own, err
	}
	me, err := c.whoami(ctx, op)
	if err != nil {
		return false, false, err
	}
	e, err := c.detail(ctx, op, id)
	if errors.Is(err, cloud.ErrNotFound) {
		return false, false, nil
	}
	_, ours = c.isOurs(me, e)
	return ours, err == nil, err
}

// destroy detaches and deletes an ENI of ours, whatever state it is in. States lag:
// a refusal by the ENI's state is believed when it has lasted.
func (c *Client) destroy(ctx context.Context, op, id string) error {
	me, err := c.whoami(ctx, op)
	if err != nil {
		return err
	}
	k := call{op: op, object: id}
	detached := false
	var refused error
	believe := c.wait(c.settle)
	for w := c.wait(c.o.Wait); ; {
		state, err := c.status(ctx, op, id)
		if errors.Is(err, cloud.ErrNotFound) {
			state, err = available, nil // or it is too new; deleting it tells
		}
		switch {
		case err != nil:
		case state == inUse && !detached:
			err = c.change(ctx, k, me.instance, (*sdk.Client).DetachEniInstance)
			detached = err == nil
		case state == available:
			if err = c.deleteENI(ctx, k); err == nil {
				return nil
			}
		}
		switch {
		case isState(err) || errors.Is(err, cloud.ErrNotFound):
			refused = err
		case err != nil && detached:
			return partly(err, "it was detached")
		case err != nil:
			return err
		}
		more, ended := w.next(ctx)
		switch {
		case ended != nil && detached:
			return partly(c.problem(k, nil, ended, ""), "it was detached")
		case ended != nil:
			return c.problem(k, nil, ended, "")
		case refused != nil && believe.over():
			return partly(refused, "it may have been detached")
		case !more:
			return c.problem(k, cloud.ErrUnknown, nil, fmt.Sprintf("it is %s after %v", state, c.o.Wait))
		}
	}
}

// deleteENI deletes an ENI that is not attached. One that does not exist is fine.
func (c *Client) deleteENI(ctx context.Context, k call) error {
	k.mutates = true
	err := c.do(ctx, k, func(b *bce.BceClient) error {
		return (&sdk.Client{BceClient: b}).DeleteEni(&sdk.DeleteEniArgs{EniId: k.object, ClientToken: fresh()})
	})
	if err != nil && !errors.Is(err, cloud.ErrNotFound) {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.known, k.object)
	return nil
}
