package simulate

import (
	"context"
	"net/netip"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
)

// priced is the cloud of a node: the engine over an account that answers at once, with the
// time that its calls take and the requests that they make paid at the till.
type priced struct {
	*engine.Node
	till *till
}

func newPriced(a *sim.Account, name string, t *till) priced {
	return priced{engine.New(attacher{a.NodeDriver(name), t}, a.NodeOptions(name)), t}
}

// attacher is the account's driver, where attaching an ENI takes time.
type attacher struct {
	*sim.Driver
	till *till
}

// Attach implements driver.Driver.
func (d attacher) Attach(ctx context.Context, a driver.Attach) (string, error) {
	if err := d.till.attaching(ctx); err != nil {
		return "", &driver.Error{Kind: cloud.ErrUnknown, Detail: err.Error() + " before the ENI was attached"}
	}
	return d.Driver.Attach(ctx, a)
}

func (p priced) Limits(ctx context.Context) (l eni.Limits, err error) {
	err = p.till.call(ctx, fare{method: looks[0]}, func(ctx context.Context) (err error) {
		l, err = p.Node.Limits(ctx)
		return err
	})
	return l, err
}

func (p priced) Interfaces(ctx context.Context) (list []cloud.Interface, err error) {
	err = p.till.call(ctx, fare{method: interfaces}, func(ctx context.Context) (err error) {
		list, err = p.Node.Interfaces(ctx)
		return err
	})
	return list, err
}

func (p priced) Subnets(ctx context.Context) (list []cloud.Subnet, err error) {
	err = p.till.call(ctx, fare{method: looks[2]}, func(ctx context.Context) (err error) {
		list, err = p.Node.Subnets(ctx)
		return err
	})
	return list, err
}

func (p priced) CreateInterface(ctx context.Context, wish cloud.Create) (made cloud.Interface, err error) {
	err = p.till.call(ctx, fare{create, wish.V4 + wish.V6, wish.Token}, func(ctx context.Context) (err error) {
		made, err = p.Node.CreateInterface(ctx, wish)
		return err
	})
	return made, err
}

func (p priced) AssignAddresses(ctx context.Context, id string, f eni.Family, n int) (addrs []netip.Addr, err error) {
	err = p.till.call(ctx, fare{method: assign, count: n}, func(ctx context.Context) (err error) {
		addrs, err = p.Node.AssignAddresses(ctx, id, f, n)
		return err
	})
	return addrs, err
}

func (p priced) UnassignAddresses(ctx context.Context, id string, addrs []netip.Addr) error {
	return p.till.call(ctx, fare{method: "UnassignAddresses", count: len(addrs)}, func(ctx context.Context) error {
		return p.Node.UnassignAddresses(ctx, id, addrs)
	})
}

func (p priced) DeleteInterface(ctx context.Context, id string) error {
	return p.till.call(ctx, fare{method: "DeleteInterface"}, func(ctx context.Context) error { return p.Node.DeleteInterface(ctx, id) })
}
