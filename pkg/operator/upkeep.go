package operator

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/quota"
)

// upkeeper is a Region that can correct ENIs that it has made: their security groups, and that they end with their instance.
type upkeeper interface {
	// OutOfStep returns the ENIs of an instance that differ, by the last describe, each with the method of the driver that is called
	// first. It makes no call.
	OutOfStep(instance string) map[string]string

	// Upkeep corrects one of them.
	Upkeep(ctx context.Context, instance, id string) error
}

// upkeepOf is before a node's name where its upkeep waits in the queue: no node is called so.
const upkeepOf = "upkeep of "

// drift is an ENI that is not as the configuration says.
type drift struct {
	node   string
	first  string        // the method of the driver that corrects it
	since  time.Duration // when a describe first showed it
	under  bool
	misses misses
}

// drifts are those of all nodes that this operator calls for.
type drifts struct {
	byENI map[string]*drift
	said  time.Duration // when a failure was logged last: all nodes may fail for one reason
}

// isAnyUnder tells whether a call for one is under way.
func (d *drifts) isAnyUnder() bool {
	for _, one := range d.byENI {
		if one.under {
			return true
		}
	}
	return false
}

// findDrifts has corrected, after a describe of everything, what is not as the configuration says. Nothing waits for that: it is of the
// last class, and no request is made where nothing differs.
func (t *term) findDrifts(now order.Moment) {
	region, can := t.o.Region.(upkeeper)
	if !can || t.o.Observe {
		return
	}
	before, found := t.drifts.byENI, map[string]*drift{}
	for id, d := range before {
		if d.under {
			found[id] = d
		}
	}
	for name, node := range t.members {
		if !t.mayKeep(node) {
			continue
		}
		for id, first := range region.OutOfStep(node.node.Instance) {
			d := before[id]
			if d == nil || d.node != name {
				d = &drift{node: name, since: max(now.Mono, 1)}
			}
			d.first, found[id] = first, d
		}
	}
	t.drifts.byENI = found
	waiting := map[string][]quota.Request{}
	for _, d := range before {
		waiting[d.node] = nil
	}
	for _, id := range slices.Sorted(maps.Keys(found)) {
		if d := found[id]; !d.under && d.misses.until <= now.Mono {
			waiting[d.node] = append(waiting[d.node], quota.Request{Node: upkeepOf + d.node, Action: t.action(d.first, -1), Object: id, Class: quota.Giving, Since: d.since})
		}
	}
	for name, list := range waiting {
		t.o.Gate.setFresh(upkeepOf+name, list)
	}
}

// mayKeep tells whether this operator calls for the node.
func (t *term) mayKeep(node *member) bool {
	return node != nil && node.isReady() && !node.isGoing() && node.view.Status.Mode == order.Operator && node.view.Status.Epoch <= t.epoch
}

// beginUpkeep corrects the ENI that a granted place in the queue is for.
func (t *term) beginUpkeep(name string, granted *ticket) {
	id, node, d := granted.Object, t.members[name], t.drifts.byENI[granted.Object]
	region, can := t.o.Region.(upkeeper)
	if !can || d == nil || d.under || d.node != name || !t.mayKeep(node) || node.jobs[id] != nil {
		t.o.Gate.endJob(granted) // the next describe tells what is still to be done
		return
	}
	d.under = true
	instance := node.node.Instance
	t.under.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithValue(t.ctx, ticketKey{}, granted), shortJob)
		defer cancel()
		err := region.Upkeep(ctx, instance, id)
		t.o.Gate.endJob(granted)
		t.post(func(t *term) { t.endUpkeep(id, d, granted, err) })
	})
}

// mostUpkeepPause is how long it takes at most until what was refused is tried again.
const mostUpkeepPause = time.Hour

// endUpkeep takes in how that has ended. What has failed waits for a later describe.
func (t *term) endUpkeep(id string, d *drift, granted *ticket, err error) {
	now := t.now().Mono
	d.under = false
	switch {
	case err == nil:
		delete(t.drifts.byENI, id)
		t.o.Log.Info("brought an ENI in step: its security groups, and that it goes with the instance", "node", d.node, "eni", id)
	case granted.unsent:
	case errors.Is(err, cloud.ErrThrottled):
		t.o.Gate.noteThrottled(granted.last, retryAfter(err))
	default:
		d.misses = d.misses.add(now)
		d.misses.until = now + min(mostUpkeepPause, t.o.Describe<<min(d.misses.count, 10))
		if t.drifts.said == 0 || now-t.drifts.said >= time.Minute {
			t.drifts.said = max(now, 1)
			t.o.Log.Warn("an ENI can't be brought in step: its security groups, and that it goes with the instance", "node", d.node, "eni", id, "again in", d.misses.until-now, "error", err)
		}
	}
}
