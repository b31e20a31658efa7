package operator

import (
	"slices"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/pool"
	"github.com/enipool/enipool/pkg/quota"
)

// planned is a step with its place in the queue.
type planned struct {
	pool.Step
	quota.Request
	token string
	exact
}

// plan returns the calls that may be made for a node as its object says, and why an ENI that it needs has no place.
func (t *term) plan(node *member, view order.View, now order.Moment) (list []planned, noPlace pool.Cause) {
	if t.o.Observe || !node.isReady() || view.Status.Epoch > t.epoch || order.IsBehind(view) { // an object that is older than what the node has seen
		return nil, noPlace
	}
	// What was under way when a release was accepted ends in Leaving too; nothing new begins there.
	switch view.Status.Mode {
	case order.Operator:
		if node.isGoing() {
			break
		}
		if !node.node.Cut { // what it got nobody there would use, and pods of others may need
			list, noPlace = t.growth(node, view, now)
			node.noteNeeded(view, list, noPlace, now.Mono)
		}
		list = append(t.claimSteps(node, view), list...)
		list = append(list, t.clean(node, view, now)...)
	case order.Joining:
		list = t.finish(node, view)
	}
	if view.Status.Mode == order.Operator || view.Status.Mode == order.Leaving {
		list = append(list, t.giving(node, view, now)...)
	}
	list = onePerENI(list)
	_, making := node.jobs[""]
	list = slices.DeleteFunc(list, func(s planned) bool {
		_, unsure := node.unsure[s.ENI]
		waits := node.pauses[attemptOf(s.Step)].until > now.Mono
		return waits || node.jobs[s.ENI] != nil || s.ENI != "" && unsure || s.ENI == "" && making || s.Class == quota.Giving && len(node.jobs) > 0
	})
	if len(node.jobs) >= mostJobs {
		list = nil
	}
	return list, noPlace
}

// mostJobs is how many calls of a node are under way at most.
const mostJobs = 2

// growth returns what brings the node addresses, with the place of a new ENI.
func (t *term) growth(node *member, view order.View, now order.Moment) (list []planned, noPlace pool.Cause) {
	class, since := node.classOf(view, now)
	created := false
	for _, s := range order.Plan(view.Spec, view.Status, t.factsOf(node, view, now)) {
		p := planned{Step: s, Request: quota.Request{Node: node.network.Name, Object: s.ENI, Class: class, Since: since}}
		switch {
		case s.Do == pool.Assign:
			p.Subnet = subnetOf(view.Status, s.ENI)
			p.Action = t.action("Assign", s.Index)
		case created:
			continue // its token is the next one's
		default:
			created = true
			if noPlace = t.choosePlace(node, view, &p.Step, now); noPlace.Is() {
				continue
			}
			p.Action, p.token = t.action("Create", -1), order.Token(string(node.network.UID), view.Status.Created)
		}
		list = append(list, p)
	}
	return onePerENI(list), noPlace // the other family's comes after it
}

// onePerENI returns the first call of each ENI. Those that delete ENIs which are attached nowhere stand beside others.
func onePerENI(list []planned) []planned {
	seen := map[string]bool{}
	return slices.DeleteFunc(list, func(p planned) bool {
		again := seen[p.ENI] && p.Do != pool.Delete
		seen[p.ENI] = true
		return again
	})
}

// subnetOf returns the subnet of an ENI, "" if there is none.
func subnetOf(s order.Status, id string) string {
	for _, e := range s.ENIs {
		if e.ID == id {
			return e.Subnet
		}
	}
	return ""
}

// action returns what the first request of a kind that changes something counts as.
func (t *term) action(part string, index int) string {
	if index == 0 {
		part += ".Primary"
	}
	if list := t.o.Actions(part); len(list) > 0 {
		return list[0]
	}
	return part
}

// giving returns what takes away what is accepted.
func (t *term) giving(node *member, view order.View, now order.Moment) (list []planned) {
	add := func(do pool.Action, id, action string) {
		if node.stays[id] <= now.Mono {
			list = append(list, planned{Step: pool.Step{Do: do, ENI: id, Subnet: subnetOf(view.Status, id)},
				Request: quota.Request{Node: node.network.Name, Action: action, Object: id, Class: t.givingClass(node, view), Since: node.owing}})
		}
	}
	accepted, leaving := node.term.Unassignable(view), node.term.Deletable(view)
	for _, e := range view.Status.ENIs {
		if len(t.withoutKept(view.Status, accepted[e.ID])) > 0 {
			add(pool.Release, e.ID, t.action("Unassign", e.Index))
		}
		if slices.Contains(leaving, e.ID) {
			add(pool.Delete, e.ID, t.action("Detach", e.Index))
		}
	}
	return list
}

// givingClass returns how urgent it is to release: where the node's own pods wait for the places, as urgent as they are.
func (t *term) givingClass(node *member, view order.View) quota.Class {
	if view.Spec.Waiting > 0 || view.Status.Mode == order.Leaving || node.network.Status.Reclaim > 0 {
		return quota.Starving
	}
	return quota.Giving
}

// finish returns what ends the first of the ENIs that an agent had begun: the others follow when that is there.
func (t *term) finish(node *member, view order.View) []planned {
	unfinished := node.shown.unfinished(handoverOf(node.network))
	if len(unfinished) == 0 {
		return nil
	}
	nic := unfinished[0]
	s := pool.Step{Do: pool.Create, Subnet: nic.Subnet, Index: -1, Count: 1}
	for _, f := range view.Spec.Families {
		n := 0
		for _, a := range nic.Addresses {
			if eni.FamilyOf(a) == f {
				n++
			}
		}
		if n = max(1, n); f == eni.IPv4 {
			s.V4 = n
		} else {
			s.V6 = n
		}
	}
	return []planned{{Step: s, token: nic.Token,
		Request: quota.Request{Node: node.network.Name, Action: t.action("Create", -1), Class: quota.Starving, Since: node.joined}}}
}

// clean returns what deletes the ENIs that were made for the node, are attached nowhere, and that nobody finishes.
func (t *term) clean(node *member, view order.View, now order.Moment) (list []planned) {
	next := order.Token(string(node.network.UID), view.Status.Created)
	for _, nic := range node.shown.looseENIs() {
		// One that was attached since the describe is in the status as that, whatever the describe shows.
		attached := slices.ContainsFunc(view.Status.ENIs, func(e order.ENI) bool { return e.ID == nic.ID && e.State != order.Detached })
		if nic.Token != next && !attached && node.isLeft(nic.ID, t.o.LeakAge, now.Mono) && !node.isGone(nic.ID) && node.stays[nic.ID] <= now.Mono {
			list = append(list, planned{Step: pool.Step{Do: pool.Delete, ENI: nic.ID},
				Request: quota.Request{Node: node.network.Name, Action: t.action("Delete", -1), Object: nic.ID, Class: quota.Giving, Since: node.owing}})
		}
	}
	return list
}
