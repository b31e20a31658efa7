package aws

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/enipool/enipool/pkg/cloud"
)

// DeleteInterface implements cloud.Cloud.
func (c *Client) DeleteInterface(ctx context.Context, id string) (err error) {
	defer c.named(&err, "DeleteInterface", id)
	s, err := c.connect(ctx)
	if err != nil {
		return err
	}
	raw, err := c.describe(ctx, s, byIDs("network-interface-id", []string{id}))
	if err != nil {
		return err
	}
	if len(raw) == 0 {
		if before, seen := c.lastSeen(id); seen && before.Ours { // a describe of before it was made
			return c.remove(ctx, s, id, nil)
		}
		return nil
	}
	a := raw[0].Attachment
	if tagged(raw[0], tagNode) != s.instance || a != nil && aws.ToString(a.InstanceId) != s.instance {
		return because(cloud.ErrForbidden, "it was not made for instance %s, or another one has it", s.instance)
	}
	return c.remove(ctx, s, id, raw)
}

// remove detaches and deletes an ENI that was made for the node. It looks again after
// each step: describes lag, and EC2 refuses to delete while it detaches. raw is what a
// describe has just shown of it, if one has. Once it has begun, requests that EC2 refuses
// for their rate are made again.
func (c *Client) remove(ctx context.Context, s *session, id string, raw []types.NetworkInterface) error {
	began, begun := c.now(), false
	for wait := c.pace[0]; ; wait = min(wait*3/2, c.pace[1]) {
		gone, step, err := c.removeStep(ctx, s, id, raw)
		begun, raw = begun || step, nil
		if err != nil && !(begun && errors.Is(err, cloud.ErrThrottled)) {
			return begunOr(begun, err)
		}
		if step && !gone {
			wait = max(wait, c.usual) // it takes a while
		}
		if gone {
			c.forgetENI(id)
			return nil
		}
		if c.now().Sub(began) > mostWait {
			return because(cloud.ErrUnknown, "ENI %s is not detached after %s", id, mostWait)
		}
		if err := pause(ctx, wait); err != nil {
			return because(cloud.ErrUnknown, "given up while ENI %s was being detached: %v", id, err)
		}
	}
}

// removeStep does what comes next, if anything can be done now.
func (c *Client) removeStep(ctx context.Context, s *session, id string, raw []types.NetworkInterface) (gone, step bool, err error) {
	if raw == nil {
		if raw, err = c.describe(ctx, s, byIDs("network-interface-id", []string{id})); err != nil {
			return false, false, err
		}
	}
	if len(raw) > 0 && raw[0].Attachment != nil {
		a := raw[0].Attachment
		if a.Status == types.AttachmentStatusDetaching || a.Status == types.AttachmentStatusDetached {
			return false, false, nil
		}
		_, err := change(ctx, c, s.api.DetachNetworkInterface, &ec2.DetachNetworkInterfaceInput{AttachmentId: a.AttachmentId})
		if errors.Is(err, cloud.ErrNotFound) || codeOf(err) == notYet {
			return false, false, nil
		}
		return false, err == nil, err
	}
	_, err = change(ctx, c, s.api.DeleteNetworkInterface, &ec2.DeleteNetworkInterfaceInput{NetworkInterfaceId: aws.String(id)})
	switch code := codeOf(err); {
	case err == nil, errors.Is(err, cloud.ErrNotFound):
		return true, true, nil
	case code == badValue, code == inUse, code == notYet:
		return false, false, nil // attached, as will show
	}
	return false, false, err
}
