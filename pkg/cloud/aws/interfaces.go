package aws

import (
	"context"

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

// Interfaces implements driver.Driver.
func (d *Driver) Interfaces(ctx context.Context, f driver.Filter) ([]driver.Interface, error) {
	ask := func(filters []types.Filter, token *string) ([]driver.Interface, *string, error) {
		return d.onePage(ctx, filters, token)
	}
	switch {
	case f.Attached.Instance != "":
		return listAll(anyOf("attachment.instance-id", []string{f.Attached.Instance}), ask)
	case f.Made != "" && f.Token != "":
		return listAll(allTags(map[string]string{tagNode: f.Made, tagToken: f.Token}), ask)
	case f.Made != "":
		return listAll(allTags(map[string]string{tagNode: f.Made}), ask)
	case f.Loose != "":
		return listAll(append(allTags(map[string]string{tagCluster: f.Loose}), anyOf("status", []string{"available"})...), ask)
	}
	return listByID("network-interface-id", f.IDs, ask)
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
	var next *string
	if p.Interfaces, next, err = d.onePage(ctx, filters, given(s.Next)); err != nil {
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
