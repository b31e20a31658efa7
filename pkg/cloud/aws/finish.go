package aws

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// finish does what an ENI lacks before pods can use it. It is filled before it is
// attached: an ENI that the node sees has its addresses.
func (c *Client) finish(ctx context.Context, s *session, n nic, w cloud.Create) (*nic, error) {
	if n.pending && !c.isFull(n, w) {
		if _, err := c.await(ctx, s, n.ID, "made", func(now *nic) bool { return now != nil && !now.pending }); err != nil {
			return nil, err
		}
	}
	for _, f := range []eni.Family{eni.IPv4, eni.IPv6} {
		if err := c.fill(ctx, s, &n, f, w); err != nil {
			return nil, err
		}
	}
	return c.join(ctx, s, n)
}

// isFull tells whether fill has nothing to do.
func (c *Client) isFull(n nic, w cloud.Create) bool {
	has, _ := c.truth(&n)
	return len(ofFamily(has, eni.IPv4)) >= w.V4 && len(ofFamily(has, eni.IPv6)) >= w.V6
}

// join attaches the ENI, unless it is, and lets it go with the instance. That is said
// last, and each time, since it tells whether the ENI is attached at all: a describe
// may show an attachment that is no more.
func (c *Client) join(ctx context.Context, s *session, n nic) (*nic, error) {
	known, mine, dead := n.attachment != "", "", ""
	for began := c.now(); c.now().Sub(began) <= mostWait; known = false {
		if !known {
			var err error
			if mine, err = c.attach(ctx, s, n.ID); err != nil {
				return nil, err
			}
		}
		on, err := c.await(ctx, s, n.ID, "attached", func(now *nic) bool {
			attached := now != nil && now.Index >= 0 && now.attachment != dead && (mine == "" || now.attachment == mine)
			return attached || mine == "" && now != nil && now.attachment == ""
		})
		if err != nil {
			return nil, err
		}
		if on.Index >= 0 {
			_, err = insist(ctx, c, s.api.ModifyNetworkInterfaceAttribute, &ec2.ModifyNetworkInterfaceAttributeInput{
				NetworkInterfaceId: aws.String(on.ID),
				Attachment:         &types.NetworkInterfaceAttachmentChanges{AttachmentId: aws.String(on.attachment), DeleteOnTermination: aws.Bool(true)}})
			if !errors.Is(err, cloud.ErrNotFound) {
				on.Addresses, _ = c.truth(on)
				return on, err
			}
			dead = on.attachment
		}
		// It is not attached, or on its way off, or a describe shows what was before.
		if err := pause(ctx, c.pace[0]); err != nil {
			return nil, unsettled(err)
		}
	}
	return nil, because(cloud.ErrUnknown, "ENI %s is not attached after %s", n.ID, mostWait)
}

// fill puts the addresses that are missing. Fewer are fine where the subnet has no
// more; with none of a family that pods want the ENI is of no use.
func (c *Client) fill(ctx context.Context, s *session, on *nic, f eni.Family, w cloud.Create) error {
	want := w.V4
	if f == eni.IPv6 {
		want = w.V6
	}
	on.Addresses, _ = c.truth(on)
	have := len(ofFamily(on.Addresses, f))
	if want <= have {
		return nil
	}
	got, err := c.assign(ctx, s, on, f, want-have)
	on.Addresses = union(on.Addresses, got)
	full := errors.Is(err, cloud.ErrSubnetFull) || errors.Is(err, cloud.ErrLimit)
	if full && have+len(got) > 0 {
		return nil
	}
	return err
}

