package bce

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/baidubce/bce-sdk-go/bce"
	"github.com/baidubce/bce-sdk-go/services/vpc"
	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// network is the ranges of a subnet, which it keeps for good.
type network struct {
	id, vpc string
	v4, v6  netip.Prefix // invalid if it has none
}

// parseNetwork checks what the cloud says of a subnet.
func parseNetwork(s vpc.Subnet) (network, error) {
	n := network{id: s.SubnetId, vpc: s.VPCId}
	if !validID(s.SubnetId) {
		return network{}, fmt.Errorf("a subnet has the id %q", s.SubnetId)
	}
	var err error
	if n.v4, err = parseRange(s.Cidr, eni.IPv4); err != nil {
		return network{}, fmt.Errorf("subnet %s: %w", s.SubnetId, err)
	}
	if n.v6, err = parseRange(s.Ipv6Cidr, eni.IPv6); err != nil {
		return network{}, fmt.Errorf("subnet %s: %w", s.SubnetId, err)
	}
	if !n.v4.IsValid() {
		return network{}, fmt.Errorf("subnet %s has no IPv4 range", s.SubnetId)
	}
	return n, nil
}

func parseRange(text string, f eni.Family) (netip.Prefix, error) {
	if text == "" {
		return netip.Prefix{}, nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil || p != p.Masked() || eni.FamilyOf(p.Addr()) != f || p.Bits() > f.Bits()-2 {
		return netip.Prefix{}, fmt.Errorf("%q is no %s range", text, f)
	}
	return p, nil
}

// of returns the range of the family.
func (n network) of(f eni.Family) netip.Prefix {
	if f == eni.IPv4 {
		return n.v4
	}
	return n.v6
}

// gateway returns the router in the range: its first address.
func gateway(p netip.Prefix) netip.Addr { return p.Addr().Next() }

// net returns how an ENI with this primary address stands in the subnet.
func (n network) net(primary netip.Addr) eni.Net {
	p := n.of(eni.FamilyOf(primary))
	return eni.Net{Primary: netip.PrefixFrom(primary, p.Bits()), Gateway: gateway(p)}
}

// may tells whether the ENI of a pod can have the address.
func (n network) may(a netip.Addr) bool {
	p := n.of(eni.FamilyOf(a))
	return p.IsValid() && p.Contains(a) && a != p.Addr() && a != gateway(p)
}

// network returns the subnet's ranges. Unlike the rest of it they are asked for once.
func (c *Client) network(ctx context.Context, op, id string) (network, error) {
	c.mu.Lock()
	n, ok := c.nets[id]
	c.mu.Unlock()
	if ok {
		return n, nil
	}
	s, err := c.subnet(ctx, op, id)
	if err != nil {
		return network{}, err
	}
	n, err = parseNetwork(s)
	if err != nil {
		return network{}, c.badAnswer(call{op: op, object: id}, err.Error())
	}
	c.mu.Lock()
	c.nets[id] = n
	c.mu.Unlock()
	return n, nil
}

// subnet asks for one subnet.
func (c *Client) subnet(ctx context.Context, op, id string) (vpc.Subnet, error) {
	k := call{op: op, object: id}
	if !validID(id) {
		return vpc.Subnet{}, c.problem(k, cloud.ErrNotFound, ctx.Err(), "no such subnet")
	}
	var a *vpc.GetSubnetDetailResult
	if err := c.do(ctx, k, func(b *bce.BceClient) (err error) {
		a, err = (&vpc.Client{BceClient: b}).GetSubnetDetail(id)
		return err
	}); err != nil {
		return vpc.Subnet{}, err
	}
	if a.Subnet.SubnetId != id {
		return vpc.Subnet{}, c.badAnswer(k, "it is about another subnet")
	}
	return a.Subnet, nil
}

// Subnets returns the subnets that new ENIs of the node may lie in, and those that
// its ENIs lie in. Free is of IPv4: no IPv6 subnet gets full.
func (c *Client) Subnets(ctx context.Context) (shown []cloud.Subnet, err error) {
	defer plain(&err)
	const op = "Subnets"
	me, err := c.whoami(ctx, op)
	if err != nil {
		return nil, err
	}
	here, err := c.lieIn(ctx, op)
	if err != nil {
		return nil, err
	}
	all, err := c.listSubnets(ctx, me)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		isNew := c.isNew(me, s)
		if !isNew && !here[s.SubnetId] {
			continue
		}
		n, err := parseNetwork(s)
		if err != nil {
			return nil, c.badAnswer(call{op: op}, err.Error())
		}
		out := cloud.Subnet{ID: n.id, V4Net: n.v4, Free: max(s.AvailableIp, 0), New: isNew}
		if c.o.IPv6 {
			out.V6Net = n.v6
		}
		shown = append(shown, out)
	}
	slices.SortFunc(shown, func(a, b cloud.Subnet) int { return cmp.Compare(a.ID, b.ID) })
	return slices.CompactFunc(shown, func(a, b cloud.Subnet) bool { return a.ID == b.ID }), nil
}

// lieIn returns the subnets of the instance's ENIs.
func (c *Client) lieIn(ctx context.Context, op string) (map[string]bool, error) {
	c.mu.Lock()
	seen := !c.recall.looked.IsZero()
	c.mu.Unlock()
	if !seen {
		if _, err := c.look(ctx, op); err != nil {
			return nil, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	here := map[string]bool{}
	for _, r := range c.known {
		here[r.subnet] = true
	}
	return here, nil
}

// isNew tells whether new ENIs may lie in the subnet. Another zone's can't be
// attached.
func (c *Client) isNew(me self, s vpc.Subnet) bool {
	switch {
	case me.kind == BBC || !sameZone(me.zone, s.ZoneName):
		return false
	case len(c.o.Subnets) == 0 && len(c.o.SubnetTags) == 0:
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.known[c.ownENI].subnet == s.SubnetId
	}
	return slices.Contains(c.o.Subnets, s.SubnetId) || len(c.o.SubnetTags) > 0 && hasTags(s, c.o.SubnetTags)
}

func hasTags(s vpc.Subnet, tags map[string]string) bool {
	have := map[string]string{}
	for _, t := range s.Tags {
		have[t.TagKey] = t.TagValue
	}
	for key, value := range tags {
		if got, ok := have[key]; !ok || got != value {
			return false
		}
	}
	return true
}

// mostPages ends a list whose marker leads round in circles.
const mostPages = 1000

// listSubnets returns the subnets of the VPC.
func (c *Client) listSubnets(ctx context.Context, me self) ([]vpc.Subnet, error) {
	k := call{op: "Subnets", object: me.vpc}
	var all []vpc.Subnet
	for marker, page := "", 0; ; page++ {
		var a *vpc.ListSubnetResult
		if err := c.do(ctx, k, func(b *bce.BceClient) (err error) {
			a, err = (&vpc.Client{BceClient: b}).ListSubnets(&vpc.ListSubnetArgs{VpcId: me.vpc, Marker: marker})
			return err
		}); err != nil {
			return nil, err
		}
		all = append(all, a.Subnets...)
		if !a.IsTruncated {
			return all, nil
		}
		if a.NextMarker == "" || a.NextMarker == marker || page >= mostPages {
			return nil, c.badAnswer(k, "there is a next page and no way to it")
		}
		marker = strings.Clone(a.NextMarker)
	}
}
