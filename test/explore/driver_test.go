package explore

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
)

// window is how long describes may show what was: less than the consistency window that
// agent and engine are told.
const window = 9 * time.Second

// halves is the account's driver, of which each half-operation is a choice: how it comes
// out, and whether the agent outlives it.
type halves struct {
	*sim.Driver
	w *world
}

var _ driver.Driver = halves{}

// version is all ENIs of the account from a time on.
type version struct {
	at  time.Duration
	all []driver.Interface
}

// remember keeps what the account shows, if it is not what it showed before.
func (w *world) remember() {
	now, err := w.truth.Interfaces(context.Background(), driver.Filter{})
	if err != nil {
		panic(err)
	}
	if last := len(w.versions) - 1; last < 0 || !reflect.DeepEqual(w.versions[last].all, now) {
		w.versions = append(w.versions, version{w.clock.now, now})
		w.versions = w.versions[max(0, len(w.versions)-2):]
	}
}

// now returns all ENIs of the account.
func (w *world) now() []driver.Interface { return w.versions[len(w.versions)-1].all }

// before returns what a describe may still show: the ENIs before the last change.
func (w *world) before() []driver.Interface {
	last := len(w.versions) - 1
	if last < 1 || w.clock.now-w.versions[last].at >= window {
		return w.versions[last].all
	}
	return w.versions[last-1].all
}

// selected returns the ENIs that a filter selects.
func selected(all []driver.Interface, f driver.Filter) (list []driver.Interface) {
	for _, i := range all {
		switch {
		case f.Attached.Instance != "" && i.Instance != f.Attached.Instance:
		case f.Made != "" && (i.Mark.Instance != f.Made || f.Token != "" && i.Mark.Token != f.Token):
		case len(f.IDs) > 0 && !slices.Contains(f.IDs, i.ID):
		default:
			i.Groups, i.Singles, i.Blocks = slices.Clone(i.Groups), slices.Clone(i.Singles), slices.Clone(i.Blocks)
			list = append(list, i)
		}
	}
	return list
}

// Interfaces implements driver.Driver: the newest state, the one before, or no answer.
func (h halves) Interfaces(_ context.Context, f driver.Filter) ([]driver.Interface, error) {
	now, before := selected(h.w.now(), f), selected(h.w.before(), f)
	name := fmt.Sprintf("describe %s", filterName(f))
	options := []option{{name: "ok"}, {name: "no answer", faults: 1}}
	if !reflect.DeepEqual(now, before) {
		options = append(options, option{name: "late view", faults: 1})
	}
	switch h.w.choose(name, options).name {
	case "no answer":
		err := &driver.Error{Kind: cloud.ErrUnavailable, Detail: "no answer"}
		h.w.heard(name, err)
		return nil, err
	case "late view":
		now = before
	}
	h.w.heard(name, now)
	return now, nil
}

func filterName(f driver.Filter) string {
	switch {
	case f.Attached.Instance != "":
		return "attached ENIs"
	case f.Token != "":
		return "ENI by token " + f.Token
	case f.Made != "":
		return "ENIs made here"
	}
	return fmt.Sprint("ENI ", f.IDs)
}

// forGood are the refusals after which CreateInterface may undo what it made. All others
// leave it to the next call with the token.
var forGood = []error{cloud.ErrLimit, cloud.ErrForbidden, cloud.ErrSubnetFull, cloud.ErrNotFound}

// maker is the engine; of its calls those that make an ENI are known.
type maker struct {
	*engine.Node
	w *world
}

func (m maker) CreateInterface(ctx context.Context, c cloud.Create) (cloud.Interface, error) {
	m.w.clock.current.makes, m.w.clock.current.final = true, false
	return m.Node.CreateInterface(ctx, c)
}

// undoes notes that an ENI goes.
func (h halves) undoes(id string) {
	if p := h.w.clock.current; p.makes {
		if !p.final {
			h.w.fail("ENI %s is undone although nothing was refused for good", id)
		}
		p.makes = false // what follows belongs to it
	}
}

// change lets a half-operation that changes something come out in one of its ways.
// denied is what the cloud says where it refuses for good.
func change[T any](h halves, name string, denied error, effect func() (T, error)) (value T, err error) {
	var none T
	detail := func(kind error) error { return &driver.Error{Kind: kind, Detail: "chosen"} }
	options := []option{{name: "ok"}, {name: "lost answer", faults: 1}, {name: "refused", faults: 1},
		{name: "denied", faults: 1}, {name: "never heard", faults: 1}, {name: "ok, then killed", faults: 1}}
	switch how := h.w.choose(name, append(options, h.w.podSteps(1)...)); how.name {
	case "refused":
		err = detail(cloud.ErrUnavailable)
	case "denied":
		err = detail(denied)
	case "never heard":
		err = detail(cloud.ErrUnknown)
	case "lost answer":
		_, _ = effect()
		err = detail(cloud.ErrUnknown)
	case "ok, then killed":
		_, _ = effect()
		h.w.remember()
		panic(killed{})
	default:
		if how.do != nil { // a pod comes or goes just before
			how.do()
		}
		value, err = effect()
	}
	h.w.remember()
	if err != nil {
		value = none
	}
	h.w.clock.current.final = slices.Contains(forGood, cloud.Kind(err))
	h.w.heard(name, value, err)
	return value, err
}

func (h halves) Create(ctx context.Context, c driver.Create) (driver.Interface, error) {
	return change(h, fmt.Sprintf("create an ENI with %d addresses", c.V4.Singles), cloud.ErrLimit, func() (driver.Interface, error) { return h.Driver.Create(ctx, c) })
}

func (h halves) Attach(ctx context.Context, a driver.Attach) (string, error) {
	return change(h, fmt.Sprintf("attach %s", a.ID), cloud.ErrLimit, func() (string, error) { return h.Driver.Attach(ctx, a) })
}

func (h halves) Assign(ctx context.Context, a driver.Assign) (driver.Assigned, error) {
	return change(h, fmt.Sprintf("assign %d to %s", a.Count.Singles, a.On.ID), cloud.ErrLimit, func() (driver.Assigned, error) { return h.Driver.Assign(ctx, a) })
}

// void makes a half-operation without a value one of change.
func void(do func() error) func() (struct{}, error) {
	return func() (struct{}, error) { return struct{}{}, do() }
}

func (h halves) Unassign(ctx context.Context, u driver.Unassign) error {
	_, err := change(h, fmt.Sprintf("unassign %v from %s", u.Addresses, u.On.ID), cloud.ErrForbidden, void(func() error { return h.Driver.Unassign(ctx, u) }))
	return err
}

func (h halves) Bind(ctx context.Context, id, attachment string) error {
	_, err := change(h, "bind "+id, cloud.ErrForbidden, void(func() error { return h.Driver.Bind(ctx, id, attachment) }))
	return err
}

func (h halves) Detach(ctx context.Context, i driver.Interface, token string) error {
	h.undoes(i.ID)
	_, err := change(h, "detach "+i.ID, cloud.ErrForbidden, void(func() error { return h.Driver.Detach(ctx, i, token) }))
	return err
}

func (h halves) Delete(ctx context.Context, id, token string) error {
	h.undoes(id)
	_, err := change(h, "delete "+id, cloud.ErrForbidden, void(func() error { return h.Driver.Delete(ctx, id, token) }))
	return err
}
