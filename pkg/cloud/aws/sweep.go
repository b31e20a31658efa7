package aws

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/enipool/enipool/pkg/cloud"
)

// mostSwept is how many ENIs one Sweep deletes, so that nodes that sweep at the same
// time leave the account's rate to others.
const mostSwept = 10

// Sweep deletes ENIs of the cluster that nobody will miss: attached to nothing, made
// longer ago than olderThan, for an instance that is gone. It returns their IDs. A
// node looks after its own ENIs otherwise. Without Options.Cluster it does nothing.
func (c *Client) Sweep(ctx context.Context, olderThan time.Duration) (deleted []string, err error) {
	defer c.named(&err, "Sweep", c.o.Cluster)
	if c.o.Cluster == "" {
		return nil, nil
	}
	s, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	leaked, err := c.leaked(ctx, s, olderThan)
	if err != nil || len(leaked) == 0 {
		return nil, err
	}
	alive, err := c.alive(ctx, s, leaked)
	if err != nil {
		return nil, err
	}
	for _, r := range leaked {
		id := aws.ToString(r.NetworkInterfaceId)
		if alive[tagged(r, tagNode)] || len(deleted) == mostSwept {
			continue
		}
		_, err := change(ctx, c, s.api.DeleteNetworkInterface, &ec2.DeleteNetworkInterfaceInput{NetworkInterfaceId: aws.String(id)})
		if errors.Is(err, cloud.ErrNotFound) {
			continue // another node was faster
		}
		if err != nil {
			return deleted, err
		}
		deleted = append(deleted, id)
	}
	return deleted, nil
}

// leaked returns the cluster's old ENIs that are attached to nothing. One that does
// not say when it was made is left to a person.
func (c *Client) leaked(ctx context.Context, s *session, olderThan time.Duration) ([]types.NetworkInterface, error) {
	raw, err := c.describe(ctx, s, append(byTags(map[string]string{tagCluster: c.o.Cluster}), byIDs("status", []string{"available"})...))
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(raw, func(r types.NetworkInterface) bool {
		created, err := time.Parse(time.RFC3339Nano, tagged(r, tagCreated))
		young := err != nil || c.now().Sub(created) < olderThan
		node := tagged(r, tagNode)
		return young || r.Attachment != nil || r.Status != types.NetworkInterfaceStatusAvailable || node == "" || node == s.instance ||
			tagged(r, tagCluster) != c.o.Cluster
	}), nil
}

// alive tells which of the instances that ENIs were made for EC2 still knows.
func (c *Client) alive(ctx context.Context, s *session, list []types.NetworkInterface) (map[string]bool, error) {
	var nodes []string
	for _, r := range list {
		nodes = append(nodes, tagged(r, tagNode))
	}
	alive := map[string]bool{}
	in := &ec2.DescribeInstancesInput{Filters: byIDs("instance-id", nodes), MaxResults: aws.Int32(perPage)}
	err := pages(func(token *string) (*string, error) {
		in.NextToken = token
		out, err := read(ctx, c, s.api.DescribeInstances, in)
		if err != nil {
			return nil, err
		}
		for _, r := range out.Reservations {
			for _, i := range r.Instances {
				if i.State == nil || i.State.Name != types.InstanceStateNameTerminated {
					alive[aws.ToString(i.InstanceId)] = true
				}
			}
		}
		return out.NextToken, nil
	})
	return alive, err
}
