package aws

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/enipool/enipool/pkg/cloud/driver"
)

// Tags that ENIs carry as their mark.
const (
	tagNode    = "enipool/node" // ID of the instance that they were made for
	tagToken   = "enipool/token"
	tagCreated = "enipool/created" // by the clock of the node
	tagCluster = "enipool/cluster"
)

// Interfaces implements driver.Driver. ENIs are asked for by filters: named as IDs, one
// that EC2 does not know would fail the question after all.
func (d *Driver) Interfaces(ctx context.Context, f driver.Filter) ([]driver.Interface, error) {
	switch {
	case f.Attached.Instance != "":
		return d.describe(ctx, anyOf("attachment.instance-id", []string{f.Attached.Instance}))
	case f.Made != "" && f.Token != "":
		return d.describe(ctx, allTags(map[string]string{tagNode: f.Made, tagToken: f.Token}))
	case f.Made != "":
		return d.describe(ctx, allTags(map[string]string{tagNode: f.Made}))
	case f.Loose != "":
		return d.describe(ctx, append(allTags(map[string]string{tagCluster: f.Loose}), anyOf("status", []string{"available"})...))
	}
	var all []driver.Interface
	for some := range slices.Chunk(f.IDs, perFilter) {
		list, err := d.describe(ctx, anyOf("network-interface-id", some))
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
}

// describe returns the ENIs of all pages.
func (d *Driver) describe(ctx context.Context, filters []types.Filter) (all []driver.Interface, err error) {
	in := &ec2.DescribeNetworkInterfacesInput{Filters: filters, MaxResults: aws.Int32(d.page)}
	err = pages(func(token *string) (*string, error) {
		in.NextToken = token
		out, err := read(ctx, d, &d.api.DescribeNetworkInterfaces, in)
		if err != nil {
			return nil, err
		}
		for _, r := range out.NetworkInterfaces {
			all = append(all, d.readInterface(r))
		}
		return out.NextToken, nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}
