package aws

import (
	"context"
	"errors"
	"net/netip"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// UnassignAddresses implements cloud.Cloud.
func (c *Client) UnassignAddresses(ctx context.Context, id string, addrs []netip.Addr) (err error) {
	defer c.named(&err, "UnassignAddresses", id)
	s, err := c.connect(ctx)
	if err != nil {
		return err
	}
	on, known := c.asSeen(id)
	if known {
		has, _ := c.perhaps(on)
		known = len(minus(union(addrs, nil), has)) == 0
	}
	if !known { // or it has something that is not known
		if on, err = c.byID(ctx, s, id); err != nil || on == nil {
			return err
		}
	}
	r, err := c.releasing(on, addrs)
	if err != nil {
		return err
	}
	return c.release(ctx, s, on, r)
}

// released is what of an ENI goes.
type released struct {
	blocks  []netip.Prefix
	singles []netip.Addr
}

// releasing sorts addresses into blocks and single ones. Those that the ENI does not
// have are left out; primary ones it never loses.
func (c *Client) releasing(on *nic, addrs []netip.Addr) (r released, err error) {
	has, blocks := c.perhaps(on)
	wanted := minus(union(addrs, nil), minus(addrs, has))
	for _, block := range blocks {
		all := within(block, has)
		some := within(block, wanted)
		if len(some) > 0 && len(some) < len(all) {
			return r, because(cloud.ErrForbidden, "prefix %s goes as a whole or not at all", block)
		}
		if len(some) > 0 {
			r.blocks = append(r.blocks, block)
			wanted = minus(wanted, some)
		}
	}
	r.singles = wanted
	return r, nil
}

func within(block netip.Prefix, addrs []netip.Addr) []netip.Addr {
	var inside []netip.Addr
	for _, a := range addrs {
		if block.Contains(a) {
			inside = append(inside, a)
		}
	}
	return inside
}

// release makes the calls: one a family, for prefixes and for addresses.
func (c *Client) release(ctx context.Context, s *session, on *nic, r released) error {
	has, _ := c.perhaps(on)
	begun := false
	for _, f := range []eni.Family{eni.IPv4, eni.IPv6} {
		var prefixes, texts []string
		var inside []netip.Addr
		for _, block := range r.blocks {
			if eni.FamilyOf(block.Addr()) == f {
				prefixes = append(prefixes, block.String())
				inside = append(inside, within(block, has)...)
			}
		}
		singles := ofFamily(r.singles, f)
		for _, a := range singles {
			texts = append(texts, a.String())
		}
		d := drop{c, s, on.ID, f}
		for _, part := range []struct {
			texts []string
			addrs []netip.Addr
			call  func(context.Context, []string) error
		}{{prefixes, inside, d.prefixes}, {texts, singles, d.addresses}} {
			if err := each(ctx, part.texts, part.call); err != nil {
				if errors.Is(err, cloud.ErrUnknown) {
					c.remember(on.ID, part.addrs, r.blocks, unsure)
				}
				return begunOr(begun, err)
			}
			c.remember(on.ID, part.addrs, nil, taken)
			begun = begun || len(part.texts) > 0
		}
	}
	return nil
}

// begunOr is the error of a release of which a part is done, or nothing.
func begunOr(begun bool, err error) error {
	if begun {
		return unsettled(err)
	}
	return err
}

// missing tells whether a release failed because there is nothing to release.
func missing(err error) bool {
	return errors.Is(err, cloud.ErrNotFound) || codeOf(err) == badValue
}

// each releases all in one call. EC2 refuses all where the ENI does not have one of
// them, which a describe may not show yet: then each is asked for alone.
func each(ctx context.Context, texts []string, call func(context.Context, []string) error) error {
	if len(texts) == 0 {
		return nil
	}
	err := call(ctx, texts)
	if err == nil || errors.Is(err, cloud.ErrNotFound) {
		return nil
	}
	if codeOf(err) != badValue {
		return err
	}
	for i, text := range texts {
		if len(texts) == 1 {
			break
		}
		if err := call(ctx, []string{text}); err != nil && !missing(err) {
			return begunOr(i > 0, err)
		}
	}
	return nil
}

// drop is the calls that release what an ENI has of a family.
type drop struct {
	c      *Client
	s      *session
	id     string
	family eni.Family
}

func (d drop) addresses(ctx context.Context, texts []string) error { return d.call(ctx, texts, nil) }
func (d drop) prefixes(ctx context.Context, texts []string) error  { return d.call(ctx, nil, texts) }

func (d drop) call(ctx context.Context, addresses, prefixes []string) (err error) {
	if d.family == eni.IPv4 {
		_, err = change(ctx, d.c, d.s.api.UnassignPrivateIpAddresses, &ec2.UnassignPrivateIpAddressesInput{
			NetworkInterfaceId: aws.String(d.id), PrivateIpAddresses: addresses, Ipv4Prefixes: prefixes})
	} else {
		_, err = change(ctx, d.c, d.s.api.UnassignIpv6Addresses, &ec2.UnassignIpv6AddressesInput{
			NetworkInterfaceId: aws.String(d.id), Ipv6Addresses: addresses, Ipv6Prefixes: prefixes})
	}
	return err
}
