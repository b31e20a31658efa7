package simulate

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/enipool/enipool/pkg/quota"
)

// grantAll begins what may be sent now, and plans when to ask again.
func (o *operated) grantAll() {
	for {
		w, found := o.queue.Take(o.clock.now)
		if !found {
			break
		}
		n := o.byName[w.Node]
		if !w.Begun {
			o.beginJob(n, w)
			continue
		}
		j := n.begun[w.Object]
		delete(n.begun, w.Object)
		n.requests = slices.DeleteFunc(n.requests, func(other quota.Request) bool { return other.Object == w.Object })
		j.request, j.under = w, true
		o.pass(j)
	}
	at, waits := o.queue.Next(o.clock.now)
	if waits && (o.wakeAt <= o.clock.now || at < o.wakeAt) {
		o.wakeAt = max(at, o.clock.now+1)
		o.clock.planAt(o.wakeAt, o.grantAll)
	}
}

// beginJob makes the call that a granted place in the queue is for, as the node is now.
func (o *operated) beginJob(n *fleetNode, w quota.Request) {
	n.fresh = slices.DeleteFunc(n.fresh, func(other quota.Request) bool { return other.Action == w.Action && other.Object == w.Object })
	steps := o.stepsFor(n)
	at := slices.IndexFunc(steps, func(s fleetStep) bool { return o.actionOf(s) == w.Action && n.object(s) == w.Object })
	if at < 0 {
		o.queue.Done(w) // it needs nothing any more
		return
	}
	s := steps[at]
	j := &fleetJob{node: n, step: s, at: -1, request: w, under: true, token: w.Action, course: o.tolls.courseOf(s.call()), jitter: o.jitterOf(s.method)}
	n.jobs, n.running = n.jobs+1, n.running+1
	j.name = n.name + " job " + strconv.Itoa(n.jobs)
	switch {
	case s.own:
		o.beginOwn(n, s)
	case s.method == create:
		n.making = s.Count
	default:
		j.at = indexOf(s.ENI)
		n.enis[j.at].coming = s.Count
	}
	o.meter.noteCall(map[string]*int{create: &o.meter.calls.Attachments, assign: &o.meter.calls.Assign, unassign: &o.meter.calls.Unassign}[s.method], false)
	o.settle(n)
	if len(j.requests) == 0 {
		o.clock.planAt(o.clock.now, func() { o.endJob(j) })
		return
	}
	o.clock.planAt(o.clock.now+j.requests[0].at, func() { o.ask(j) })
}

// ask waits for the token of a job's next request, which all that has not begun stands behind; the one before has ended.
func (o *operated) ask(j *fleetJob) {
	action := j.requests[j.next].action
	if j.token == action {
		j.token = ""
		o.pass(j)
		return
	}
	o.endRequest(j)
	w := quota.Request{Node: j.node.name, Action: action, Object: j.name + " " + strconv.Itoa(j.next), Class: j.request.Class, Since: j.request.Since, Begun: true}
	j.node.begun[w.Object] = j
	j.node.requests = append(j.node.requests, w)
	o.tell(j.node)
	o.grantAll()
}

func (o *operated) endRequest(j *fleetJob) {
	if j.under {
		o.queue.Done(j.request)
		j.under = false
	}
}

// pass sends a job's next request.
func (o *operated) pass(j *fleetJob) {
	sent := j.requests[j.next]
	o.passed[sent.action]++
	if j.step.own {
		o.hosted.tallyOf(j.step.moved).Requests[sent.action]++
	}
	if j.next++; j.next < len(j.requests) {
		o.clock.planAt(o.clock.now+j.requests[j.next].at-sent.at, func() { o.ask(j) })
		return
	}
	o.clock.planAt(o.clock.now+j.took-sent.at+j.jitter, func() { o.endJob(j) })
}

// endJob lets pods have what a call has brought.
func (o *operated) endJob(j *fleetJob) {
	o.endRequest(j)
	n := j.node
	if n.running--; j.step.own {
		o.endOwn(n, j.step)
	} else {
		o.endGeneral(j)
	}
	if o.meter.waiting == 0 && o.atEnd == nil {
		o.atEnd, o.servedAt = maps.Clone(o.passed), max(o.clock.now, 1)
		o.planDrain()
	}
	o.settle(n)
	o.grantAll()
}

// endGeneral lets pods without a topology have what a call has brought.
func (o *operated) endGeneral(j *fleetJob) {
	n, m := j.node, o.meter
	before := min(n.have(), o.fleet.Pods)
	m.sumUp()
	if j.at < 0 {
		n.enis, n.making = append(n.enis, fleetENI{count: j.step.Count}), 0
		m.enis++
	} else {
		n.enis[j.at].count += j.step.Count
		n.enis[j.at].coming = 0
	}
	m.owned += j.step.Count
	served := min(n.have(), o.fleet.Pods) - before
	m.used, m.waiting = m.used+served, m.waiting-served
	for range served {
		m.noteWait(o.clock.now)
	}
	if n.have() >= o.fleet.Pods && n.short == 0 {
		n.short = max(o.clock.now, time.Nanosecond)
	}
}

// untilServed returns the requests that had passed when all pods had addresses, or until now.
func (o *operated) untilServed() map[string]int {
	if o.atEnd != nil {
		return o.atEnd
	}
	return o.passed
}
