package bce

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"slices"

	"github.com/baidubce/bce-sdk-go/bce"
	sdk "github.com/baidubce/bce-sdk-go/services/eni"
	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// fill puts the first addresses on an attached ENI and returns it as it is then.
// The clientTokens come from the Create's token, so that what an earlier attempt
// has put there does not come twice, also where describes do not show it yet. It
// also returns how many addresses were there before.
func (c *Client) fill(ctx context.Context, m machine, id string, w cloud.Create) (i cloud.Interface, had int, err error) {
	n, in, err := c.attached(ctx, m, id)
	if err != nil {
		return i, 0, err
	}
	if c.has6(in) && !n.mark.v6.IsValid() {
		if err := c.elect(ctx, &n); err != nil {
			return i, 0, err
		}
	}
	if i, err = show(n, m.self, in); err != nil {
		return i, 0, c.badAnswer(call{op: createOp, object: id, mutates: true}, err.Error())
	}
	i.Index, had = n.mark.index, len(i.Addresses)
	for _, f := range []eni.Family{eni.IPv4, eni.IPv6} {
		count := w.V4
		if f == eni.IPv6 {
			count = w.V6
		}
		have := countOf(i, f)
		if have >= count {
			continue
		}
		added, err := c.putFirst(ctx, w.Token, want{call: call{op: createOp, object: id, mutates: true}, in: in, family: f, n: count})
		i.Addresses = append(i.Addresses, added...)
		slices.SortFunc(i.Addresses, netip.Addr.Compare)
		i.Addresses = slices.Compact(i.Addresses)
		if err != nil && (countOf(i, f) == 0 || !errors.Is(err, cloud.ErrSubnetFull)) {
			return i, had, err
		}
	}
	c.made(w.Token)
	return i, had, nil
}

// putFirst adds the ENI's first addresses of a family. Where an attempt with another
// count has used a clientToken, what is missing is asked for by a new one.
func (c *Client) putFirst(ctx context.Context, token string, w want) ([]netip.Addr, error) {
	w.token = func(offset, count int) string { return derived(token, "fill", w.object, w.family, offset, count) }
	got, err := c.put(ctx, w)
	if isCode(err, mismatch) {
		w.n -= len(got)
		w.token = func(int, int) string { return fresh() }
		var more []netip.Addr
		more, err = c.put(ctx, w)
		got = append(got, more...)
	}
	return got, err
}

func countOf(i cloud.Interface, f eni.Family) int {
	n := 0
	for _, a := range i.Addresses {
		if eni.FamilyOf(a) == f {
			n++
		}
	}
	return n
}

// attached waits until the cloud shows the ENI as it is: in use, with an address.
func (c *Client) attached(ctx context.Context, m machine, id string) (nic, network, error) {
	k := call{op: createOp, object: id, mutates: true}
	for w := c.wait(c.settle); ; {
		e, err := c.detail(ctx, createOp, id)
		n := nic{Eni: e}
		if err == nil {
			n.mark, n.ours = c.isOurs(m.self, e)
			if n.ours && e.Status == inUse && e.InstanceId == m.instance {
				in, err := c.network(ctx, createOp, e.SubnetId)
				return n, in, err
			}
		} else if !passing(err) && !errors.Is(err, cloud.ErrNotFound) {
			return nic{}, network{}, err
		}
		if more, ended := w.next(ctx); ended != nil {
			return nic{}, network{}, c.problem(k, nil, ended, "")
		} else if !more {
			return nic{}, network{}, c.badAnswer(k, "the ENI that was attached is not shown so")
		}
	}
}

// elect makes the ENI's lowest IPv6 address its primary one and writes that down.
// It comes before any other address, so there is one to choose from.
func (c *Client) elect(ctx context.Context, n *nic) error {
	k := call{op: createOp, object: n.EniId, mutates: true}
	for _, ip := range n.Ipv6PrivateIpSet {
		a, err := netip.ParseAddr(ip.PrivateIpAddress)
		if err != nil || !a.Is6() {
			return c.badAnswer(k, "its IPv6 address is unreadable")
		}
		if !n.mark.v6.IsValid() || a.Less(n.mark.v6) {
			n.mark.v6 = a
		}
	}
	if !n.mark.v6.IsValid() {
		return c.badAnswer(k, "the ENI was made without an IPv6 address")
	}
	text := n.mark.String()
	n.Description = cmp.Or(text, n.Description)
	args := &sdk.UpdateEniArgs{EniId: n.EniId, Description: &text, ClientToken: fresh()}
	return c.do(ctx, k, func(b *bce.BceClient) error { return (&sdk.Client{BceClient: b}).UpdateEni(args) })
}
