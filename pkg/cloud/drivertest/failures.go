package drivertest

import (
	"context"
	"slices"
	"sync"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
)

// failures is what the comments of Driver and Error say of all methods.
var failures = []sentence{
	{"methods may be called from several goroutines", nil, severalGoroutines},
	{"a method that changes something makes one request that does", []need{canCount}, oneRequest},
	{"after ErrThrottled nothing has happened, and nothing is repeated", []need{canFail}, refused(Throttled, cloud.ErrThrottled)},
	{"after ErrUnavailable nothing has happened, and nothing is repeated", []need{canFail}, refused(Unavailable, cloud.ErrUnavailable)},
	{"a missing right is ErrForbidden, and nothing has happened", []need{canFail}, refused(Forbidden, cloud.ErrForbidden)},
	{"a change whose answer is lost is ErrUnknown, a read ErrUnavailable", []need{canFail}, lost(Lost)},
	{"a change of which nobody hears is ErrUnknown and may have its effect later", []need{canFail}, lost(Late)},
	{"a call whose context ends returns", []need{canFail}, contextEnds},
	{"a call whose context has ended has had no effect unless the error is ErrUnknown", nil, contextEnded},
}

// call is one call of a method, with arguments that are right.
type call struct {
	method  string
	changes bool
	do      func(context.Context) error
	done    func() bool // reads show its effect; nil: none do
}

// calls returns a call of each method that the cloud has, which can be made one after the
// other.
func (a *account) calls() []call {
	a.Helper()
	on := a.ready()
	list := append(a.readCalls(), a.addressCalls(on)...)
	if len(a.s.Groups) > 0 {
		list = append(list, call{"SetGroups", true,
			func(ctx context.Context) error { return a.SetGroups(ctx, on.ID, a.s.Groups, a.mark().Token) },
			func() bool { return slices.Equal(sortedText(a.one(on.ID).Groups), sortedText(a.s.Groups)) }})
	}
	if a.traits.OneNIC {
		return list
	}
	if a.traits.MarksV6 {
		m := on.Mark
		m.Token = a.mark().Token
		list = append(list, call{"Rewrite", true,
			func(ctx context.Context) error { return a.Rewrite(ctx, on.ID, m, a.mark().Token) },
			func() bool { return a.one(on.ID).Mark.Token == m.Token }})
	}
	if a.traits.Binds {
		list = append(list, call{"Bind", true, func(ctx context.Context) error { return a.Bind(ctx, on.ID, on.Attachment) }, nil})
	}
	return append(list, a.nicCalls(on)...)
}

func (a *account) readCalls() []call {
	return []call{
		{method: "Shape", do: func(ctx context.Context) error {
			s, err := a.Shape(ctx, a.self)
			if err == nil {
				err = s.Builtin // a table in place of the answer is as good
			}
			return err
		}},
		{method: "Alive", do: func(ctx context.Context) error { _, err := a.Alive(ctx, []string{a.self.Instance}); return err }},
		{method: "Subnets", do: func(ctx context.Context) error {
			_, err := a.Subnets(ctx, driver.SubnetFilter{IDs: a.s.Subnets})
			return err
		}},
		{method: "Interfaces", do: func(ctx context.Context) error {
			_, err := a.Interfaces(ctx, driver.Filter{Attached: a.self})
			return err
		}},
	}
}

func (a *account) addressCalls(on driver.Interface) []call {
	a.Helper()
	f := a.has[0]
	goes := a.put(on, f, 1)
	had := a.addresses(on.ID, f)
	return []call{
		{"Assign", true,
			func(ctx context.Context) error {
				_, err := a.Assign(ctx, driver.Assign{On: on, Family: f, Count: driver.Count{Singles: 1}, Token: a.mark().Token})
				return err
			},
			func() bool { return len(without(a.addresses(on.ID, f), had)) == 1 }},
		{"Unassign", true,
			func(ctx context.Context) error {
				return a.Unassign(ctx, driver.Unassign{On: on, Family: f, Addresses: goes, Token: a.mark().Token})
			},
			func() bool { return !slices.Contains(a.addresses(on.ID, f), goes[0]) }},
	}
}

