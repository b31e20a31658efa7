package fleet

import (
	"context"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/sim"
)

// Shapes implements driver.Driver, as all that follow do.
func (c calls) Shapes(ctx context.Context, types []string) (map[string]driver.Shape, error) {
	return send(ctx, c, sim.ActShape, func(ctx context.Context) (map[string]driver.Shape, error) { return c.Driver.Shapes(ctx, types) })
}

func (c calls) Alive(ctx context.Context, instances []string) (map[string]cloud.State, error) {
	return send(ctx, c, sim.ActAlive, func(ctx context.Context) (map[string]cloud.State, error) { return c.Driver.Alive(ctx, instances) })
}

func (c calls) Subnets(ctx context.Context, f driver.SubnetFilter) ([]driver.Subnet, error) {
	return send(ctx, c, sim.ActSubnets, func(ctx context.Context) ([]driver.Subnet, error) { return c.Driver.Subnets(ctx, f) })
}

func (c calls) Interfaces(ctx context.Context, f driver.Filter) ([]driver.Interface, error) {
	return send(ctx, c, sim.ActDescribe, func(ctx context.Context) ([]driver.Interface, error) { return c.Driver.Interfaces(ctx, f) })
}

func (c calls) Page(ctx context.Context, s driver.Scan) (driver.Page, error) {
	return send(ctx, c, sim.ActDescribe, func(ctx context.Context) (driver.Page, error) { return c.Driver.Page(ctx, s) })
}

func (c calls) Create(ctx context.Context, a driver.Create) (driver.Interface, error) {
	return send(ctx, c, sim.ActCreate, func(ctx context.Context) (driver.Interface, error) { return c.Driver.Create(ctx, a) })
}

func (c calls) Attach(ctx context.Context, a driver.Attach) (string, error) {
	return send(ctx, c, sim.ActAttach, func(ctx context.Context) (string, error) { return c.Driver.Attach(ctx, a) })
}

func (c calls) Assign(ctx context.Context, a driver.Assign) (driver.Assigned, error) {
	c.p.w.traced("%s: about to assign %+v", c.p.name, a)
	return send(ctx, c, sim.ActAssign, func(ctx context.Context) (driver.Assigned, error) { return c.Driver.Assign(ctx, a) })
}

func (c calls) Unassign(ctx context.Context, u driver.Unassign) error {
	c.p.w.traced("%s: about to unassign %+v", c.p.name, u)
	return change1(ctx, c, sim.ActUnassign, func(ctx context.Context) error { return c.Driver.Unassign(ctx, u) })
}

func (c calls) Bind(ctx context.Context, id, attachment string) error {
	return change1(ctx, c, sim.ActModify, func(ctx context.Context) error { return c.Driver.Bind(ctx, id, attachment) })
}

func (c calls) Detach(ctx context.Context, i driver.Interface, token string) error {
	c.p.w.traced("%s: about to detach %+v", c.p.name, i.ID)
	return change1(ctx, c, sim.ActDetach, func(ctx context.Context) error { return c.Driver.Detach(ctx, i, token) })
}

func (c calls) Delete(ctx context.Context, id, token string) error {
	return change1(ctx, c, sim.ActDelete, func(ctx context.Context) error { return c.Driver.Delete(ctx, id, token) })
}
