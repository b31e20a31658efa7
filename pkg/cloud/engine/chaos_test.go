package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
)

// chaos is a node in an account in which requests fail by chance, whose process ends in the
// middle of calls. It knows what the node must still have, from what calls have returned.
type chaos struct {
	*testing.T
	w     *world
	rng   *rand.Rand
	n     *engine.Node
	has   map[string][]netip.Addr // by ENI: addresses that were returned, and never asked to go
	token map[string]string       // by ENI that was returned and never asked to go
	begun map[string]cloud.Create // by token: calls that have not returned an ENI yet
	next  int
	log   []string

	own     map[string]bool       // ENIs that calls of this process have made
	gone    map[netip.Addr]string // addresses that calls have taken, and from which ENI
	deleted map[string]bool       // ENIs that calls have deleted
}

// expect fails the test, with what was done before, unless it holds.
func (c *chaos) expect(holds bool, format string, args ...any) {
	c.Helper()
	if !holds {
		for _, line := range c.log {
			c.Log(line)
		}
		c.Fatalf(format, args...)
	}
}

func (c *chaos) did(err error, format string, args ...any) {
	c.Helper()
	text := "done"
	if err != nil {
		text = err.Error()
	}
	c.log = append(c.log, fmt.Sprintf("%s %s: %s", time.Now().Format("04:05.000"), fmt.Sprintf(format, args...), text))
	var e *cloud.Error
	c.expect(err == nil || errors.As(err, &e) && slices.Contains(cloud.NodeKinds(), e.Kind) && e.Op != "", "error %T %v", err, err)
}

// truth is the ENI in the account.
func (c *chaos) truth(id string) (i sim.Interface, ok bool) {
	at := slices.IndexFunc(c.w.truth(), func(i sim.Interface) bool { return i.ID == id })
	if at < 0 {
		return i, false
	}
	return c.w.truth()[at], true
}

// carries tells whether the ENI has the address in the account, by itself or in a prefix.
func carries(i sim.Interface, a netip.Addr) bool {
	return slices.Contains(i.Addresses(), a) || slices.ContainsFunc(i.Prefixes, func(p netip.Prefix) bool { return p.Contains(a) })
}

// step does one thing. The context may end in the middle of it, and the process with it.
func (c *chaos) step() {
	ctx, cancel := c.Context(), context.CancelFunc(func() {})
	killed := c.rng.IntN(6) == 0
	if killed {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(c.rng.IntN(8_000))*time.Millisecond)
	}
	switch c.rng.IntN(10) {
	case 0, 1:
		c.create(ctx)
	case 2, 3, 4:
		c.assign(ctx)
	case 5, 6:
		c.unassign(ctx)
	case 7:
		c.remove(ctx)
	case 8:
		list, err := c.n.Interfaces(ctx)
		c.did(err, "Interfaces")
		if err == nil {
			c.shown(list, "Interfaces")
		}
	case 9:
		time.Sleep(time.Duration(c.rng.IntN(20)) * time.Second)
	}
	cancel()
	c.shown(c.n.Known(), "Known")
	if killed || c.rng.IntN(20) == 0 {
		c.log = append(c.log, "a new process")
		notes := c.n.Notes()
		c.n = c.w.node("i-1")
		c.n.Recall(notes)
		clear(c.own)
	}
}

