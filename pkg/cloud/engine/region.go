package engine

import (
	"cmp"
	"context"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/eni"
)

// Region is the cloud.Region of the account that a driver sees. Each node has a Node of its own,
// with its own memory. They share what is known about subnets.
type Region struct {
	d driver.Driver // for new Nodes
	t driver.Traits
	o Options
	// self makes the requests that are about no node. It is the Node of the process's own instance.
	self *Node

	mu    sync.Mutex
	nodes map[string]*Node
	types map[string]driver.Shape    // that Limits was asked for, by name
	deeds map[string]reservationDeed // by the reservation's ID
	lost  map[reserving]time.Time    // when no answer came: answers may not show that range yet
	pages int                        // of the last look at the whole VPC, 0: there was none

	primaries primaries
}

var (
	_ cloud.Region  = (*Region)(nil)
	_ cloud.Checker = (*Region)(nil)
)

// NewRegion returns the Region of the driver. It makes no call.
func NewRegion(d driver.Driver, o Options) *Region {
	self := New(d, o)
	return &Region{d: d, t: self.t, o: o, self: self, nodes: map[string]*Node{}, types: map[string]driver.Shape{}, deeds: map[string]reservationDeed{}, lost: map[reserving]time.Time{},
		primaries: primaries{at: map[string]time.Time{}}}
}

// Node implements cloud.Region.
func (r *Region) Node(i cloud.Instance) cloud.Cloud {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n, known := r.nodes[i.ID]; known {
		n.takeType(i.Type, r.types[i.Type])
		return n
	}
	n := newNode(r.d, r.o, r.self.known)
	n.self = driver.Self{Instance: i.ID, Type: i.Type, Zone: i.Zone}
	n.log = n.log.With("instance", i.ID)
	n.shape = r.types[i.Type]
	r.nodes[i.ID] = n
	return n
}

// takeType takes in which type the instance has, with what is known of that: after a stop it may be another one than before.
func (n *Node) takeType(name string, shape driver.Shape) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if before := n.self.Type; name != "" && before != name {
		if n.self.Type = name; before != "" {
			n.shape = shape
		}
	}
}

// Forget implements cloud.Region.
func (r *Region) Forget(instance string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.nodes, instance)
	delete(r.primaries.at, instance)
}

// nodeOf returns the Node of an instance, ErrNotFound if there is none.
func (r *Region) nodeOf(instance string) (*Node, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n, known := r.nodes[instance]
	if !known {
		return nil, errorf(cloud.ErrNotFound, "there is no Node of instance %s", instance)
	}
	return n, nil
}

// allInstances returns the IDs of the instances that have a Node, sorted.
func (r *Region) allInstances() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.nodes))
}

// AssignExactly implements cloud.Region.
func (r *Region) AssignExactly(ctx context.Context, instance, id string, addrs []netip.Addr, from cloud.Origin) (got []netip.Addr, err error) {
	defer nameError(&err, "AssignExactly", id)
	n, err := r.nodeOf(instance)
	if err != nil {
		return nil, err
	}
	if from.ENI == id {
		from.ENI = ""
	}
	return n.assignExactly(ctx, id, addrs, from.Subnet, func(ctx context.Context, on nic) (origin, error) {
		return r.findOrigin(ctx, on, from.ENI, addrs)
	})
}

// Limits implements cloud.Region.
func (r *Region) Limits(ctx context.Context, types []string) (all map[string]eni.Limits, err error) {
	defer nameError(&err, "Limits", "")
	if !r.t.Types {
		return nil, errorf(cloud.ErrForbidden, "%s tells the limits of instances, not of types", r.t.Name)
	}
	all = map[string]eni.Limits{}
	if len(types) == 0 {
		return all, nil
	}
	shapes, err := r.self.d.Shapes(ctx, sortedSet(types))
	for name, shape := range shapes {
		n := newNode(r.d, r.o, r.self.known)
		n.shape = shape
		all[name] = n.limits()
		r.keepType(name, shape)
	}
	return all, err
}

