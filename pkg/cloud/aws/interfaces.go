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
	err = pages(func(token *string) (*string, error) {
		some, next, err := d.onePage(ctx, filters, token)
		all = append(all, some...)
		return next, err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// Page implements driver.Driver.
func (d *Driver) Page(ctx context.Context, s driver.Scan) (p driver.Page, err error) {
	filters := anyOf("vpc-id", []string{s.VPC})
	switch {
	case len(s.Attached) > 0:
		filters = anyOf("attachment.instance-id", s.Attached)
	case len(s.Made) > 0:
		filters = anyOf("tag:"+tagNode, s.Made)
	}
	var token, next *string
	if s.Next != "" {
		token = aws.String(s.Next)
	}
	if p.Interfaces, next, err = d.onePage(ctx, filters, token); err != nil {
		return driver.Page{}, err
	}
	p.Next = aws.ToString(next)
	if p.Next != "" && p.Next == s.Next {
		return driver.Page{}, errSamePage()
	}
	return p, nil
}

func (d *Driver) onePage(ctx context.Context, filters []types.Filter, token *string) (list []driver.Interface, next *string, err error) {
	out, err := read(ctx, d, &d.api.DescribeNetworkInterfaces, &ec2.DescribeNetworkInterfacesInput{Filters: filters, MaxResults: aws.Int32(d.page), NextToken: token})
	if err != nil {
		return nil, nil, err
	}
	for _, r := range out.NetworkInterfaces {
		list = append(list, d.readInterface(r))
	}
	return list, out.NextToken, nil
}
