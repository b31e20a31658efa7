package aws

import (
	"cmp"
	"context"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/cloud"
)

// home is what of the node's own ENI others take over.
type home struct {
	own       string // its subnet
	zone, vpc string
	groups    []string
	subnets   []string // of all ENIs of the node
}

// settleIn takes over what the ENIs tell, of which the first is the node's own.
func (c *Client) settleIn(s *session, nics []nic) home {
	h := home{own: nics[0].Subnet, zone: cmp.Or(c.o.Zone, nics[0].zone, s.zone), vpc: nics[0].vpc, groups: nics[0].groups}
	for _, n := range nics {
		h.subnets = append(h.subnets, n.Subnet)
	}
	slices.Sort(h.subnets)
	h.subnets = slices.Compact(h.subnets)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.home = h
	return h
}

// findHome returns what the newest describe told, or makes one.
func (c *Client) findHome(ctx context.Context, s *session) (home, error) {
	c.mu.Lock()
	h := c.home
	c.mu.Unlock()
	if h.own != "" {
		return h, nil
	}
	here, err := c.here(ctx, s)
	if err != nil {
		return home{}, err
	}
	return c.settleIn(s, here), nil
}

// here returns the ENIs that are attached to the instance, its own first.
func (c *Client) here(ctx context.Context, s *session) ([]nic, error) {
	raw, err := c.describe(ctx, s, byIDs("attachment.instance-id", []string{s.instance}))
	if err != nil {
		return nil, err
	}
	nics, out, err := c.decode(ctx, s, nil, raw)
	if err == nil && (len(nics) == 0 || nics[0].Index != 0) {
		err = noHome(s, out)
	}
	return nics, err
}

// firstV6 returns which of an ENI's IPv6 addresses is its primary where EC2 does not
// tell: what it was before, or else the first of them.
func (c *Client) firstV6(id string, addrs []netip.Addr) netip.Addr {
	c.mu.Lock()
	defer c.mu.Unlock()
	if before, known := c.first6[id]; known && slices.Contains(addrs, before) {
		return before
	}
	c.first6[id] = addrs[0]
	return addrs[0]
}

// quarantined is an ENI of the node that is left out because what EC2 tells of it
// can't be right, or an address of one.
type quarantined struct {
	ID  string
	Why string
	own bool // it is the node's own
}

// Quarantined implements cloud.Quarantiner.
func (c *Client) Quarantined() (list []cloud.Quarantined) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, q := range c.quarantined {
		list = append(list, cloud.Quarantined{ID: q.ID, Why: q.Why})
	}
	return list
}

// report keeps what was left out and logs what is new of it.
func (c *Client) report(out []quarantined) {
	for i, q := range out {
		out[i] = quarantined{shorten(c.secrets.redact(q.ID)), shorten(c.secrets.redact(q.Why)), q.own}
	}
	slices.SortFunc(out, func(a, b quarantined) int { return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Why, b.Why)) })
	c.mu.Lock()
	before := c.quarantined
	c.quarantined = out
	c.mu.Unlock()
	for _, q := range out {
		if !slices.Contains(before, q) {
			c.log.Warn("an ENI is left out: what EC2 tells of it can't be right", "eni", cmp.Or(q.ID, "without ID"), "why", q.Why)
		}
	}
}
