package simulate

import (
	"context"
	"net/netip"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// counted is the cloud of a node with its calls counted.
type counted struct {
	priced
	n *node
}

func (c counted) Limits(ctx context.Context) (eni.Limits, error) {
	c.noteDescribe()
	return c.priced.Limits(ctx)
}

func (c counted) Interfaces(ctx context.Context) ([]cloud.Interface, error) {
	c.noteDescribe()
	return c.priced.Interfaces(ctx)
}

func (c counted) Subnets(ctx context.Context) ([]cloud.Subnet, error) {
	c.noteDescribe()
	return c.priced.Subnets(ctx)
}

func (c counted) CreateInterface(ctx context.Context, spec cloud.Create) (cloud.Interface, error) {
	c.noteGrow(&c.n.meter.calls.Attachments)
	return c.priced.CreateInterface(ctx, spec)
}

func (c counted) AssignAddresses(ctx context.Context, id string, f eni.Family, n int) ([]netip.Addr, error) {
	c.noteGrow(&c.n.meter.calls.Assign)
	return c.priced.AssignAddresses(ctx, id, f, n)
}

func (c counted) UnassignAddresses(ctx context.Context, id string, addrs []netip.Addr) error {
	c.noteRelease(&c.n.meter.calls.Unassign)
	return c.priced.UnassignAddresses(ctx, id, addrs)
}

func (c counted) DeleteInterface(ctx context.Context, id string) error {
	c.noteRelease(&c.n.meter.calls.Detachments)
	return c.priced.DeleteInterface(ctx, id)
}

func (c counted) noteDescribe() { c.n.meter.noteCall(&c.n.meter.calls.Describe, true) }

// noteGrow notes a call for more addresses, and a flap if some were released lately.
func (c counted) noteGrow(count *int) {
	n := c.n
	if n.gave && n.clock.now-n.gaveAt < FlapTime && n.meter.hasBegun() {
		n.meter.calls.Flaps++
	}
	n.gave = false
	n.meter.noteCall(count, false)
}

func (c counted) noteRelease(count *int) {
	c.n.gave, c.n.gaveAt = true, c.n.clock.now
	c.n.meter.noteCall(count, false)
}
