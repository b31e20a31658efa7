package aws

import (
	"context"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	awsconf "github.com/enipool/enipool/conf/aws"
	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
)

// Shape implements driver.Driver: what DescribeInstanceTypes answers or, if that is not
// allowed or EC2 does not answer, what the built-in table has.
func (d *Driver) Shape(ctx context.Context, s driver.Self) (driver.Shape, error) {
	name := s.Type
	if name == "" {
		i, err := d.findInstances(ctx, []string{s.Instance})
		if err != nil {
			return driver.Shape{}, err
		}
		if len(i) == 0 || i[0].InstanceType == "" {
			return driver.Shape{}, errorf(cloud.ErrNotFound, "EC2 shows no instance %s", s.Instance)
		}
		name = string(i[0].InstanceType)
	}
	shape, err := d.describeType(ctx, name)
	if err == nil {
		return shape, nil
	}
	return fromTable(ctx, name, err)
}

// fromTable returns the built-in numbers of a type, or err if there are none. They stand in
// only for errors that say nothing about the type: EC2 did not answer, or the call is not allowed.
func fromTable(ctx context.Context, name string, err error) (driver.Shape, error) {
	builtin, known := awsconf.ReadTable().Find(name)
	silent := errors.Is(err, cloud.ErrForbidden) || errors.Is(err, cloud.ErrUnavailable)
	if !known || !silent || ctx.Err() != nil {
		return driver.Shape{}, err
	}
	return driver.Shape{Type: name, ENIs: builtin.ENIs, V4: builtin.IPs, V6: builtin.IPs, Prefixes: builtin.Prefixes, Builtin: err}, nil
}

// Shapes implements driver.Driver. It uses a filter: in the request's own list of types, one
// that EC2 does not have would fail the whole request.
func (d *Driver) Shapes(ctx context.Context, names []string) (map[string]driver.Shape, error) {
	var literals []string
	for _, name := range names {
		literals = append(literals, literalValue(name))
	}
	list, err := listByID("instance-type", literals, func(filters []types.Filter, token *string) ([]types.InstanceTypeInfo, *string, error) {
		out, err := askEC2(ctx, d, &d.api.DescribeInstanceTypes, &ec2.DescribeInstanceTypesInput{Filters: filters, MaxResults: aws.Int32(min(d.page, typesPage)), NextToken: token})
		if err != nil {
			return nil, nil, err
		}
		return out.InstanceTypes, out.NextToken, nil
	})
	shapes := map[string]driver.Shape{}
	for _, info := range list {
		shape, wrong := readType(info)
		if wrong != nil {
			return nil, wrong
		}
		shapes[shape.Type] = shape
	}
	if err == nil {
		return shapes, nil
	}
	for _, name := range names {
		shape, unknown := fromTable(ctx, name, err)
		if unknown != nil {
			return nil, unknown // with a part left out, a type that is missing would look like one that EC2 lacks
		}
		shapes[name] = shape
	}
	return shapes, nil
}

// typesPage is how many types a page of an answer has at most.
const typesPage = 100

func (d *Driver) describeType(ctx context.Context, name string) (driver.Shape, error) {
	out, err := askEC2(ctx, d, &d.api.DescribeInstanceTypes, &ec2.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{types.InstanceType(name)}})
	if err != nil {
		return driver.Shape{}, err
	}
	for _, info := range out.InstanceTypes {
		if string(info.InstanceType) == name {
			return readType(info)
		}
	}
	return driver.Shape{}, errorf(cloud.ErrUnavailable, "EC2 tells nothing of instance type %s", name)
}

// readType reads the numbers of a type. Types of the Nitro system and bare metal types take
// prefixes.
func readType(info types.InstanceTypeInfo) (driver.Shape, error) {
	shape := driver.Shape{Type: string(info.InstanceType),
		Prefixes: info.Hypervisor == types.InstanceTypeHypervisorNitro || aws.ToBool(info.BareMetal)}
	if n := info.NetworkInfo; n != nil {
		shape.ENIs, shape.V4 = int(aws.ToInt32(n.MaximumNetworkInterfaces)), int(aws.ToInt32(n.Ipv4AddressesPerInterface))
		if aws.ToBool(n.Ipv6Supported) {
			shape.V6 = int(aws.ToInt32(n.Ipv6AddressesPerInterface))
		}
		shape.Cards = readCards(n.NetworkCards)
	}
	if shape.ENIs < 1 || shape.V4 < 1 || shape.V6 < 0 {
		return shape, errorf(cloud.ErrUnavailable, "EC2 tells no network limits of instance type %s", shape.Type)
	}
	return shape, nil
}

// readCards returns how many ENIs each network card may have, nil for one card. A card that
// takes only EFA-only interfaces has room for no ENI.
func readCards(list []types.NetworkCardInfo) []int {
	if len(list) < 2 {
		return nil
	}
	cards := make([]int, len(list))
	for _, c := range list {
		index := int(aws.ToInt32(c.NetworkCardIndex))
		plain := len(c.InterfaceTypes) == 0 || slices.Contains(c.InterfaceTypes, types.NetworkCardInterfaceTypeInterface)
		if plain && index >= 0 && index < len(cards) {
			cards[index] = int(aws.ToInt32(c.MaximumNetworkInterfaces))
		}
	}
	return cards
}
