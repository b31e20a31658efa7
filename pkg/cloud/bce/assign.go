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

// batch is the most addresses that a call adds or deletes.
const batch = 10

// AssignAddresses puts addresses on an ENI of the instance, so many a call as the
// API takes. Of a batch that is refused because less is left, what is left is asked
// for.
func (c *Client) AssignAddresses(ctx context.Context, id string, f eni.Family, n int) (got []netip.Addr, err error) {
	defer plain(&err)
	const op = "AssignAddresses"
	k := call{op: op, object: id, mutates: true}
	r, here, err := c.record(ctx, op, id)
	if err != nil {
		return nil, err
	}
	if !here {
		return nil, c.problem(k, cloud.ErrNotFound, ctx.Err(), "the instance has no such ENI")
	}
	in, err := c.network(ctx, op, r.subnet)
	if err != nil {
		return nil, err
	}
	if f == eni.IPv6 && (!c.has6(in) || !r.ours) {
		return nil, c.problem(k, cloud.ErrForbidden, ctx.Err(), "this ENI has no IPv6 addresses")
	}
	return c.put(ctx, want{call: k, in: in, family: f, n: n, token: func(int, int) string { return fresh() }})
}

// want is addresses for an ENI.
type want struct {
	call
	in     network
	family eni.Family
	n      int
	token  func(offset, count int) string // the clientToken of a batch
}

// put adds the addresses batch by batch and returns those that came. A batch that is
// refused because less is left is made smaller, until not even one comes.
func (c *Client) put(ctx context.Context, w want) (got []netip.Addr, err error) {
	defer func() { slices.SortFunc(got, netip.Addr.Compare) }()
	var refused error
	for size := batch; len(got) < w.n; {
		count := min(size, w.n-len(got))
		added, err := c.add(ctx, w, count, w.token(len(got), count))
		short := errors.Is(err, cloud.ErrSubnetFull) || errors.Is(err, cloud.ErrLimit)
		if short && count > 1 {
			size = count / 2
			if left := c.left(ctx, w, err); refused == nil && left > 0 && left < count {
				size = left
			}
			refused = err
			continue
		}
		before := len(got)
		for _, a := range added {
			if !slices.Contains(got, a) {
				got = append(got, a)
			}
		}
		if err != nil {
			return got, err
		}
		if len(got) == before {
			return got, refused // it has no more, and says so by silence
		}
	}
	return got, nil
}

// left returns how many addresses the ENI can still get, 0 if that is not known. It
// may be out of date.
func (c *Client) left(ctx context.Context, w want, refused error) int {
	if errors.Is(refused, cloud.ErrLimit) {
		q, err := c.quotaOf(ctx, call{op: w.op, object: w.object}, sdk.EniQuoteArgs{EniId: w.object})
		if err != nil {
			return 0
		}
		return q.AvailableQuantity
	}
	s, err := c.subnet(ctx, w.op, w.in.id)
	if err != nil || w.family == eni.IPv6 {
		return 0
	}
	return s.AvailableIp
}

// add is one call. What its answer says that can't be true makes the outcome
// unknown; the rest of it counts.
func (c *Client) add(ctx context.Context, w want, count int, token string) ([]netip.Addr, error) {
	texts, err := c.addCall(ctx, w, count, token)
	if err != nil {
		return nil, err
	}
	var added []netip.Addr
	for _, text := range texts {
		a, err := netip.ParseAddr(text)
		if err != nil || eni.FamilyOf(a) != w.family || a.Zone() != "" || !w.in.may(a) || slices.Contains(added, a) {
			return added, c.badAnswer(w.call, fmt.Sprintf("%q was added to an ENI in subnet %s", text, w.in.id))
		}
		added = append(added, a)
	}
	if len(added) > count {
		return nil, c.badAnswer(w.call, fmt.Sprintf("%d addresses were added in place of %d", len(added), count))
	}
	return added, nil
}

// addCall adds to an ENI of ours by the service for ENIs, to the instance's own by
// that of its kind.
func (c *Client) addCall(ctx context.Context, w want, count int, token string) (texts []string, err error) {
	own, err := c.isOwn(ctx, w.op, w.object)
	if err != nil {
		return nil, err
	}
	me, err := c.whoami(ctx, w.op)
	if err != nil {
		return nil, err
	}
	k, v6 := w.call, w.family == eni.IPv6
	switch {
	case !own:
		err = c.do(ctx, k, func(b *bce.BceClient) error {
			a, err := (&sdk.Client{BceClient: b}).BatchAddPrivateIp(&sdk.EniBatchPrivateIpArgs{EniId: w.object,
				IsIpv6: v6, PrivateIpAddressCount: count, ClientToken: token})
			texts = a.PrivateIpAddresses
			return err
		})
	case me.kind == BBC:
		k.bare = true
		err = c.do(ctx, k, func(b *bce.BceClient) error {
			a, err := (&bbc.Client{BceClient: b}).BatchAddIP(&bbc.BatchAddIpArgs{InstanceId: me.instance,
				SecondaryPrivateIpAddressCount: count, AllocateMultiIpv6Addr: v6, ClientToken: token})
			if err == nil {
				texts = a.PrivateIps
			}
			return err
		})
	default:
		err = c.do(ctx, k, func(b *bce.BceClient) error {
			a, err := (&bcc.Client{BceClient: b}).BatchAddIP(&bccapi.BatchAddIpArgs{InstanceId: me.instance,
				SecondaryPrivateIpAddressCount: count, AllocateMultiIpv6Addr: v6, ClientToken: token})
			if err == nil {
				texts = a.PrivateIps
			}
			return err
		})
	}
	return texts, err
}

// record returns what is known of an ENI of the instance, by the cloud if this
// process has not seen it yet.
func (c *Client) record(ctx context.Context, op, id string) (record, bool, error) {
	for looked := false; ; looked = true {
		c.mu.Lock()
		r, ok := c.known[id]
		c.mu.Unlock()
		if ok || looked || !validID(id) {
			return r, ok, nil
		}
		if _, err := c.look(ctx, op); err != nil {
			return record{}, false, err
		}
	}
}
