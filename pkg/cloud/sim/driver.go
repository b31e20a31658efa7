package sim

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
)

// The actions of a Driver, for FailNext, Buckets, Latency and Calls.
const (
	ActDescribe = "DescribeInterfaces"
	ActSubnets  = "DescribeSubnets"
	ActShape    = "DescribeTypes"
	ActAlive    = "DescribeInstances"
	ActCreate   = "Create"
	ActAttach   = "Attach"
	ActModify   = "Modify"
	ActDetach   = "Detach"
	ActDelete   = "Delete"
	ActAssign   = "Assign"
	ActUnassign = "Unassign"

	ActReserve   = "Reserve"
	ActUnreserve = "Unreserve"
	ActReserved  = "DescribeReservations"
)

// Driver is the account as one instance's driver, in this process. It behaves as the
// cloud whose traits it has.
type Driver struct {
	a        *Account
	instance string
	traits   driver.Traits
}

var _ driver.Driver = (*Driver)(nil)

// methodActions returns the actions that each method of a Driver is made of.
func methodActions() map[string][]string {
	return map[string][]string{
		"Shape": {ActShape}, "Alive": {ActAlive}, "Subnets": {ActSubnets}, "Interfaces": {ActDescribe}, "Page": {ActDescribe},
		"Create": {ActCreate}, "Attach": {ActAttach}, "Bind": {ActModify}, "Detach": {ActDetach}, "Delete": {ActDelete},
		"Assign": {ActAssign}, "Unassign": {ActUnassign}, "Rewrite": {ActModify}, "SetGroups": {ActModify},
	}
}

// LikeEC2 returns the traits of an account that behaves as EC2 does.
func LikeEC2() driver.Traits {
	requests := methodActions()
	requests["Shapes"] = []string{ActShape}
	requests["Reserve"], requests["Unreserve"], requests["Reservations"] = []string{ActReserve}, []string{ActUnreserve}, []string{ActReserved}
	return driver.Traits{Name: "the simulated cloud", FillsFirst: true, CreateFills: true, Binds: true, AllOrNothing: true, Exact: true, Moves: true, Types: true, PerScan: 200, PageSize: 1000, Keeps: true, Requests: requests, Bits4: 28, Bits6: 80}
}

// LikeBCE returns the traits of an account that behaves as BCE does.
func LikeBCE() driver.Traits {
	return driver.Traits{Name: "the simulated cloud", NoIndex: true, MarksV6: true, AssignTokens: true, Exact: true, PerCall: 10, PageSize: 1000, HidesPrimary: true, Requests: methodActions()}
}

// Driver returns the account as the instance's driver.
func (a *Account) Driver(instance string, t driver.Traits) *Driver { return &Driver{a, instance, t} }

// Traits implements driver.Driver.
func (d *Driver) Traits() driver.Traits { return d.traits }

// Self implements driver.Driver: it is no call.
func (d *Driver) Self(context.Context) (driver.Self, error) {
	return driver.Self{Instance: d.instance, Region: d.a.o.Region}, nil
}

// carryOut carries out a call of the account and makes its error a driver's.
func carryOut[T any](ctx context.Context, d *Driver, c Call, effect func(*Tx) (T, error)) (T, error) {
	value, answer, err := Do(ctx, d.a, c, effect)
	var none T
	switch {
	case answer.Break != Whole:
		return none, unheardError(c, "the answer was lost")
	case ctx.Err() != nil && err == ctx.Err():
		return none, unheardError(c, err.Error())
	case err != nil:
		return none, errorOf(err)
	}
	return value, nil
}

func describeCall[T any](ctx context.Context, d *Driver, action string, effect func(*Tx) (T, error)) (T, error) {
	return carryOut(ctx, d, Call{Action: action}, effect)
}

// Shape implements driver.Driver.
func (d *Driver) Shape(ctx context.Context, s driver.Self) (driver.Shape, error) {
	return describeCall(ctx, d, ActShape, func(tx *Tx) (driver.Shape, error) {
		name := s.Type
		if i, err := tx.Instance(s.Instance); err == nil {
			name = i.Type
		} else if s.Instance != "" {
			return driver.Shape{}, err
		}
		t, err := tx.Type(name)
		shape := d.shapeOf(t)
		shape.NoPrimary = d.a.nodes.byName[s.Instance].Limits.NoPrimary
		return shape, err
	})
}

// Shapes implements driver.Driver.
func (d *Driver) Shapes(ctx context.Context, types []string) (map[string]driver.Shape, error) {
	if !d.traits.Types {
		return nil, &driver.Error{Kind: cloud.ErrForbidden, Detail: "the limits of instances are told, not of types"}
	}
	return describeCall(ctx, d, ActShape, func(tx *Tx) (map[string]driver.Shape, error) {
		shapes := map[string]driver.Shape{}
		for _, name := range types {
			if t, err := tx.Type(name); err == nil {
				shapes[name] = d.shapeOf(t)
			}
		}
		return shapes, nil
	})
}

func (d *Driver) shapeOf(t Type) driver.Shape {
	return driver.Shape{Type: t.Name, ENIs: t.ENIs, Cards: t.Cards, V4: t.V4, V6: t.V6, Prefixes: !t.NoPrefix && d.traits.Bits4 > 0}
}

