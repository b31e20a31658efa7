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

// priced is the cloud of a node: the engine over the account, each of whose requests passes
// the till as its driver makes it.
type priced struct {
	*engine.Node
	till *till
}

func newPriced(a *sim.Account, name string, t *till) priced {
	d, o := a.NodeDriver(name), a.NodeOptions(name)
	if like := t.w.Driver; like != nil {
		traits := *like
		traits.Bits4, traits.Bits6 = d.Traits().Bits4, d.Traits().Bits6
		d = a.Driver(name, traits)
		o.SubnetTags, o.Admit = nil, t.admit
		for _, s := range t.w.Subnets { // by their IDs, as most configurations have them
			o.Subnets = append(o.Subnets, s.ID)
		}
	}
	return priced{engine.New(attacher{d, a, t}, o), t}
}

// attacher is the account's driver, where attaching an ENI and detaching it take time.
type attacher struct {
	*sim.Driver
	account *sim.Account
	till    *till
}

// Attach implements driver.Driver. Where calls are counted, and not requests, the ENI is
// attached when it returns: nobody asks whether it is.
func (d attacher) Attach(ctx context.Context, a driver.Attach) (string, error) {
	takes := onItsWay(ctx)
	if d.till.w.Driver != nil {
		d.account.SetTimes(0, takes, 0)
		return d.Driver.Attach(ctx, a)
	}
	if err := d.till.waitFor(ctx, takes); err != nil {
		return "", &driver.Error{Kind: cloud.ErrUnknown, Detail: err.Error() + " before the ENI was attached"}
	}
	return d.Driver.Attach(ctx, a)
}

// Detach implements driver.Driver.
func (d attacher) Detach(ctx context.Context, i driver.Interface, token string) error {
	d.account.SetTimes(0, 0, onItsWay(ctx))
	return d.Driver.Detach(ctx, i, token)
}

func (p priced) Limits(ctx context.Context) (l eni.Limits, err error) {
	err = p.till.makeCall(ctx, describeMethods[0], func(ctx context.Context) (err error) {
		l, err = p.Node.Limits(ctx)
		return err
	})
	return l, err
}

func (p priced) Interfaces(ctx context.Context) (list []cloud.Interface, err error) {
	err = p.till.makeCall(ctx, interfaces, func(ctx context.Context) (err error) {
		list, err = p.Node.Interfaces(ctx)
		return err
	})
	return list, err
}

func (p priced) Subnets(ctx context.Context) (list []cloud.Subnet, err error) {
	err = p.till.makeCall(ctx, describeMethods[2], func(ctx context.Context) (err error) {
		list, err = p.Node.Subnets(ctx)
		return err
	})
	return list, err
}

func (p priced) CreateInterface(ctx context.Context, spec cloud.Create) (made cloud.Interface, err error) {
	err = p.till.makeCall(ctx, create, func(ctx context.Context) (err error) {
		made, err = p.Node.CreateInterface(ctx, spec)
		return err
	})
	return made, err
}

func (p priced) AssignAddresses(ctx context.Context, id string, f eni.Family, n int) (addrs []netip.Addr, err error) {
	err = p.till.makeCall(ctx, assign, func(ctx context.Context) (err error) {
		addrs, err = p.Node.AssignAddresses(ctx, id, f, n)
		return err
	})
	return addrs, err
}

func (p priced) UnassignAddresses(ctx context.Context, id string, addrs []netip.Addr) error {
	return p.till.makeCall(ctx, unassign, func(ctx context.Context) error { return p.Node.UnassignAddresses(ctx, id, addrs) })
}

func (p priced) DeleteInterface(ctx context.Context, id string) error {
	return p.till.makeCall(ctx, remove, func(ctx context.Context) error { return p.Node.DeleteInterface(ctx, id) })
}
