package aws

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// Gone implements driver.Driver.
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
func (d *Driver) instances(ctx context.Context, ids []string) ([]types.Instance, error) {
	return listByID("instance-id", ids, func(filters []types.Filter, token *string) (list []types.Instance, next *string, err error) {
		out, err := read(ctx, d, &d.api.DescribeInstances, &ec2.DescribeInstancesInput{Filters: filters, MaxResults: aws.Int32(d.page), NextToken: token})
		if err != nil {
			return nil, nil, err
		}
		for _, r := range out.Reservations {
			list = append(list, r.Instances...)
		}
		return list, out.NextToken, nil
	})
}
