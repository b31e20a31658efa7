package engine

import (
	"cmp"
	"context"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
)

// home is what new ENIs take from the node's primary one, and which subnets its ENIs are in.
type home struct {
	primary   string // its ID
	subnet    string
	zone, vpc string
	groups    []string
	subnets   []string // of its ENIs: the primary one and those that were made for it
	others    []string // of others' ENIs on the node
}

// rememberHome notes what the ENIs tell. The first of them is the primary one.
func (n *Node) rememberHome(self driver.Self, v view) {
	raw := v.nics[0].raw
	taken := home{primary: raw.ID, subnet: raw.Subnet, zone: cmp.Or(n.o.Zone, raw.Zone, self.Zone), vpc: cmp.Or(raw.VPC, self.VPC), groups: raw.Groups}
	for _, i := range v.nics {
		if i.raw.Primary || i.Ours {
			taken.subnets = append(taken.subnets, i.Subnet)
		} else {
			taken.others = append(taken.others, i.Subnet)
		}
	}
	taken.subnets, taken.others = sortedSet(taken.subnets), sortedSet(taken.others)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.home, n.own = taken, raw
}

// findHome returns what the newest describe told, and describes if there was none.
func (n *Node) findHome(ctx context.Context) (home, error) {
	if h := n.seenHome(); h.primary != "" {
		return h, nil
	}
	if _, err := n.describeENIs(ctx); err != nil {
		return home{}, err
	}
	return n.seenHome(), nil
}

// seenHome returns what the newest describe told, the zero home if there was none.
func (n *Node) seenHome() home {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.home
}

// Subnets implements cloud.Cloud: those that Options choose, in the zone and the VPC of
// the node's primary ENI, and those of its ENIs.
func (n *Node) Subnets(ctx context.Context) (list []cloud.Subnet, err error) {
	defer nameError(&err, "Subnets", "")
	home, err := n.findHome(ctx)
	if err != nil {
		return nil, err
	}
	all, err := n.chosenSubnets(ctx, home)
	if err != nil {
		return nil, err
	}
	// Subnets of ENIs that exist are needed even if no new ENI may lie there: the ranges and the room
	// of their pods come from them.
	found := false
	for _, s := range all {
		isNew := n.isNew(s, home)
		if s.Wrong != "" || !isNew && !slices.Contains(home.subnets, s.ID) && !slices.Contains(home.others, s.ID) {
			continue
		}
		list = append(list, n.publicSubnet(s, isNew))
		found = found || isNew
	}
	n.sayIf(!found && !n.t.OneNIC, "subnets", "no subnet for new ENIs: none in the node's zone and VPC is as cloud.subnets and cloud.subnetTags say",
		"zone", home.zone, "vpc", home.vpc)
	return list, nil
}

// publicSubnet returns a subnet as callers of Subnets see it.
func (n *Node) publicSubnet(s driver.Subnet, isNew bool) cloud.Subnet {
	out := cloud.Subnet{ID: s.ID, V4Net: s.V4, V6Net: s.V6, Free: roomOf(s), New: isNew, Reserves: n.mayReserve()}
	if n.o.NoIPv4 && s.V6.IsValid() {
		out.Free = plenty // Free counts IPv4 addresses, of which only a new ENI needs one; if there is none, the call fails
	}
	if !n.o.IPv6 {
		out.V6Net = netip.Prefix{}
	}
	return out
}

// plenty is the room of a subnet whose addresses the cloud does not count: IPv6 addresses do not
// run out.
const plenty = 1 << 20

func roomOf(s driver.Subnet) int {
	if s.Free < 0 {
		return plenty
	}
	return s.Free
}

// mayReserve tells whether a subnet that shows no room may nevertheless have prefixes.
func (n *Node) mayReserve() bool { return n.o.Prefixes && n.t.Reserves }

// chosenSubnets returns the subnets that Options choose and those of the node's ENIs, sorted by ID.
// If those of others' ENIs must not be described, it leaves them out.
func (n *Node) chosenSubnets(ctx context.Context, home home) ([]driver.Subnet, error) {
	own := driver.SubnetFilter{IDs: sortedSet(slices.Concat(n.namedSubnets(home), home.subnets)), VPC: home.vpc, Tags: n.o.SubnetTags}
	all := own
	all.IDs = sortedSet(slices.Concat(own.IDs, home.others))
	list, err := n.describeSubnets(ctx, all)
	if isRefused(err) && len(all.IDs) > len(own.IDs) {
		return n.describeSubnets(ctx, own)
	}
	return list, err
}

// namedSubnets returns the subnets that are chosen by ID.
func (n *Node) namedSubnets(home home) []string {
	if len(n.o.Subnets)+len(n.o.SubnetTags) == 0 {
		return []string{home.subnet}
	}
	return n.o.Subnets
}

// isNew tells whether new ENIs of the node may lie in the subnet. An ENI in another zone could not
// be attached.
func (n *Node) isNew(s driver.Subnet, home home) bool {
	byTag := len(n.o.SubnetTags) > 0
	for key, value := range n.o.SubnetTags {
		got, has := s.Tags[key]
		byTag = byTag && has && got == value
	}
	return !n.t.OneNIC && (byTag || slices.Contains(n.namedSubnets(home), s.ID)) && s.Ready && n.sameZone(s.Zone, home.zone) && (s.VPC == home.vpc || s.VPC == "")
}

func (n *Node) sameZone(a, b string) bool {
	if n.t.Zone != nil {
		a, b = n.t.Zone(a), n.t.Zone(b)
	}
	return a == b
}

// describeSubnets describes subnets, and remembers what never changes about them.
func (n *Node) describeSubnets(ctx context.Context, f driver.SubnetFilter) ([]driver.Subnet, error) {
	if len(f.IDs)+len(f.Tags) == 0 {
		return nil, nil
	}
	all, err := n.d.Subnets(ctx, f)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b driver.Subnet) int { return cmp.Compare(a.ID, b.ID) })
	all = slices.CompactFunc(all, func(a, b driver.Subnet) bool { return a.ID == b.ID })
	for _, s := range all {
		n.sayIf(s.Wrong != "", "subnet "+s.ID, "a subnet is left out: what the cloud tells of it can't be right", "subnet", s.ID, "why", s.Wrong)
	}
	n.known.keep(all)
	return all, nil
}
