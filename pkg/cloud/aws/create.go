package aws

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// birth is what of an ENI that is being made must be the same with every try: EC2
// refuses a client token that comes with other parameters.
type birth struct {
	created time.Time
	try     int // tries of the token whose ENI is surely gone
}

// mostBorn is far more than are being made at once.
const mostBorn = 256

// CreateInterface implements cloud.Cloud. The ENI carries the token as a tag, by
// which a later call finds it and does what is missing: attach, let it go with the
// instance, fill.
func (c *Client) CreateInterface(ctx context.Context, w cloud.Create) (i cloud.Interface, err error) {
	defer c.named(&err, "CreateInterface", w.Subnet)
	s, err := c.connect(ctx)
	if err != nil {
		return cloud.Interface{}, err
	}
	limits, err := c.knownLimits(ctx)
	if err != nil {
		return cloud.Interface{}, err
	}
	if w.V4 > limits.PerENI(eni.IPv4) || w.V6 > limits.PerENI(eni.IPv6) {
		return cloud.Interface{}, because(cloud.ErrLimit, "an ENI has at most %d IPv4 and %d IPv6 addresses here", limits.PerENI(eni.IPv4), limits.PerENI(eni.IPv6))
	}
	defer func() { c.doubt(err) }()
	made, err := c.find(ctx, s, w, limits)
	if err != nil {
		return cloud.Interface{}, err
	}
	ready, err := c.finish(ctx, s, *made, w)
	if err != nil {
		return cloud.Interface{}, c.undo(ctx, s, made.ID, w.Token, err)
	}
	c.mu.Lock()
	delete(c.born, w.Token)
	if c.known.tokens != nil {
		c.known.tokens[ready.ID] = w.Token
	}
	c.mu.Unlock()
	return ready.Interface, nil
}

// find returns the ENI of a token, which it makes if there is none. It looks for one
// unless there surely is none.
func (c *Client) find(ctx context.Context, s *session, w cloud.Create, limits eni.Limits) (made *nic, err error) {
	isNew := c.isNew(w.Token)
	if !isNew {
		if made, err = c.byToken(ctx, s, w.Token); err != nil || made != nil {
			return made, err
		}
	}
	made, err = c.make(ctx, s, w, limits)
	if isNew && errors.Is(err, cloud.ErrThrottled) {
		c.unbegun(w.Token)
	}
	return made, err
}

// byToken returns the ENI of a token, if describes show it.
func (c *Client) byToken(ctx context.Context, s *session, token string) (*nic, error) {
	raw, err := c.describe(ctx, s, byTags(map[string]string{tagNode: s.instance, tagToken: token}))
	if err != nil || len(raw) == 0 {
		return nil, err
	}
	return c.pick(ctx, s, raw)
}

// make makes the ENI. Where the subnet has not as many addresses as are wanted, or
// no whole block, it begins with one of each family: finish puts what there is.
func (c *Client) make(ctx context.Context, s *session, w cloud.Create, limits eni.Limits) (*nic, error) {
	known, err := c.subnetsOf(ctx, []string{w.Subnet})
	if err != nil {
		return nil, err
	}
	in, found := known[w.Subnet]
	if !found {
		return nil, because(cloud.ErrNotFound, "EC2 shows no such subnet")
	}
	home, err := c.findHome(ctx, s)
	if err != nil {
		return nil, err
	}
	m := maker{c, s, w, limits, in, home}
	out, err := m.request(ctx, w.V4, w.V6)
	if errors.Is(err, cloud.ErrSubnetFull) && (w.V4 > 1 || w.V6 > 1) {
		out, err = m.request(ctx, min(w.V4, 1), min(w.V6, 1))
	}
	if codeOf(err) == otherParameters {
		return m.waitFor(ctx, err)
	}
	if err != nil {
		return nil, err
	}
	return m.read(ctx, out)
}

// maker makes one ENI.
type maker struct {
	*Client
	s      *session
	w      cloud.Create
	limits eni.Limits
	in     subnet
	home   home
}

