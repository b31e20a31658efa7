package bce

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/baidubce/bce-sdk-go/bce"
	"github.com/baidubce/bce-sdk-go/model"
	sdk "github.com/baidubce/bce-sdk-go/services/eni"
	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

const createOp = "CreateInterface"

// CreateInterface makes an ENI, attaches it and fills it. What an earlier call with
// the token has done is found by the ENI's description, and by clientTokens that
// come from the token.
func (c *Client) CreateInterface(ctx context.Context, w cloud.Create) (made cloud.Interface, err error) {
	defer plain(&err)
	k := call{op: createOp, object: w.Subnet}
	if !validToken(w.Token) {
		return cloud.Interface{}, c.problem(k, cloud.ErrForbidden, ctx.Err(), "the token must have 1 to 64 visible ASCII characters")
	}
	v, known := c.recollect(w.Token)
	if !known {
		if v, err = c.look(ctx, createOp); err != nil {
			return cloud.Interface{}, err
		}
	}
	defer func() {
		if err != nil && !errors.Is(err, cloud.ErrThrottled) {
			c.doubt()
		}
	}()
	id, err := c.begin(ctx, v, w)
	if err != nil {
		return cloud.Interface{}, err
	}
	if err := c.attach(ctx, id, v.machine.instance); err != nil {
		return cloud.Interface{}, c.undo(ctx, id, w.Token, err)
	}
	made, had, err := c.fill(ctx, v.machine, id, w)
	switch {
	case err == nil:
		return made, nil
	case had > 0: // it was ready once, and pods may use it
		return cloud.Interface{}, partly(err, "the ENI has some addresses")
	}
	return cloud.Interface{}, c.undo(ctx, id, w.Token, err)
}

// begin returns the ENI of the token, which it makes if there is none.
func (c *Client) begin(ctx context.Context, v view, w cloud.Create) (id string, err error) {
	if id := byToken(v, w.Token); id != "" {
		return id, nil
	}
	k := call{op: createOp, object: w.Subnet}
	limits := c.limits(v.machine, 1)
	switch {
	case v.machine.kind == BBC:
		return "", c.problem(k, cloud.ErrLimit, nil, "instances of this kind have their own ENI alone")
	case w.V4 > limits.PerENI(eni.IPv4) || w.V6 > limits.PerENI(eni.IPv6):
		return "", c.problem(k, cloud.ErrLimit, nil, fmt.Sprintf("an ENI may have %d and %d addresses besides the primary",
			limits.PerENI(eni.IPv4), limits.PerENI(eni.IPv6)))
	}
	n, err := c.network(ctx, createOp, w.Subnet)
	if err != nil {
		return "", err
	}
	if w.V6 > 0 && !c.has6(n) {
		return "", c.problem(k, cloud.ErrForbidden, nil, "ENIs in this subnet have no IPv6")
	}
	return c.create(ctx, v, w)
}

// byToken returns the oldest ENI of the token, "" if there is none.
func byToken(v view, token string) string {
	for _, n := range v.nics {
		if n.ours && n.mark.token == token {
			return n.EniId
		}
	}
	return ""
}

// create makes the ENI with its primary address. The cloud remembers clientTokens for
// a day: one that was used for an ENI which was undone since leads to nothing, so
// the next generation of it is tried.
func (c *Client) create(ctx context.Context, v view, w cloud.Create) (string, error) {
	for tries := 0; ; tries++ {
		p, err := c.plan(v, w.Token)
		if err != nil {
			return "", err
		}
		id, err := c.createENI(ctx, v.machine, w, p)
		if !errors.Is(err, cloud.ErrThrottled) {
			c.begun(w.Token)
		}
		if err != nil && !isCode(err, mismatch) {
			return "", err
		}
		if id, err = c.appears(ctx, v.machine, w.Token, id); err != nil {
			return "", partly(err, "the ENI was made")
		}
		if id != "" {
			return id, nil
		}
		if tries == 3 {
			return "", c.badAnswer(call{op: createOp, object: w.Subnet, mutates: true}, "the ENI that was made never appears")
		}
		c.forget(w.Token)
	}
}

// plan returns how to go about the token, the same in each call of this process:
// the cloud wants a repetition to say the same.
func (c *Client) plan(v view, token string) (plan, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, ok := c.making[token]
	if ok && p.mark.token != "" {
		return p, nil
	}
	taken := map[int]bool{}
	for _, n := range v.nics {
		taken[n.mark.index], taken[n.shown.Index] = true, true
	}
	for _, r := range c.known {
		taken[r.mark.index], taken[r.index] = true, true // one that was made since, too
	}
	for _, other := range c.making {
		taken[other.mark.index] = true
	}
	index := 1
	for taken[index] {
		index++
	}
	if index > eni.MaxIndex {
		return plan{}, c.problem(call{op: createOp}, cloud.ErrLimit, nil, "every device index is taken")
	}
	p.mark = mark{instance: v.machine.instance, index: index, asked: time.Now().UTC(), token: token, cluster: c.o.Cluster}
	c.making[token] = p
	return p, nil
}

