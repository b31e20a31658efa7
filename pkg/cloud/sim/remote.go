package sim

import (
	"context"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
)

// Traits implements driver.Driver.
func (c *Remote) Traits() driver.Traits {
	t := LikeEC2()
	t.CrossSubnet = c.CrossSubnet
	t.Times = driver.Times{Poll: 100 * time.Millisecond, Slow: time.Second, Settle: RemoteSettle}
	return t
}

// Self implements driver.Driver: it is no call.
func (c *Remote) Self(context.Context) (driver.Self, error) {
	return driver.Self{Instance: c.node, Region: defaultRegion}, nil
}

// Shape implements driver.Driver.
func (c *Remote) Shape(ctx context.Context, s driver.Self) (driver.Shape, error) {
	return remoteCall[driver.Shape](ctx, c, "Shape", s)
}

// Shapes implements driver.Driver.
func (c *Remote) Shapes(ctx context.Context, types []string) (map[string]driver.Shape, error) {
	return remoteCall[map[string]driver.Shape](ctx, c, "Shapes", types)
}

// Alive implements driver.Driver.
func (c *Remote) Alive(ctx context.Context, instances []string) (map[string]cloud.State, error) {
	return remoteCall[map[string]cloud.State](ctx, c, "Alive", instances)
}

// Subnets implements driver.Driver.
func (c *Remote) Subnets(ctx context.Context, f driver.SubnetFilter) ([]driver.Subnet, error) {
	return remoteCall[[]driver.Subnet](ctx, c, "Subnets", f)
}

// Interfaces implements driver.Driver.
func (c *Remote) Interfaces(ctx context.Context, f driver.Filter) ([]driver.Interface, error) {
	return remoteCall[[]driver.Interface](ctx, c, "Interfaces", f)
}

// Page implements driver.Driver.
func (c *Remote) Page(ctx context.Context, s driver.Scan) (driver.Page, error) {
	return remoteCall[driver.Page](ctx, c, "Page", s)
}

// Create implements driver.Driver.
func (c *Remote) Create(ctx context.Context, w driver.Create) (driver.Interface, error) {
	return remoteCall[driver.Interface](ctx, c, "Create", w)
}

// Attach implements driver.Driver.
func (c *Remote) Attach(ctx context.Context, w driver.Attach) (string, error) {
	return remoteCall[string](ctx, c, "Attach", w)
}

// Bind implements driver.Driver.
func (c *Remote) Bind(ctx context.Context, id, attachment string) error {
	return remoteChange(ctx, c, "Bind", onAttachment{id, attachment})
}

// Detach implements driver.Driver.
func (c *Remote) Detach(ctx context.Context, i driver.Interface, token string) error {
	return remoteChange(ctx, c, "Detach", onInterface{i, token})
}

// Delete implements driver.Driver.
func (c *Remote) Delete(ctx context.Context, id, token string) error {
	return remoteChange(ctx, c, "Delete", onID{id, token})
}

// Assign implements driver.Driver.
func (c *Remote) Assign(ctx context.Context, w driver.Assign) (driver.Assigned, error) {
	return remoteCall[driver.Assigned](ctx, c, "Assign", w)
}

// Unassign implements driver.Driver.
func (c *Remote) Unassign(ctx context.Context, u driver.Unassign) error {
	return remoteChange(ctx, c, "Unassign", u)
}

// Rewrite implements driver.Driver.
func (c *Remote) Rewrite(ctx context.Context, id string, m driver.Mark, token string) error {
	return remoteChange(ctx, c, "Rewrite", marked{id, token, m})
}

// SetGroups implements driver.Driver.
func (c *Remote) SetGroups(ctx context.Context, id string, groups []string, token string) error {
	return remoteChange(ctx, c, "SetGroups", grouped{id, token, groups})
}

// Reserve implements driver.Driver.
func (c *Remote) Reserve(ctx context.Context, r driver.Reservation) (string, error) {
	return remoteCall[string](ctx, c, "Reserve", r)
}

// Unreserve implements driver.Driver.
func (c *Remote) Unreserve(ctx context.Context, id string) error {
	return remoteChange(ctx, c, "Unreserve", id)
}

// Reservations implements driver.Driver.
func (c *Remote) Reservations(ctx context.Context, subnet string) ([]driver.Reservation, error) {
	return remoteCall[[]driver.Reservation](ctx, c, "Reservations", subnet)
}

// remoteChange carries out a call without a value.
func remoteChange(ctx context.Context, c *Remote, method string, args any) error {
	_, err := remoteCall[struct{}](ctx, c, method, args)
	return err
}