// Alive implements driver.Driver.
func (d *Driver) Alive(ctx context.Context, instances []string) (map[string]cloud.State, error) {
	return describeCall(ctx, d, ActAlive, func(tx *Tx) (map[string]cloud.State, error) {
		states := map[string]cloud.State{}
		for _, id := range instances {
			switch i, err := tx.Instance(id); {
			case err != nil || i.Terminated:
				states[id] = cloud.Gone
			case i.Stopped:
				states[id] = cloud.Stopped
			default:
				states[id] = cloud.Running
			}
		}
		return states, nil
	})
}

// Subnets implements driver.Driver.
func (d *Driver) Subnets(ctx context.Context, f driver.SubnetFilter) ([]driver.Subnet, error) {
	return describeCall(ctx, d, ActSubnets, func(tx *Tx) (list []driver.Subnet, err error) {
		for _, s := range tx.Subnets() {
			tags := maps.Clone(s.Tags)
			if m, isNode := d.a.nodes.byName[d.instance]; isNode && m.allowsNew(s.ID) {
				tags = mergedTags(tags, AnySubnet())
			}
			if told := (driver.Subnet{ID: s.ID, VPC: tx.VPC().ID, Zone: s.Zone, V4: s.V4, V6: s.V6, Gateway4: s.GatewayV4,
				Gateway6: s.GatewayV6, Free: s.asCloudSubnet(true).Free, Ready: true, Tags: tags}); f.Selects(told) {
				list = append(list, told)
			}
		}
		return list, nil
	})
}

// mergedTags returns tags with those of both.
func mergedTags(a, b map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, a)
	maps.Copy(all, b)
	return all
}

// Interfaces implements driver.Driver.
func (d *Driver) Interfaces(ctx context.Context, f driver.Filter) ([]driver.Interface, error) {
	return describeCall(ctx, d, ActDescribe, func(tx *Tx) (list []driver.Interface, err error) {
		for _, i := range tx.candidatesFor(f) {
			m := markOf(i.Tags)
			at := i.Attachment != nil
			switch {
			case f.Attached.Instance != "" && (!at || i.Attachment.Instance != f.Attached.Instance):
			case f.Made != "" && (m.Instance != f.Made || f.Token != "" && m.Token != f.Token):
			case len(f.IDs) > 0 && !slices.Contains(f.IDs, i.ID):
			case f.Loose != "" && (m.Cluster != f.Loose || at):
			default:
				list = append(list, d.interfaceOf(tx, i, m))
			}
		}
		return list, nil
	})
}

// candidatesFor returns ENIs that include all that the filter selects, in the order of their
// creation. It uses the indexes of the account, which may have thousands of ENIs.
func (tx *Tx) candidatesFor(f driver.Filter) (list []Interface) {
	switch {
	case f.Attached.Instance != "":
		return tx.InterfacesOf(f.Attached.Instance, tagInstance, f.Attached.Instance)
	case f.Made != "":
		return tx.Tagged(tagInstance, f.Made)
	case len(f.IDs) == 1:
		if i, err := tx.Interface(f.IDs[0]); err == nil {
			list = append(list, i)
		}
		return list
	}
	return tx.Interfaces()
}

// interfaceOf returns an ENI as a cloud with the driver's traits would describe it.
func (d *Driver) interfaceOf(tx *Tx, iface Interface, m driver.Mark) driver.Interface {
	out := driver.Interface{ID: iface.ID, MAC: iface.MAC, Subnet: iface.Subnet, VPC: tx.VPC().ID, Zone: iface.Zone, Groups: slices.Clone(iface.Groups),
		State: stateOf(iface.Status), Index: -1, Created: iface.Created, Mark: m,
		V4: iface.Primary, Singles: slices.Concat(iface.V4, iface.V6), Blocks: slices.Clone(iface.Prefixes)}
	// The engine has to find out by itself what the cloud of these traits does not tell: the index
	// without indexes, and which IPv6 address is the primary one.
	if iface.Requester != "" && m.Token == "" {
		out.Unmanaged = iface.Requester + " has it"
	}
	if a := iface.Attachment; a != nil {
		out.Instance, out.Attachment = a.Instance, a.ID
		out.Primary = a.Index == 0 && a.Card == 0
		out.Outlives = d.traits.Binds && !a.DeleteOnTermination
		if !d.traits.NoIndex {
			out.Index, out.Card = a.Index, a.Card
		}
	}
	if iface.First6 && len(iface.V6) > 0 && !d.traits.MarksV6 {
		out.V6, out.Singles = iface.V6[0], slices.Concat(iface.V4, iface.V6[1:])
	}
	return out
}

func stateOf(s Status) driver.State {
	switch s {
	case Pending:
		return driver.Pending
	case Attaching:
		return driver.Attaching
	case InUse:
		return driver.Attached
	case Detaching:
		return driver.Detaching
	}
	return driver.Loose
}

// The tags that a mark is kept in.
const (
	tagInstance = "enipool/node"
	tagToken    = "enipool/token"
	tagAsked    = "enipool/created"
	tagCluster  = "enipool/cluster"
	tagIndex    = "enipool/index"
	tagV6       = "enipool/v6"
)

func markOf(tags map[string]string) driver.Mark {
	if tags[tagToken] == "" {
		return driver.Mark{}
	}
	m := driver.Mark{Instance: tags[tagInstance], Token: tags[tagToken], Cluster: tags[tagCluster]}
	m.Asked, _ = time.Parse(time.RFC3339Nano, tags[tagAsked])
	m.Index, _ = strconv.Atoi(tags[tagIndex])
	m.V6, _ = netip.ParseAddr(tags[tagV6])
	return m
}