// begun notes that there may be an ENI of the token.
func (c *Client) begun(token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.making[token]
	p.begun = true
	c.making[token] = p
}

// forget makes the next attempt at the token a new one.
func (c *Client) forget(token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	generation := c.making[token].generation + 1
	maps.DeleteFunc(c.making, func(_ string, p plan) bool { return len(c.making) > mostForgotten && p.mark.token == "" })
	c.making[token] = plan{generation: generation}
}

// mostForgotten is how many tokens without a plan are kept. To lose one costs a
// repetition of its first step.
const mostForgotten = 500

// made ends the making of a token: its index is now the ENI's own affair.
func (c *Client) made(token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.making, token)
}

// createENI makes the call. Its body depends on nothing that changes.
func (c *Client) createENI(ctx context.Context, m machine, w cloud.Create, p plan) (string, error) {
	n, err := c.network(ctx, createOp, w.Subnet)
	if err != nil {
		return "", err
	}
	g := c.groups
	if len(g.plain)+len(g.enterprise) == 0 {
		g = m.groups
	}
	args := &sdk.CreateEniArgs{
		ClientToken: derived(w.Token, "create", m.instance, p.generation),
		Name:        nameOf(m.instance), Description: p.mark.String(), SubnetId: w.Subnet,
		SecurityGroupIds: g.plain, EnterpriseSecurityGroupIds: g.enterprise,
		PrivateIpSet: []sdk.PrivateIp{{Primary: true}},
	}
	if c.has6(n) {
		args.Ipv6PrivateIpSet = []sdk.PrivateIp{{}}
	}
	for key, value := range c.o.Tags {
		args.Tags = append(args.Tags, model.TagModel{TagKey: key, TagValue: value})
	}
	slices.SortFunc(args.Tags, func(a, b model.TagModel) int { return strings.Compare(a.TagKey, b.TagKey) })
	k := call{op: createOp, object: w.Subnet, mutates: true}
	var a *sdk.CreateEniResult
	if err := c.do(ctx, k, func(b *bce.BceClient) (err error) {
		a, err = (&sdk.Client{BceClient: b}).CreateEni(args)
		return err
	}); err != nil {
		return "", err
	}
	if !validID(a.EniId) {
		return "", c.badAnswer(k, fmt.Sprintf("the new ENI's id is %q", a.EniId))
	}
	return a.EniId, nil
}

// has6 tells whether ENIs in the subnet have IPv6 addresses.
func (c *Client) has6(n network) bool { return c.o.IPv6 && n.v6.IsValid() }

// appears waits until the ENI is shown with its token, by its id or, where that is
// not known, in the list. It returns "" for one that never is.
func (c *Client) appears(ctx context.Context, m machine, token, id string) (string, error) {
	for w := c.wait(c.settle); ; {
		found, err := c.shownAs(ctx, m, token, id)
		if found != "" || err != nil && !passing(err) {
			return found, err
		}
		if more, ended := w.next(ctx); ended != nil {
			return "", c.problem(call{op: createOp, object: id}, nil, ended, "")
		} else if !more {
			return "", err
		}
	}
}

func (c *Client) shownAs(ctx context.Context, m machine, token, id string) (string, error) {
	if id == "" {
		list, err := c.list(ctx, call{op: createOp, object: m.instance}, sdk.ListEniArgs{VpcId: m.vpc, Name: nameOf(m.instance)})
		for _, e := range list {
			if mark, ours := c.isOurs(m.self, e); ours && mark.token == token {
				return e.EniId, nil
			}
		}
		return "", err
	}
	e, err := c.detail(ctx, createOp, id)
	if errors.Is(err, cloud.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	mark, ours := c.isOurs(m.self, e)
	if !ours || mark.token != token {
		return "", c.badAnswer(call{op: createOp, object: id, mutates: true}, "the ENI that was made is not ours")
	}
	c.mu.Lock()
	c.known[id] = record{subnet: e.SubnetId, ours: true, mark: mark, index: mark.index, seen: time.Now()}
	c.mu.Unlock()
	return id, nil
}

// undo deletes an ENI that could not be made ready, where the failure is for good.
// After others a later call goes on with it.
func (c *Client) undo(ctx context.Context, id, token string, why error) error {
	switch cloud.Kind(why) {
	case cloud.ErrLimit, cloud.ErrSubnetFull, cloud.ErrForbidden, cloud.ErrNotFound:
	default:
		return partly(why, "the ENI was made")
	}
	if err := c.destroy(ctx, createOp, id); err != nil {
		return partly(why, "the ENI was made")
	}
	c.forget(token)
	return why
}
