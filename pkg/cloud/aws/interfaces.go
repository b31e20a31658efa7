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
func (d *Driver) Interfaces(ctx context.Context, filter driver.Filter) ([]driver.Interface, error) {
	ask := func(filters []types.Filter, token *string) ([]driver.Interface, *string, error) {
		return d.onePage(ctx, filters, token)
	}
	switch {
	case filter.Attached.Instance != "":
		return listAll(anyOf("attachment.instance-id", []string{filter.Attached.Instance}), ask)
	case filter.Made != "" && filter.Token != "":
		return listAll(allTags(map[string]string{tagNode: filter.Made, tagToken: filter.Token}), ask)
	case filter.Made != "":
		return listAll(allTags(map[string]string{tagNode: filter.Made}), ask)
	case filter.Loose != "":
		return listAll(append(allTags(map[string]string{tagCluster: filter.Loose}), anyOf("status", []string{"available"})...), ask)
	}
	return listByID("network-interface-id", filter.IDs, ask)
}

// Page implements driver.Driver.
func (d *Driver) Page(ctx context.Context, scan driver.Scan) (out driver.Page, err error) {
	filters := anyOf("vpc-id", []string{scan.VPC})
	switch {
	case len(scan.Attached) > 0:
		filters = anyOf("attachment.instance-id", scan.Attached)
	case len(scan.Made) > 0:
		filters = anyOf("tag:"+tagNode, scan.Made)
	}
	var next *string
	if out.Interfaces, next, err = d.onePage(ctx, filters, unlessZero(scan.Next)); err != nil {
		return driver.Page{}, err
	}
	out.Next = aws.ToString(next)
	if out.Next != "" && out.Next == scan.Next {
		return driver.Page{}, errSamePage()
	}
	return out, nil
}

func (d *Driver) onePage(ctx context.Context, filters []types.Filter, token *string) (list []driver.Interface, next *string, err error) {
	out, err := askEC2(ctx, d, &d.api.DescribeNetworkInterfaces, &ec2.DescribeNetworkInterfacesInput{Filters: filters, MaxResults: aws.Int32(d.page), NextToken: token})
	if err != nil {
		return nil, nil, err
	}
	for _, r := range out.NetworkInterfaces {
		list = append(list, d.readInterface(r))
	}
	return list, out.NextToken, nil
}
