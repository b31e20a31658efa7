package agent

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/order"
	"golang.org/x/time/rate"
)

// call is a call to the cloud that is under way. Its key says what it is about, and there
// is one per key; that of a describe is everything.
type call struct {
	key    object
	op     string // method of cloud.Cloud, "Describe" for the three that read, writesSpec for the object
	id     string // of the ENI
	subnet string
	family eni.Family
	count  int
	addrs  []netip.Addr
	fresh  []netip.Addr // of addrs: those that no earlier call was about

	withdrawn []netip.Prefix // releases that the write of an object cancels
	epoch     int64          // of the leader that it says the agent has read of
	putBack   int            // how often the store had been put back by the copy that it was made from

	create create
	cost   int  // requests that it makes, 0 for 1
	urgent bool // a describe that another call's outcome asks for
	run    func(context.Context, *result)
}

// desk has the calls that are under way.
type desk struct {
	calls  map[object]*call // by what they are about
	done   chan result
	budget *rate.Limiter
}

func newDesk(conf agentconf.Config) desk {
	return desk{calls: map[object]*call{}, done: make(chan result, 64), budget: rate.NewLimiter(rate.Limit(conf.Cloud.CallsPerSec), conf.Cloud.CallsBurst)}
}

// limit takes over how many calls may begin.
func (d *desk) limit(conf agentconf.Config) {
	d.budget.SetLimit(rate.Limit(conf.Cloud.CallsPerSec))
	d.budget.SetBurst(conf.Cloud.CallsBurst)
}

// hasPlace tells whether a call of the class may begin where so many may be under way. Releases leave two
// places: an ENI may take half a minute to be detached, and pods that come meanwhile wait for what
// brings addresses, and that for what describes show.
func (d *desk) hasPlace(cl class, atOnce int) bool {
	if cl == gives {
		releases := 0
		for _, c := range d.calls {
			if classOf(c.op) == gives {
				releases++
			}
		}
		return len(d.calls) < atOnce && releases < max(atOnce-2, 1)
	}
	return len(d.calls) < atOnce
}

// isOn tells whether a call is about the ENI.
func (d *desk) isOn(id string) bool { return d.calls[eniKey(id)] != nil }

// coming is how many addresses calls are to bring to ENIs that are there.
func (d *desk) coming() (n int) {
	for _, c := range d.calls {
		if c.op == "AssignAddresses" {
			n += c.count
		}
	}
	return n
}

// inFlight tells people which calls are under way, but for looks.
func (d *desk) inFlight() (list []string) {
	for _, c := range d.calls {
		if c.op != "Describe" {
			list = append(list, c.String())
		}
	}
	slices.Sort(list)
	return list
}

// result is what came of a call.
type result struct {
	*call
	described
	nic    cloud.Interface
	addrs  []netip.Addr // assigned
	object order.Object // as it was written
	took   time.Duration
	err    error
}

// classOf returns the class of a call by its op.
func classOf(op string) class {
	switch op {
	case "Describe":
		return looks
	case "UnassignAddresses", "DeleteInterface":
		return gives
	case writesSpec:
		return asksFor
	}
	return grows
}

// longCreate is how long the making of an ENI may take at least when the account is short:
// some of its requests are made again and again, and what is broken off has to be looked
// for.
const longCreate = 2 * time.Minute

// scope is what the call's failures are about: that an ENI gets no addresses is no reason not
// to take some from it, nor the other way round.
func (c *call) scope() scope { return scope{classOf(c.op), c.key} }

// String tells people what is under way.
func (c *call) String() string {
	switch c.op {
	case "AssignAddresses":
		return fmt.Sprintf("assign %d %s addresses to %s", c.count, c.family, c.id)
	case "UnassignAddresses":
		return fmt.Sprintf("unassign %d addresses from %s", len(c.addrs), c.id)
	case "CreateInterface":
		return fmt.Sprintf("create an ENI with %d slots in %s", c.create.Slots, c.subnet)
	case "DeleteInterface":
		return "delete " + c.id
	case writesSpec:
		return "write the node's NodeNetwork"
	}
	return "describe ENIs and subnets"
}

