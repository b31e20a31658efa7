package aws

import (
	"cmp"
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/enipool/enipool/pkg/cloud"
)

// Tags that the ENIs of a node carry.
const (
	tagNode    = "enipool/node"    // ID of the instance that they were made for
	tagToken   = "enipool/token"   // of their CreateInterface
	tagCreated = "enipool/created" // by the clock of the node
	tagCluster = "enipool/cluster" // Options.Cluster
)

// perPage is as much as EC2 gives at once.
const perPage = 1000

// Interfaces implements cloud.Cloud. ENIs that are attached are asked for by the
// instance. Those of the node that are not have only their tag, which EC2 can't look
// for in the same request: they are asked for where there may be any, and now and then.
// What the later request shows counts.
func (c *Client) Interfaces(ctx context.Context) (list []cloud.Interface, err error) {
	defer c.named(&err, "Interfaces", "")
	s, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	began := c.now()
	made, here, all, err := c.show(ctx, s)
	if err != nil {
		return nil, err
	}
	nics, out, err := c.decode(ctx, s, made, here)
	if err != nil {
		return nil, err
	}
	c.report(out)
	if len(nics) == 0 || nics[0].Index != 0 {
		return nil, noHome(s, out)
	}
	c.settleIn(s, nics)
	c.glanced(began, all, here, nics)
	for _, n := range nics {
		list = append(list, n.Interface)
	}
	return list, nil
}

// show describes the ENIs that are attached to the instance and, where that is needed,
// all that were made for it.
func (c *Client) show(ctx context.Context, s *session) (made, here []types.NetworkInterface, all bool, err error) {
	for all = c.wantsAll(); ; all = true {
		if all {
			if made, err = c.describe(ctx, s, byTags(map[string]string{tagNode: s.instance})); err != nil {
				return nil, nil, all, err
			}
		}
		here, err = c.describe(ctx, s, byIDs("attachment.instance-id", []string{s.instance}))
		if err != nil || all || !c.misses(here) {
			return made, here, all, err
		}
	}
}

// noHome: an answer without the node's own ENI is none to work with.
func noHome(s *session, out []quarantined) error {
	for _, q := range out {
		if q.own {
			return because(cloud.ErrUnavailable, "the node's own ENI %s: %s", q.ID, q.Why)
		}
	}
	return because(cloud.ErrNotFound, "EC2 shows no ENI of instance %s: is that its ID, and this its region?", s.instance)
}

// decode makes ENIs of two describes, the second of which counts more, in the order
// of their creation.
func (c *Client) decode(ctx context.Context, s *session, made, here []types.NetworkInterface) ([]nic, []quarantined, error) {
	raw := merge(made, here)
	ids := make([]string, 0, len(raw))
	blocks6 := false
	for _, n := range raw {
		ids = append(ids, aws.ToString(n.SubnetId))
		blocks6 = blocks6 || len(n.Ipv6Prefixes) > 0
	}
	subnets, err := c.subnetsOf(ctx, ids)
	if err != nil {
		return nil, nil, err
	}
	d := decoder{instance: s.instance, subnets: subnets, first6: c.firstV6}
	if blocks6 {
		limits, err := c.knownLimits(ctx)
		if err != nil {
			return nil, nil, err
		}
		d.size6 = limits.V6Block.Size
	}
	nics, out := d.all(raw)
	return nics, out, nil
}

// merge joins two describes: of an ENI that is shown twice the last counts, and what
// only the first shows can't have the place of another.
func merge(first, second []types.NetworkInterface) []types.NetworkInterface {
	var all []types.NetworkInterface
	at := map[string]int{}
	taken := map[int32]bool{}
	for _, n := range second {
		if n.Attachment != nil && n.Attachment.DeviceIndex != nil {
			taken[*n.Attachment.DeviceIndex] = true
		}
	}
	for i, n := range slices.Concat(first, second) {
		id := aws.ToString(n.NetworkInterfaceId)
		known, seen := at[id]
		switch {
		case id == "" && i < len(first):
			continue // it is in the second too, or was never the node's
		case seen && id != "":
			all[known] = n
			continue
		case i < len(first) && n.Attachment != nil && taken[aws.ToInt32(n.Attachment.DeviceIndex)] && !shows(second, id):
			n.Attachment = nil // it has left in between
		}
		at[id] = len(all)
		all = append(all, n)
	}
	return all
}

func shows(list []types.NetworkInterface, id string) bool {
	return slices.ContainsFunc(list, func(n types.NetworkInterface) bool { return aws.ToString(n.NetworkInterfaceId) == id })
}

// describe returns the ENIs of all pages.
func (c *Client) describe(ctx context.Context, s *session, filters []types.Filter) (all []types.NetworkInterface, err error) {
	in := &ec2.DescribeNetworkInterfacesInput{Filters: filters, MaxResults: aws.Int32(perPage)}
	err = pages(func(token *string) (*string, error) {
		in.NextToken = token
		out, err := read(ctx, c, s.api.DescribeNetworkInterfaces, in)
		if err != nil {
			return nil, err
		}
		all = append(all, out.NetworkInterfaces...)
		return out.NextToken, nil
	})
	return all, err
}

// pages asks for page after page until there is none.
func pages(ask func(token *string) (next *string, err error)) error {
	var token *string
	for {
		next, err := ask(token)
		if err != nil || aws.ToString(next) == "" {
			return err
		}
		if token != nil && *token == *next {
			return because(cloud.ErrUnavailable, "EC2 gives the same page again and again")
		}
		token = next
	}
}

// concerns tells whether an ENI is attached to the instance or was made for it.
func concerns(r types.NetworkInterface, instance string) bool {
	return tagged(r, tagNode) == instance || r.Attachment != nil && aws.ToString(r.Attachment.InstanceId) == instance
}

// look describes an ENI, if it is the node's: attached to it, or made for it.
func (c *Client) look(ctx context.Context, s *session, id string) (*nic, error) {
	raw, err := c.describe(ctx, s, byIDs("network-interface-id", []string{id}))
	if err != nil || len(raw) == 0 || !concerns(raw[0], s.instance) {
		return nil, err
	}
	n, err := c.pick(ctx, s, raw)
	if err == nil {
		c.saw(*n)
	}
	return n, err
}

// byID is look, but for describes that show what was before an ENI was attached.
func (c *Client) byID(ctx context.Context, s *session, id string) (*nic, error) {
	n, err := c.look(ctx, s, id)
	if err == nil && (n == nil || n.Index < 0) {
		if before, ok := c.lastSeen(id); ok {
			return &before, nil
		}
	}
	return n, err
}

// pick reads the ENI of an answer that has one at least. Where a cloud forgets tokens
// there may be several of one token: the one that has come furthest counts.
func (c *Client) pick(ctx context.Context, s *session, raw []types.NetworkInterface) (*nic, error) {
	nics, out, err := c.decode(ctx, s, nil, raw)
	switch {
	case err != nil:
		return nil, err
	case len(nics) > 0:
		best := slices.MinFunc(nics, func(a, b nic) int {
			return cmp.Or(cmp.Compare(b.rank(), a.rank()), a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
		})
		return &best, nil
	case len(out) > 0:
		return nil, because(cloud.ErrForbidden, "ENI %s: %s", out[0].ID, out[0].Why)
	}
	return nil, because(cloud.ErrForbidden, "ENI %s is not for pods", aws.ToString(raw[0].NetworkInterfaceId))
}
