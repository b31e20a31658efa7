package aws

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// Gone implements driver.Driver. Instances are asked for by a filter: named as IDs, one
// that EC2 does not know would fail the question after all.
func (d *Driver) Gone(ctx context.Context, instances []string) (gone []string, err error) {
	there, err := d.instances(ctx, instances)
	if err != nil {
		return nil, err
	}
	for _, id := range instances {
		if !slices.ContainsFunc(there, func(i types.Instance) bool { return aws.ToString(i.InstanceId) == id && !isTerminated(i) }) {
			gone = append(gone, id)
		}
	}
	return gone, nil
}

func isTerminated(i types.Instance) bool {
	return i.State != nil && i.State.Name == types.InstanceStateNameTerminated
}

// instances returns those of the instances that EC2 knows.
func (d *Driver) instances(ctx context.Context, ids []string) (all []types.Instance, err error) {
	for some := range slices.Chunk(ids, perFilter) {
		in := &ec2.DescribeInstancesInput{Filters: anyOf("instance-id", some), MaxResults: aws.Int32(d.page)}
		err = pages(func(token *string) (*string, error) {
			in.NextToken = token
			out, err := read(ctx, d, &d.api.DescribeInstances, in)
			if err != nil {
				return nil, err
			}
			for _, r := range out.Reservations {
				all = append(all, r.Instances...)
			}
			return out.NextToken, nil
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}