// launch starts a call beside the loop. It returns false, and the next tick tries
// again, where the call may not be made now: one about the same thing is under
// way, too many are, the cloud is left alone, or the budget is used up.
func (a *Agent) launch(ctx context.Context, c *call, now time.Duration) bool {
	if a.calls[c.key] != nil || !a.mayCall(classOf(c.op), now) || a.backoffs.active(c.scope(), now) {
		return false
	}
	// The limiter never lets pass more than its burst: a describe that costs three requests would not
	// begin at all where the configuration allows two at once.
	if !a.budget.AllowN(time.Unix(0, 0).Add(now), min(max(c.cost, 1), a.conf.Cloud.CallsBurst)) {
		return false
	}
	a.calls[c.key] = c
	done, clock := a.done, a.Wall
	limit := a.conf.Cloud.Timeout
	if c.op == "CreateInterface" && a.pressed(now) {
		limit = max(limit, longCreate)
	}
	a.Beside(ctx, limit, func(ctx context.Context) {
		r := result{call: c}
		start := clock()
		c.run(ctx, &r)
		r.took = clock().Sub(start)
		done <- r
	})
	return true
}

// startDescribe asks the cloud what there is.
func (a *Agent) startDescribe(ctx context.Context, now time.Duration) bool {
	client, limits, cost, subnets := a.Cloud, a.view.limits, 1, a.wantsSubnets(now)
	if limits == (eni.Limits{}) {
		cost++
	}
	if subnets {
		cost++
	}
	return a.launch(ctx, &call{op: "Describe", cost: cost, urgent: a.urgent, run: func(ctx context.Context, r *result) {
		r.described, r.err = describeCloud(ctx, client, limits, subnets)
		r.start = now
	}}, now)
}

// describeCloud asks for all there is, for subnets where that is wanted. What an instance may carry doesn't change while a node
// runs: it is asked for once. The limits come after the ENIs, some of which may take
// room that pods' ENIs would have.
func describeCloud(ctx context.Context, client cloud.Cloud, limits eni.Limits, subnets bool) (d described, err error) {
	if d.enis, err = client.Interfaces(ctx); err != nil {
		return d, err
	}
	if d.limits = limits; limits == (eni.Limits{}) {
		if d.limits, err = client.Limits(ctx); err != nil {
			return d, err
		}
	} else if c, can := client.(cloud.Sizer); can {
		d.limits = c.LimitsNow()
	}
	d.sees = true
	if d.partial = !subnets; d.partial {
		return d, nil
	}
	d.subnets, err = client.Subnets(ctx)
	d.partial = err != nil
	return d, err
}

func (a *Agent) assign(ctx context.Context, id, subnet string, f eni.Family, n int, now time.Duration) bool {
	client := a.Cloud
	return a.launch(ctx, &call{key: eniKey(id), op: "AssignAddresses", id: id, subnet: subnet, family: f, count: n,
		run: func(ctx context.Context, r *result) {
			r.addrs, r.err = client.AssignAddresses(ctx, id, f, n)
		}}, now)
}

// unassign writes down that the release begins, then asks the cloud to take the
// addresses.
func (a *Agent) unassign(ctx context.Context, id string, addrs []netip.Addr, now time.Duration) (started bool, err error) {
	if a.isOn(id) || !a.mayCall(gives, now) {
		return false, nil
	}
	client := a.Cloud
	// That the cloud refuses this call says nothing of an earlier one, which may still have its effect:
	// only what is fresh can be kept then.
	var fresh []netip.Addr
	for _, addr := range addrs {
		if !a.mem.Begun[addr] {
			fresh = append(fresh, addr)
			a.mem.Begun[addr] = true
		}
	}
	if len(fresh) > 0 {
		err = a.remember()
	}
	if err == nil {
		started = a.launch(ctx, &call{key: eniKey(id), op: "UnassignAddresses", id: id, addrs: addrs, fresh: fresh,
			run: func(ctx context.Context, r *result) { r.err = client.UnassignAddresses(ctx, id, addrs) }}, now)
	}
	if !started {
		for _, addr := range fresh {
			delete(a.mem.Begun, addr)
		}
	}
	return started, err
}

func (a *Agent) createENI(ctx context.Context, c create, now time.Duration) bool {
	request := cloud.Create{Token: c.Token, Subnet: c.Subnet, V4: c.V4, V6: c.V6}
	if c.V4+c.V6 == 0 { // written down by an agent that knew of no blocks
		for _, f := range a.conf.Settings.Families {
			if f == eni.IPv4 {
				request.V4 = c.Slots
			} else {
				request.V6 = c.Slots
			}
		}
	}
	client := a.Cloud
	return a.launch(ctx, &call{key: intentKey(c.Token), op: "CreateInterface", subnet: c.Subnet, create: c,
		run: func(ctx context.Context, r *result) { r.nic, r.err = client.CreateInterface(ctx, request) }}, now)
}

func (a *Agent) deleteENI(ctx context.Context, id string, now time.Duration) bool {
	client := a.Cloud
	return a.launch(ctx, &call{key: eniKey(id), op: "DeleteInterface", id: id,
		run: func(ctx context.Context, r *result) { r.err = client.DeleteInterface(ctx, id) }}, now)
}