// shown compares what the node shows with what calls of the same process have returned:
// whatever describes lag, it knows what it has done.
func (c *chaos) shown(list []cloud.Interface, what string) {
	c.Helper()
	for id := range c.own {
		at := slices.IndexFunc(list, func(i cloud.Interface) bool { return i.ID == id })
		if _, stands := c.token[id]; !stands {
			continue // a call was asked to delete it, and may not have got so far
		}
		c.expect(at >= 0 && list[at].Index > 0, "%s lacks ENI %s: %+v", what, id, list)
		for _, a := range c.has[id] {
			c.expect(slices.Contains(list[at].Addresses, a), "%s lacks %s of ENI %s: %v", what, a, id, list[at].Addresses)
		}
	}
	has := map[any]string{} // by index, MAC and address: whose it is
	once := func(claim any, id string) {
		c.expect(has[claim] == "", "%s has %v on ENIs %s and %s: %+v", what, claim, has[claim], id, list)
		has[claim] = id
	}
	for _, i := range list {
		if i.Index >= 0 {
			once(i.Index, i.ID)
		}
		once(i.MAC, i.ID)
		for _, a := range append(slices.Clone(i.Addresses), i.V4.Primary.Addr(), i.V6.Primary.Addr()) {
			if a.IsValid() {
				once(a, i.ID)
			}
		}
		c.expect(!c.deleted[i.ID], "%s has ENI %s, which was deleted", what, i.ID)
		now, there := c.truth(i.ID) // one that was taken may have come back by an answer that was lost, and gone with its ENI
		for _, a := range i.Addresses {
			c.expect(c.gone[a] != i.ID || !there || carries(now, a), "%s has %s on ENI %s, which was taken from it", what, a, i.ID)
		}
	}
}

func (c *chaos) create(ctx context.Context) {
	request := c.w.newENI()
	request.Token = fmt.Sprintf("intent-%d", c.next)
	for _, before := range c.begun { // an agent asks again before it asks for more
		request = before
	}
	c.begun[request.Token] = request
	i, err := c.n.CreateInterface(ctx, request)
	c.did(err, "CreateInterface %s = %s", request.Token, i.ID)
	if err != nil {
		return
	}
	delete(c.begun, request.Token)
	c.next++
	c.token[i.ID], c.has[i.ID], c.own[i.ID] = request.Token, i.Addresses, true
	now, there := c.truth(i.ID)
	c.expect(there && now.Status == sim.InUse && now.At("i-1"), "ENI %s was returned, and is %+v", i.ID, now)
	c.expect(len(i.Addresses) > 0 && i.Token == request.Token && i.Index > 0, "CreateInterface %+v returned %+v", request, i)
	c.carriesAll(i.ID)
}

func (c *chaos) carriesAll(id string) {
	c.Helper()
	now, _ := c.truth(id)
	for _, a := range c.has[id] {
		c.expect(carries(now, a), "ENI %s lacks %s, which was returned: %+v", id, a, now)
	}
}

// pick chooses an ENI that the node must have, "" if there is none.
func (c *chaos) pick() string {
	var ids []string
	for id := range c.token {
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		return ""
	}
	slices.Sort(ids)
	return ids[c.rng.IntN(len(ids))]
}

func (c *chaos) assign(ctx context.Context) {
	id := c.pick()
	if id == "" {
		return
	}
	f, count := eni.IPv4, 1+c.rng.IntN(3)
	if c.w.o.Prefixes {
		count = 16 * (1 + c.rng.IntN(2))
	}
	got, err := c.n.AssignAddresses(ctx, id, f, count)
	c.did(err, "AssignAddresses %s %d = %v", id, count, got)
	for _, a := range got { // with an error it may be one that an earlier process has put
		delete(c.gone, a)
		had := slices.Contains(c.has[id], a)
		c.expect(!had || err != nil, "AssignAddresses returned %s, which ENI %s had", a, id)
		if !had {
			c.has[id] = append(c.has[id], a)
		}
	}
	c.carriesAll(id)
}

func (c *chaos) unassign(ctx context.Context) {
	id := c.pick()
	if id == "" || len(c.has[id]) == 0 {
		return
	}
	gone := c.some(c.has[id])
	c.has[id] = slices.DeleteFunc(slices.Clone(c.has[id]), func(a netip.Addr) bool { return slices.Contains(gone, a) })
	err := c.n.UnassignAddresses(ctx, id, gone)
	c.did(err, "UnassignAddresses %s %v", id, gone)
	now, _ := c.truth(id)
	for _, a := range gone {
		c.expect(err != nil || !carries(now, a), "UnassignAddresses left %s on ENI %s", a, id)
		if err == nil {
			c.gone[a] = id
		}
	}
	c.carriesAll(id)
}

