package drivertest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

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
	{"a change whose answer is lost is ErrUnknown, a read ErrUnavailable", []need{canFail}, lostAnswer(Lost)},
	{"a change of which nobody hears is ErrUnknown and may have its effect later", []need{canFail}, lostAnswer(Late)},
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

// oneOfEach returns a call of each method that the cloud has, which can be made one after the
// other.
func (a *account) oneOfEach() []call {
	a.Helper()
	on := a.readyENI()
	// The last of them detach and delete: each call must find what those before it have left.
	list := append(a.readCalls(), a.addressCalls(on)...)
	if len(a.s.Groups) > 0 {
		list = append(list, call{"SetGroups", true,
			func(ctx context.Context) error { return a.SetGroups(ctx, on.ID, a.s.Groups, a.newMark().Token) },
			func() bool { return slices.Equal(sortedText(a.settledENI(on.ID).Groups), sortedText(a.s.Groups)) }})
	}
	if a.traits.OneNIC {
		return list
	}
	if a.traits.MarksV6 {
		m := on.Mark
		m.Token = a.newMark().Token
		list = append(list, call{"Rewrite", true,
			func(ctx context.Context) error { return a.Rewrite(ctx, on.ID, m, a.newMark().Token) },
			func() bool { return a.settledENI(on.ID).Mark.Token == m.Token }})
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
	family := a.has[0]
	goes := a.assignSingles(on, family, 1)
	had := a.singlesOf(on.ID, family)
	return []call{
		{"Assign", true,
			func(ctx context.Context) error {
				_, err := a.Assign(ctx, driver.Assign{On: on, Family: family, Count: driver.Count{Singles: 1}, Token: a.newMark().Token})
				return err
			},
			func() bool { return len(without(a.singlesOf(on.ID, family), had)) == 1 }},
		{"Unassign", true,
			func(ctx context.Context) error {
				return a.Unassign(ctx, driver.Unassign{On: on, Family: family, Addresses: goes, Token: a.newMark().Token})
			},
			func() bool { return !slices.Contains(a.singlesOf(on.ID, family), goes[0]) }},
	}
}

func (a *account) nicCalls(on driver.Interface) []call {
	a.Helper()
	w, goes, comes := a.newCreate(), a.looseENI(), a.looseENI()
	place := a.freePlace(comes.ID, a.self.Instance)
	return []call{
		{"Create", true,
			func(ctx context.Context) error { _, err := a.Create(ctx, w); return err },
			func() bool { return len(a.settledIDs(driver.Filter{Made: a.self.Instance, Token: w.Mark.Token})) == 1 }},
		{"Attach", true,
			func(ctx context.Context) error { _, err := a.Attach(ctx, place); return err },
			func() bool { return a.settledENI(comes.ID).State == driver.Attached }},
		{"Delete", true,
			func(ctx context.Context) error { return a.Delete(ctx, goes.ID, a.newMark().Token) },
			func() bool { return a.settledENI(goes.ID).ID == "" }},
		{"Detach", true,
			func(ctx context.Context) error { return a.Detach(ctx, on, a.newMark().Token) },
			func() bool { return a.settledENI(on.ID).State == driver.Loose }},
	}
}

func severalGoroutines(account *account) {
	// Deletions are repeated: a cloud may refuse one of an ENI that it is still making.
	before := account.allENIs()
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if _, err := account.Interfaces(account.ctx, driver.Filter{Attached: account.self}); err != nil {
				account.Error(err)
			}
			if _, err := account.Subnets(account.ctx, driver.SubnetFilter{IDs: account.s.Subnets}); err != nil {
				account.Error(err)
			}
		})
		if account.traits.OneNIC {
			continue
		}
		w, token := account.newCreate(), account.newMark().Token
		group.Go(func() {
			made, err := account.Create(account.ctx, w)
			if err != nil {
				account.Error(err)
				return
			}
			account.waitUntil("an ENI can be deleted", func() bool {
				err := account.Delete(account.ctx, made.ID, token)
				return err == nil || driver.Reason(err) == cloud.NoSuchInterface && account.settledENI(made.ID).ID == ""
			})
		})
	}
	group.Wait()
	account.waitUntil("ENIs that were deleted are not shown", func() bool { return diffValues(before, account.allENIs()) == "" })
}

func oneRequest(account *account) {
	for _, c := range account.oneOfEach() {
		if !c.changes {
			continue
		}
		before := account.s.Changes()
		account.must(c.do(account.ctx))
		if n := account.s.Changes() - before; n != 1 {
			account.Errorf("%s made %d requests that change something", c.method, n)
		}
	}
}

// refusedAs makes only one request fail, so that a driver that repeats changes would succeed.
func refused(f Failure, kind error) func(*account) {
	return func(account *account) {
		calls := account.oneOfEach()
		before := account.allENIs()
		for _, c := range calls {
			account.s.Inject(c.method, f)
			account.checkKind(c.do(account.ctx), kind)
			account.checkUnchanged(before)
		}
	}
}

func lostAnswer(f Failure) func(*account) {
	return func(account *account) {
		for _, c := range account.oneOfEach() {
			account.s.Inject(c.method, f)
			account.checkKind(c.do(account.ctx), kindOfLost(c))
			if c.done != nil {
				account.waitUntil("the effect of "+c.method+" shows", c.done)
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

// contextEnds has the request hang until its caller gives up.
func contextEnds(account *account) {
	for _, c := range account.oneOfEach() {
		account.s.Inject(c.method, Hang)
		account.checkKind(account.giveUp(c), kindOfLost(c))
	}
}

// giveUp calls with a context that ends while the request hangs. On a busy machine it may end before a change is sent, which the
// driver tells: there is more time for the next try. A driver that tells this of a request that was sent has the next one answered.
func (a *account) giveUp(c call) error {
	for wait := a.traits.Times.Poll; ; wait *= 4 {
		ctx, cancel := context.WithTimeout(a.ctx, wait)
		err := c.do(ctx)
		cancel()
		var e *driver.Error
		if !c.changes || !errors.As(err, &e) || e.Kind != cloud.ErrUnavailable || wait > time.Minute {
			return err
		}
	}
}

func contextEnded(account *account) {
	calls := account.oneOfEach()
	before := account.allENIs()
	ended, cancel := context.WithCancel(account.ctx)
	cancel()
	for _, c := range calls {
		err := account.checkKind(c.do(ended), cloud.ErrUnavailable, cloud.ErrUnknown)
		if err.Kind == cloud.ErrUnavailable {
			account.checkUnchanged(before)
			continue
		}
		if !c.changes {
			account.Errorf("%s, which changes nothing, is ErrUnknown: %v", c.method, err)
		}
		before = account.allENIs()
	}
}
