package aws

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/enipool/enipool/pkg/cloud"
)

// Alive implements driver.Driver.
func (d *Driver) Alive(ctx context.Context, instances []string) (map[string]cloud.State, error) {
	there, err := d.findInstances(ctx, instances)
	if err != nil {
		return nil, err
	}
	states := map[string]cloud.State{}
	for _, id := range instances {
		states[id] = cloud.Gone
	}
	for _, i := range there {
		if id := aws.ToString(i.InstanceId); states[id] != "" {
			states[id] = stateOf(i)
		}
	}
	return states, nil
}

func stateOf(i types.Instance) cloud.State {
	if i.State == nil {
		return cloud.Exists
	}
	switch i.State.Name {
	case types.InstanceStateNameRunning:
		return cloud.Running
	case types.InstanceStateNameStopped:
		return cloud.Stopped
	case types.InstanceStateNameTerminated:
		return cloud.Gone
	}
	return cloud.Exists
}

// findInstances returns those of the instances that EC2 knows.
func (d *Driver) findInstances(ctx context.Context, ids []string) ([]types.Instance, error) {
	return listByID("instance-id", ids, func(filters []types.Filter, token *string) (list []types.Instance, next *string, err error) {
		out, err := askEC2(ctx, d, &d.api.DescribeInstances, &ec2.DescribeInstancesInput{Filters: filters, MaxResults: aws.Int32(d.page), NextToken: token})
		if err != nil {
			return nil, nil, err
		}
		for _, r := range out.Reservations {
			list = append(list, r.Instances...)
		}
		return list, out.NextToken, nil
	})
}