// some chooses a few addresses, of blocks all.
func (c *chaos) some(addrs []netip.Addr) (some []netip.Addr) {
	first := addrs[c.rng.IntN(len(addrs))]
	if !c.w.o.Prefixes {
		return slices.Compact([]netip.Addr{first, addrs[c.rng.IntN(len(addrs))]})
	}
	bits := 28
	if first.Is6() {
		bits = 80
	}
	block, _ := first.Prefix(bits)
	return slices.DeleteFunc(slices.Clone(addrs), func(a netip.Addr) bool { return !block.Contains(a) })
}

func (c *chaos) remove(ctx context.Context) {
	id := c.pick()
	if id == "" {
		return
	}
	delete(c.token, id)
	delete(c.has, id)
	err := c.n.DeleteInterface(ctx, id)
	c.did(err, "DeleteInterface %s", id)
	_, there := c.truth(id)
	c.expect(err != nil || !there, "ENI %s was deleted and is there", id)
	c.deleted[id] = err == nil
}

// end lets all that is late come, and compares what the account has with what a fresh
// process sees and with what calls have returned.
func (c *chaos) end() {
	c.w.SetFaults()
	time.Sleep(5 * time.Minute)
	c.log = append(c.log, "the end")
	for id, token := range c.token {
		now, there := c.truth(id)
		c.expect(there && now.Tags["enipool/token"] == token && now.At("i-1"), "ENI %s, which nobody asked to go, is %+v", id, now)
		c.carriesAll(id)
	}
	tokens := map[string]string{}
	shown, err := c.w.node("i-1").Interfaces(c.Context())
	must(c.T, err)
	for _, i := range c.w.truth() {
		token := i.Tags["enipool/token"]
		c.expect(tokens[token] == "", "ENIs %s and %s have token %s", tokens[token], i.ID, token)
		tokens[token] = i.ID
		c.expect(slices.ContainsFunc(shown, func(s cloud.Interface) bool { return s.ID == i.ID && s.Token == token }), "ENI %s is not shown: %+v", i.ID, shown)
	}
	must(c.T, c.w.Check())
}

// chances are what goes wrong with how many of 100 requests.
func chances() []sim.Chance {
	fail := func(r sim.Reason) sim.Fault { return sim.Fault{Err: &sim.Error{Reason: r}} }
	return []sim.Chance{
		{Percent: 3, Fault: fail(sim.Throttled)}, {Percent: 3, Fault: fail(sim.Unavailable)}, {Percent: 1, Fault: fail(sim.Forbidden)},
		{Percent: 5, Fault: sim.Fault{Answer: sim.Lost}}, {Percent: 2, Fault: sim.Fault{Answer: sim.Lost, Later: 3 * time.Second}},
		{Percent: 2, Fault: sim.Fault{Slow: 5 * time.Second}}, {Percent: 2, Fault: sim.Fault{Delay: 3 * time.Second}},
	}
}

// TestWhatCallsReturnIsTrueWhateverFails runs some hundred random histories for each cloud;
// CHAOS=n runs n of them.
func TestWhatCallsReturnIsTrueWhateverFails(t *testing.T) {
	seeds := 60
	if n, err := strconv.Atoi(os.Getenv("CHAOS")); err == nil {
		seeds = n
	}
	for name, v := range steps() {
		for what, lag := range map[string]time.Duration{"": 0, ", lag": 4 * time.Second} {
			t.Run(name+what, func(t *testing.T) {
				for seed := range uint64(seeds) {
					synctest.Test(t, func(t *testing.T) {
						w := newWorld(t, v.traits, sim.Options{Lag: lag, Seed: seed, CreateTime: 300 * time.Millisecond, AttachTime: time.Second, DetachTime: 2 * time.Second,
							Latency: map[string]sim.Latency{"": {Base: 50 * time.Millisecond, Jitter: 100 * time.Millisecond}}}, v.e)
						c := &chaos{T: t, w: w, log: []string{fmt.Sprint("seed ", seed)}, rng: rand.New(rand.NewPCG(seed, 7)), n: w.node("i-1"), has: map[string][]netip.Addr{},
							token: map[string]string{}, begun: map[string]cloud.Create{}, own: map[string]bool{}, gone: map[netip.Addr]string{}, deleted: map[string]bool{}}
						w.SetFaults(chances()...)
						for range 40 {
							c.step()
						}
						c.end()
					})
				}
			})
		}
	}
}
