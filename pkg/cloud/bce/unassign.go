package bce

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/baidubce/bce-sdk-go/bce"
	"github.com/baidubce/bce-sdk-go/services/bbc"
	"github.com/baidubce/bce-sdk-go/services/bcc"
	bccapi "github.com/baidubce/bce-sdk-go/services/bcc/api"
	sdk "github.com/baidubce/bce-sdk-go/services/eni"
	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// UnassignAddresses takes secondary addresses from an ENI of the instance. Describes
// lag, so it asks for all of them to be deleted whatever they show; a batch with
// one that is not there goes one by one.
func (c *Client) UnassignAddresses(ctx context.Context, id string, addrs []netip.Addr) (err error) {
	defer plain(&err)
	const op = "UnassignAddresses"
	k := call{op: op, object: id, mutates: true}
	if err := ctx.Err(); err != nil {
		return c.problem(k, nil, err, "")
	}
	if len(addrs) == 0 {
		return nil
	}
	r, here, err := c.record(ctx, op, id)
	if err != nil || !here {
		return err
	}
	in, err := c.network(ctx, op, r.subnet)
	if err != nil {
		return err
	}
	changed := false
	for _, f := range []eni.Family{eni.IPv4, eni.IPv6} {
		var texts []string
		for _, a := range addrs {
			if eni.FamilyOf(a) == f && in.may(a) && !slices.Contains(texts, a.String()) {
				texts = append(texts, a.String())
			}
		}
		for part := range slices.Chunk(texts, batch) {
			err := c.take(ctx, k, f, part)
			if err != nil && changed {
				err = partly(err, "some addresses were taken")
			}
			if errors.Is(err, cloud.ErrNotFound) {
				return nil // the ENI is gone, and its addresses with it
			}
			if err != nil {
				return err
			}
			changed = true
		}
	}
	return nil
}

// take takes a batch. ErrNotFound is about the ENI.
func (c *Client) take(ctx context.Context, k call, f eni.Family, texts []string) error {
	err := c.takeCall(ctx, k, f, texts)
	if !isMissing(err) {
		return err
	}
	changed := false
	for _, text := range texts {
		if len(texts) == 1 {
			break
		}
		err := c.takeCall(ctx, k, f, []string{text})
		switch {
		case isMissing(err):
		case err != nil && changed:
			return partly(err, fmt.Sprintf("addresses before %s were taken", text))
		case err != nil:
			return err
		default:
			changed = true
		}
	}
	return nil
}

// isMissing tells whether the ENI lacks an address.
func isMissing(err error) bool { return isCode(err, "privateipnotexist") }

func (c *Client) takeCall(ctx context.Context, k call, f eni.Family, texts []string) error {
	own, err := c.isOwn(ctx, k.op, k.object)
	if err != nil {
		return err
	}
	me, err := c.whoami(ctx, k.op)
	if err != nil {
		return err
	}
	k.bare = own && me.kind == BBC
	return c.do(ctx, k, func(b *bce.BceClient) error {
		switch {
		case !own:
			return (&sdk.Client{BceClient: b}).BatchDeletePrivateIp(&sdk.EniBatchPrivateIpArgs{EniId: k.object,
				IsIpv6: f == eni.IPv6, PrivateIpAddresses: texts, ClientToken: fresh()})
		case k.bare:
			return (&bbc.Client{BceClient: b}).BatchDelIP(&bbc.BatchDelIpArgs{InstanceId: me.instance, PrivateIps: texts,
				ClientToken: fresh()})
		}
		return (&bcc.Client{BceClient: b}).BatchDelIP(&bccapi.BatchDelIpArgs{InstanceId: me.instance, PrivateIps: texts,
			ClientToken: fresh()})
	})
}
