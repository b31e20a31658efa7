package agent

import (
	"context"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/sim"
)

// halves are the half-operations of the cloud as one process asks for them: it may be
// killed before each of them, or when it is on its way. A dead process asks for nothing and
// hears nothing. What takes addresses away is looked at: no pod may have them.
type halves struct {
	*sim.Driver
	p process
}

// ask makes a request, unless the process is dead.
func ask[T any](h halves, action string, about any, do func() (T, error)) (T, error) {
	var none T
	h.p.ownTime(action, about)
	begun := false
	killed := h.p.do(func() error { begun = true; return nil })
	if !begun {
		return none, killed
	}
	got, err := do()
	h.p.n.w.traced(h.p.n.name, action, about, got, err, killed)
	if killed != nil {
		return none, killed
	}
	h.p.returned(action)
	return got, err
}

func tell(h halves, action string, about any, do func() error) error {
	_, err := ask(h, action, about, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

func (h halves) Shape(ctx context.Context, s driver.Self) (driver.Shape, error) {
	return ask(h, sim.ActShape, s, func() (driver.Shape, error) { return h.Driver.Shape(ctx, s) })
}

func (h halves) Subnets(ctx context.Context, f driver.SubnetFilter) ([]driver.Subnet, error) {
	return ask(h, sim.ActSubnets, f, func() ([]driver.Subnet, error) { return h.Driver.Subnets(ctx, f) })
}

func (h halves) Interfaces(ctx context.Context, f driver.Filter) ([]driver.Interface, error) {
	return ask(h, sim.ActDescribe, f, func() ([]driver.Interface, error) { return h.Driver.Interfaces(ctx, f) })
}

func (h halves) Create(ctx context.Context, c driver.Create) (driver.Interface, error) {
	return ask(h, sim.ActCreate, c, func() (driver.Interface, error) { return h.Driver.Create(ctx, c) })
}

func (h halves) Attach(ctx context.Context, a driver.Attach) (string, error) {
	return ask(h, sim.ActAttach, a, func() (string, error) { return h.Driver.Attach(ctx, a) })
}

func (h halves) Bind(ctx context.Context, id, attachment string) error {
	return tell(h, sim.ActModify, id, func() error { return h.Driver.Bind(ctx, id, attachment) })
}

func (h halves) Rewrite(ctx context.Context, id string, m driver.Mark, token string) error {
	return tell(h, sim.ActModify, id, func() error { return h.Driver.Rewrite(ctx, id, m, token) })
}

func (h halves) Detach(ctx context.Context, i driver.Interface, token string) error {
	return tell(h, sim.ActDetach, i.ID, func() error {
		h.p.n.mayLose(i.ID)
		return h.Driver.Detach(ctx, i, token)
	})
}

func (h halves) Delete(ctx context.Context, id, token string) error {
	return tell(h, sim.ActDelete, id, func() error { return h.Driver.Delete(ctx, id, token) })
}

func (h halves) Assign(ctx context.Context, a driver.Assign) (driver.Assigned, error) {
	about := []any{a.On.ID, a.Family, a.Count}
	return ask(h, sim.ActAssign, about, func() (driver.Assigned, error) { return h.Driver.Assign(ctx, a) })
}

func (h halves) Unassign(ctx context.Context, u driver.Unassign) error {
	return tell(h, sim.ActUnassign, []any{u.On.ID, u.Addresses, u.Blocks}, func() error {
		h.p.n.mayGo(h.within(u))
		return h.Driver.Unassign(ctx, u)
	})
}

// within returns the addresses that an Unassign takes.
func (h halves) within(u driver.Unassign) []netip.Addr {
	gone := slices.Clone(u.Addresses)
	for _, nic := range h.p.n.attached() {
		for _, a := range nic.Addresses {
			if slices.ContainsFunc(u.Blocks, func(b netip.Prefix) bool { return b.Contains(a) }) {
				gone = append(gone, a)
			}
		}
	}
	return gone
}