func (a *account) nicCalls(on driver.Interface) []call {
	a.Helper()
	w, goes, comes := a.wish(), a.loose(), a.loose()
	place := a.place(comes.ID, a.self.Instance)
	return []call{
		{"Create", true,
			func(ctx context.Context) error { _, err := a.Create(ctx, w); return err },
			func() bool { return len(a.ids(driver.Filter{Made: a.self.Instance, Token: w.Mark.Token})) == 1 }},
		{"Attach", true,
			func(ctx context.Context) error { _, err := a.Attach(ctx, place); return err },
			func() bool { return a.one(comes.ID).State == driver.Attached }},
		{"Delete", true,
			func(ctx context.Context) error { return a.Delete(ctx, goes.ID, a.mark().Token) },
			func() bool { return a.one(goes.ID).ID == "" }},
		{"Detach", true,
			func(ctx context.Context) error { return a.Detach(ctx, on, a.mark().Token) },
			func() bool { return a.one(on.ID).State == driver.Loose }},
	}
}

func severalGoroutines(a *account) {
	before := a.all()
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if _, err := a.Interfaces(a.ctx, driver.Filter{Attached: a.self}); err != nil {
				a.Error(err)
			}
			if _, err := a.Subnets(a.ctx, driver.SubnetFilter{IDs: a.s.Subnets}); err != nil {
				a.Error(err)
			}
		})
		if a.traits.OneNIC {
			continue
		}
		w, token := a.wish(), a.mark().Token
		group.Go(func() {
			made, err := a.Create(a.ctx, w)
			if err != nil {
				a.Error(err)
				return
			}
			a.await("an ENI can be deleted", func() bool {
				err := a.Delete(a.ctx, made.ID, token)
				return err == nil || driver.Reason(err) == driver.NoSuchInterface && a.one(made.ID).ID == ""
			})
		})
	}
	group.Wait()
	a.await("ENIs that were deleted are not shown", func() bool { return diffValues(before, a.all()) == "" })
}

func oneRequest(a *account) {
	for _, c := range a.calls() {
		if !c.changes {
			continue
		}
		before := a.s.Changes()
		a.must(c.do(a.ctx))
		if n := a.s.Changes() - before; n != 1 {
			a.Errorf("%s made %d requests that change something", c.method, n)
		}
	}
}

// refused: the failure befalls one request, so that a repetition would succeed.
func refused(f Failure, kind error) func(*account) {
	return func(a *account) {
		calls := a.calls()
		before := a.all()
		for _, c := range calls {
			a.s.Inject(c.method, f)
			a.is(c.do(a.ctx), kind)
			a.unchanged(before)
		}
	}
}

func lost(f Failure) func(*account) {
	return func(a *account) {
		for _, c := range a.calls() {
			a.s.Inject(c.method, f)
			a.is(c.do(a.ctx), kindOfLost(c))
			if c.done != nil {
				a.await("the effect of "+c.method+" shows", c.done)
			}
		}
	}
}

// kindOfLost is the kind of a call of which nobody knows what became of it.
func kindOfLost(c call) error {
	if c.changes {
		return cloud.ErrUnknown
	}
	return cloud.ErrUnavailable
}

// contextEnds: the request hangs until its caller gives up.
func contextEnds(a *account) {
	for _, c := range a.calls() {
		ctx, cancel := context.WithTimeout(a.ctx, a.traits.Times.Poll)
		a.s.Inject(c.method, Hang)
		err := c.do(ctx)
		cancel()
		a.is(err, kindOfLost(c))
	}
}

func contextEnded(a *account) {
	calls := a.calls()
	before := a.all()
	ended, cancel := context.WithCancel(a.ctx)
	cancel()
	for _, c := range calls {
		err := a.is(c.do(ended), cloud.ErrUnavailable, cloud.ErrUnknown)
		if err.Kind == cloud.ErrUnavailable {
			a.unchanged(before)
			continue
		}
		if !c.changes {
			a.Errorf("%s, which changes nothing, is ErrUnknown: %v", c.method, err)
		}
		before = a.all()
	}
}