// attach gives the ENI the lowest device index that is free, and returns the ID of the
// attachment, if it was this call that made it. Only one at a time chooses. Where EC2
// refuses the index that is free as far as is known, describes tell; where they lag, the
// next is tried.
func (c *Client) attach(ctx context.Context, s *session, id string) (attachment string, err error) {
	leave, err := enter(ctx, c.attaching)
	if err != nil {
		return "", unsettled(err)
	}
	defer leave()
	limits, err := c.knownLimits(ctx)
	if err != nil {
		return "", unsettled(err)
	}
	if free := c.firstFree(id, limits.ENIs); free > 0 {
		attachment, err := c.attachAt(ctx, s, id, free)
		if err == nil || isAttached(err) { // by a call whose answer was lost, as will show
			return attachment, nil
		}
		if !isIndexTaken(err) {
			return "", err
		}
	}
	indexes, err := c.indexes(ctx, s, id, limits.ENIs)
	if err != nil {
		return "", unsettled(err)
	}
	for _, index := range indexes {
		attachment, err := c.attachAt(ctx, s, id, index)
		if err == nil || isAttached(err) { // by a call whose answer was lost, as will show
			return attachment, nil
		}
		if !isIndexTaken(err) {
			return "", err
		}
	}
	return "", because(cloud.ErrLimit, "the instance has an ENI at each of the device indexes %v", indexes)
}

// attachAt makes the call. What was just made EC2 may not find everywhere yet.
func (c *Client) attachAt(ctx context.Context, s *session, id string, index int) (attachment string, err error) {
	for wait := c.pace[0]; ; wait *= 2 {
		out, err := insist(ctx, c, s.api.AttachNetworkInterface, &ec2.AttachNetworkInterfaceInput{
			DeviceIndex: aws.Int32(int32(index)), InstanceId: aws.String(s.instance), NetworkInterfaceId: aws.String(id)})
		if err == nil {
			c.placed(id, index)
			return aws.ToString(out.AttachmentId), nil
		}
		if !isNoENI(err) && codeOf(err) != notYet || wait > c.pace[1] {
			return "", err
		}
		if err := pause(ctx, wait); err != nil {
			return "", unsettled(err)
		}
	}
}

// indexes are the device indexes to try: those that are free, then the others, for
// describes may show what has left.
func (c *Client) indexes(ctx context.Context, s *session, id string, enis int) ([]int, error) {
	raw, err := c.describe(ctx, s, byIDs("attachment.instance-id", []string{s.instance}))
	if err != nil {
		return nil, err
	}
	taken := map[int]bool{}
	for _, r := range raw {
		own := aws.ToString(r.NetworkInterfaceId) == id // its attachment is no more
		if a := r.Attachment; !own && a != nil && aws.ToInt32(a.NetworkCardIndex) == 0 {
			taken[int(aws.ToInt32(a.DeviceIndex))] = true
		}
	}
	var free, rest []int
	for index := 1; index < enis; index++ {
		if taken[index] {
			rest = append(rest, index)
		} else {
			free = append(free, index)
		}
	}
	return append(free, rest...), nil
}

// await waits until describes show the ENI as it is to be, nil if it is gone. A look
// that EC2 refuses for its rate is no reason to end: the next one comes.
func (c *Client) await(ctx context.Context, s *session, id, what string, is func(*nic) bool) (*nic, error) {
	began := c.now()
	for wait := max(c.pace[0], c.usual*3/4); ; wait = min(wait*3/2, c.pace[1]) {
		now, err := c.look(ctx, s, id)
		switch {
		case err != nil && !errors.Is(err, cloud.ErrThrottled):
			return nil, unsettled(err)
		case err == nil && is(now):
			return now, nil
		case c.now().Sub(began) > mostWait:
			return nil, because(cloud.ErrUnknown, "ENI %s is not %s after %s", id, what, mostWait)
		}
		if err := pause(ctx, wait); err != nil {
			return nil, because(cloud.ErrUnknown, "given up before ENI %s was %s: %v", id, what, err)
		}
	}
}

// undo leaves nothing of an ENI where a later step was refused for good, so that the
// error is the whole truth. Where asking again may do, or the outcome is not known,
// the ENI waits for the next call with its token.
func (c *Client) undo(ctx context.Context, s *session, id, token string, cause error) error {
	switch {
	case errors.Is(cause, cloud.ErrLimit), errors.Is(cause, cloud.ErrForbidden), errors.Is(cause, cloud.ErrSubnetFull), errors.Is(cause, cloud.ErrNotFound):
	default:
		return unsettled(cause)
	}
	if err := c.remove(ctx, s, id, nil); err != nil {
		return unsettled(errors.Join(cause, err))
	}
	c.again(token)
	if isNoENI(cause) {
		return unsettled(cause) // the same call makes another one
	}
	return cause
}
