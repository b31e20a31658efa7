package aws

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	awsconf "github.com/enipool/enipool/conf/aws"
	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// Limits implements cloud.Cloud: what DescribeInstanceTypes tells or, where that may
// not be asked or does not answer, the built-in table.
func (c *Client) Limits(ctx context.Context) (l eni.Limits, err error) {
	defer c.named(&err, "Limits", "")
	s, err := c.connect(ctx)
	if err != nil {
		return eni.Limits{}, err
	}
	kind, err := c.instanceType(ctx, s)
	if err != nil {
		return eni.Limits{}, err
	}
	typ, err := c.describeType(ctx, s, kind)
	if err != nil {
		builtin, known := awsconf.ReadTable().Find(kind)
		answers := !errors.Is(err, cloud.ErrForbidden) && !errors.Is(err, cloud.ErrUnavailable)
		if !known || answers || ctx.Err() != nil {
			return eni.Limits{}, err
		}
		typ = capability{Type: builtin, ips6: builtin.IPs}
		c.sayIf(true, "type", "limits of the instance type are those of the built-in table", "type", kind, "error", err)
	} else {
		c.sayIf(false, "type", "")
	}
	return c.limit(typ), nil
}

// capability is what an instance type can.
type capability struct {
	awsconf.Type
	ips6 int // IPv6 addresses of an ENI
}

// limit is what Options make of a type, and is kept.
func (c *Client) limit(t capability) eni.Limits {
	l := eni.Limits{ENIs: t.ENIs, V4: t.IPs}
	if c.o.Prefixes && t.Prefixes {
		l.V4 = 1 + (t.IPs-1)*size4
		l.V4Block = eni.Block{Bits: bits4, Size: size4}
	}
	c.sayIf(c.o.Prefixes && !t.Prefixes, "prefixes", "the instance type takes no prefixes: addresses come one by one", "type", t.Name)
	if c.o.IPv6 {
		l.V6 = t.ips6
		if t.Prefixes && t.ips6 > 1 {
			l.V6 = l.V4 // each pod gets one of both
			l.V6Block = eni.Block{Bits: bits6, Size: l.V4 - 1}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limits = l
	return l
}

// knownLimits asks for the limits unless it has been done.
func (c *Client) knownLimits(ctx context.Context) (eni.Limits, error) {
	c.mu.Lock()
	l := c.limits
	c.mu.Unlock()
	if l != (eni.Limits{}) {
		return l, nil
	}
	return c.Limits(ctx)
}

// instanceType returns what the metadata said, or else what EC2 tells.
func (c *Client) instanceType(ctx context.Context, s *session) (string, error) {
	if s.kind != "" {
		return s.kind, nil
	}
	out, err := read(ctx, c, s.api.DescribeInstances, &ec2.DescribeInstancesInput{InstanceIds: []string{s.instance}})
	if err != nil {
		return "", err
	}
	for _, r := range out.Reservations {
		for _, i := range r.Instances {
			if aws.ToString(i.InstanceId) == s.instance && i.InstanceType != "" {
				return string(i.InstanceType), nil
			}
		}
	}
	return "", because(cloud.ErrNotFound, "EC2 shows no instance %s", s.instance)
}

func (c *Client) describeType(ctx context.Context, s *session, kind string) (capability, error) {
	out, err := read(ctx, c, s.api.DescribeInstanceTypes, &ec2.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{types.InstanceType(kind)}})
	if err != nil {
		return capability{}, err
	}
	for _, info := range out.InstanceTypes {
		if string(info.InstanceType) == kind {
			return readType(info)
		}
	}
	return capability{}, because(cloud.ErrUnavailable, "EC2 tells nothing of instance type %s", kind)
}

// readType takes the numbers of the default network card: pods are only on that.
func readType(info types.InstanceTypeInfo) (capability, error) {
	t := capability{Type: awsconf.Type{Name: string(info.InstanceType),
		Prefixes: info.Hypervisor == types.InstanceTypeHypervisorNitro || aws.ToBool(info.BareMetal)}}
	if n := info.NetworkInfo; n != nil {
		t.ENIs, t.IPs = int(aws.ToInt32(n.MaximumNetworkInterfaces)), int(aws.ToInt32(n.Ipv4AddressesPerInterface))
		if aws.ToBool(n.Ipv6Supported) {
			t.ips6 = int(aws.ToInt32(n.Ipv6AddressesPerInterface))
		}
		for _, card := range n.NetworkCards {
			if aws.ToInt32(card.NetworkCardIndex) == aws.ToInt32(n.DefaultNetworkCardIndex) && card.MaximumNetworkInterfaces != nil {
				t.ENIs = int(*card.MaximumNetworkInterfaces)
			}
		}
	}
	t.ENIs = min(t.ENIs, eni.MaxIndex+1)
	if t.ENIs < 1 || t.IPs < 1 || t.ips6 < 0 {
		return t, because(cloud.ErrUnavailable, "EC2 tells no network limits of instance type %s", t.Name)
	}
	return t, nil
}