// keepType lets nodes of a type, those to come too, go by what it was shown to carry. What is worth a word about a node it asks for itself.
func (r *Region) keepType(name string, shape driver.Shape) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if shape.Builtin != nil || r.o.Prefixes && !shape.Prefixes {
		return
	}
	r.types[name] = shape
	for _, n := range r.nodes {
		n.mu.Lock()
		if n.self.Type == name && n.shape.ENIs == 0 {
			n.shape = shape
		}
		n.mu.Unlock()
	}
}

// Alive implements cloud.Region.
func (r *Region) Alive(ctx context.Context, instances []string) (states map[string]cloud.State, err error) {
	defer nameError(&err, "Alive", "")
	if len(instances) == 0 {
		return map[string]cloud.State{}, nil
	}
	return r.self.d.Alive(ctx, sortedSet(instances))
}

// Sweep is Node.Sweep, which is for the whole cluster: the Nodes of a Region need none of their own. more tells that it takes others
// until all instances have been asked about twice.
func (r *Region) Sweep(ctx context.Context, olderThan time.Duration) (deleted []string, more bool, err error) {
	deleted, err = r.self.Sweep(ctx, olderThan)
	return deleted, r.self.hasMore(len(deleted) > 0), err
}

// Check implements cloud.Checker, by the process's own instance.
func (r *Region) Check(ctx context.Context) []cloud.Finding { return r.self.check(ctx, true) }

// Subnets implements cloud.Region: those that Options choose by ID or by tags, without either those
// of the primary ENIs that describes have shown.
func (r *Region) Subnets(ctx context.Context) (list []cloud.Place, err error) {
	defer nameError(&err, "Subnets", "")
	filter := driver.SubnetFilter{IDs: r.o.Subnets, VPC: r.findVPC(ctx), Tags: r.o.SubnetTags}
	if len(filter.IDs)+len(filter.Tags) == 0 {
		filter.IDs = r.homeSubnets()
	}
	all, err := r.self.describeSubnets(ctx, filter)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		if s.Wrong != "" || s.VPC != "" && filter.VPC != "" && s.VPC != filter.VPC {
			continue
		}
		list = append(list, cloud.Place{Subnet: r.self.publicSubnet(s, s.Ready && !r.t.OneNIC), VPC: cmp.Or(s.VPC, filter.VPC), Zone: r.ZoneName(s.Zone)})
	}
	return list, nil
}

// ZoneName returns the one name that Subnets has for a zone of which a cloud has several: a Node's label may have another one.
func (r *Region) ZoneName(name string) string {
	if r.t.Zone == nil || name == "" {
		return name
	}
	return r.t.Zone(name)
}

// homeSubnets returns the subnets of the nodes' primary ENIs, as far as they were described.
func (r *Region) homeSubnets() (ids []string) {
	for _, id := range r.allInstances() {
		if n, err := r.nodeOf(id); err == nil {
			if h := n.seenHome(); h.subnet != "" {
				ids = append(ids, h.subnet)
			}
		}
	}
	return sortedSet(ids)
}

// findVPC returns the ID of the VPC of the nodes, "" as long as neither a describe nor the driver
// tells it.
func (r *Region) findVPC(ctx context.Context) string {
	for _, id := range r.allInstances() {
		if n, err := r.nodeOf(id); err == nil {
			if h := n.seenHome(); h.vpc != "" {
				return h.vpc
			}
		}
	}
	s, err := r.self.findSelf(ctx)
	if err != nil {
		return "" // a caller that can't do without it fails with this error itself
	}
	return s.VPC
}

// Does implements cloud.Region.
func (r *Region) Does() cloud.Capabilities {
	t := r.t
	return cloud.Capabilities{Indexes: !t.NoIndex, Exact: t.Exact, Moves: t.Moves, CrossSubnet: t.CrossSubnet, Types: t.Types, Keeps: t.Keeps, Reserves: t.Reserves,
		HidesPrimary: t.HidesPrimary, OneENI: t.OneNIC, Bits4: t.Bits4, Bits6: t.Bits6, PerAssign: t.PerCall, PerLook: t.PerScan, PageSize: t.PageSize}
}

// Buckets implements cloud.Region.
func (r *Region) Buckets() map[string]cloud.Bucket { return maps.Clone(r.t.Buckets) }