// request makes the call with as many addresses as one call may give: prefixes, or
// single ones, of a family.
func (m maker) request(ctx context.Context, v4, v6 int) (*ec2.CreateNetworkInterfaceOutput, error) {
	b := m.birth()
	in := &ec2.CreateNetworkInterfaceInput{
		SubnetId: aws.String(m.w.Subnet), Description: aws.String("enipool " + m.s.instance),
		Groups: m.o.SecurityGroups, TagSpecifications: m.tags(b),
		ClientToken: aws.String(clientToken(m.w, v4, v6, b.try)),
	}
	if len(in.Groups) == 0 {
		in.Groups = m.home.groups
	}
	if size := m.limits.V4Block.Size; size > 0 && v4 >= size {
		in.Ipv4PrefixCount = aws.Int32(int32(v4 / size))
	} else if v4 > 0 {
		in.SecondaryPrivateIpAddressCount = aws.Int32(int32(v4))
	}
	if v6 > 0 || m.o.IPv6 && m.in.V6Net.IsValid() {
		singles := v6
		if size := m.limits.V6Block.Size; size > 0 && v6 >= size {
			singles = 0 // the prefix comes later: EC2 does not take both in one call
		}
		in.Ipv6AddressCount = aws.Int32(int32(singles) + 1)
		if m.limits.V6Block.Size == 0 {
			in.EnablePrimaryIpv6 = aws.Bool(true) // which of several is the ENI's own
		}
	}
	return change(ctx, m.Client, m.s.api.CreateNetworkInterface, in)
}

// clientToken is another one for each set of parameters, and for a token whose ENI
// was made and deleted again: EC2 would answer with that.
func clientToken(w cloud.Create, v4, v6, try int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%d %d %d", w.Token, w.Subnet, v4, v6, try))
	return hex.EncodeToString(sum[:])
}

// birth returns when the token's ENI was first to be made.
func (m maker) birth() birth {
	m.mu.Lock()
	defer m.mu.Unlock()
	b, known := m.born[m.w.Token]
	if !known || b.created.IsZero() {
		if len(m.born) >= mostBorn {
			clear(m.born) // of intents that were given up
		}
		b.created = m.now().UTC()
		m.born[m.w.Token] = b
	}
	return b
}

// again notes that what was made with a token is gone.
func (c *Client) again(token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.born[token]
	b.try++
	c.born[token] = b
}

func (m maker) tags(b birth) []types.TagSpecification {
	tags := maps.Clone(m.o.Tags)
	if tags == nil {
		tags = map[string]string{}
	}
	tags[tagNode], tags[tagToken], tags[tagCreated] = m.s.instance, m.w.Token, b.created.Format(time.RFC3339Nano)
	if m.o.Cluster != "" {
		tags[tagCluster] = m.o.Cluster
	}
	list := types.TagSpecification{ResourceType: types.ResourceTypeNetworkInterface}
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		list.Tags = append(list.Tags, types.Tag{Key: aws.String(key), Value: aws.String(tags[key])})
	}
	return []types.TagSpecification{list}
}

// waitFor waits until describes show the ENI that an earlier process has made with the
// token and other parameters. If they never do, it was deleted: the next call makes
// another.
func (m maker) waitFor(ctx context.Context, cause error) (*nic, error) {
	for wait := m.pace[0]; ; wait *= 2 {
		made, err := m.byToken(ctx, m.s, m.w.Token)
		if err != nil {
			return nil, unsettled(err)
		}
		if made != nil {
			return made, nil
		}
		if wait > m.pace[1] {
			m.again(m.w.Token)
			return nil, cause
		}
		if err := pause(ctx, wait); err != nil {
			return nil, unsettled(err)
		}
	}
}

// read takes the answer for what it is: of an ENI that can't be right nothing is left.
func (m maker) read(ctx context.Context, out *ec2.CreateNetworkInterfaceOutput) (*nic, error) {
	if out.NetworkInterface == nil || aws.ToString(out.NetworkInterface.NetworkInterfaceId) == "" {
		return nil, because(cloud.ErrUnknown, "the answer has no ENI")
	}
	raw := *out.NetworkInterface
	if len(raw.TagSet) == 0 {
		raw.TagSet = m.tags(m.birth())[0].Tags // some only show them later
	}
	d := decoder{instance: m.s.instance, subnets: map[string]subnet{m.w.Subnet: m.in}, size6: m.limits.V6Block.Size, first6: m.firstV6}
	made, err := d.one(raw)
	if err == nil && made.Subnet != m.w.Subnet {
		err = fmt.Errorf("it lies in subnet %s", made.Subnet)
	}
	if err != nil {
		return nil, m.undo(ctx, m.s, *raw.NetworkInterfaceId, m.w.Token, because(cloud.ErrForbidden, "EC2 made an ENI that can't be right: %v", err))
	}
	return &made, nil
}
