package operator

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/quota"
)

// selfDescribes is how often a node that calls the cloud itself describes where nothing changes: what agents do unless their file says
// another time.
const selfDescribes = 5 * time.Minute

// others are the nodes of the cluster that call the cloud themselves, out of the same buckets. What they send nobody tells: it is
// estimated from what describes show, and comes off the operator's part.
type others struct {
	bare    map[string]bool    // Nodes with an agent that had no object when everything was described last
	changes map[string]int     // requests that what changed on those with an object took since, by action
	since   time.Duration      // the begin of that describe, 0: there was none
	rates   map[string]float64 // requests per second that are taken off, by action
}

// parts names the requests of parts of a driver's methods.
type parts func(part string) []string

// requestsBetween returns how many requests it took to get from one describe of a node to the next, by action. perAssign is how many
// addresses a request puts or takes, 0 for no limit.
func requestsBetween(before, after []cloud.Interface, of parts, perAssign int) map[string]int {
	sent := map[string]int{}
	add := func(part string, times int) {
		for _, action := range of(part) {
			if times > 0 {
				sent[action] += times
			}
		}
	}
	calls := func(addresses int) int {
		if perAssign > 0 {
			return (addresses + perAssign - 1) / perAssign
		}
		return min(addresses, 1)
	}
	was := map[string]cloud.Interface{}
	for _, nic := range before {
		if carries(nic) {
			was[nic.ID] = nic
		}
	}
	for _, nic := range after {
		old, known := was[nic.ID]
		delete(was, nic.ID)
		switch {
		case !carries(nic):
			continue
		case !known:
			add("Create", 1)
			old = cloud.Interface{Index: -1, Addresses: nic.Addresses} // they came with it
		}
		if old.Index < 0 && nic.Index >= 0 {
			add("Attach", 1)
			add("Bind", 1)
		} else if old.Index >= 0 && nic.Index < 0 {
			add("Detach", 1)
		}
		on := driver.Interface{Primary: nic.Index == 0}
		add(driver.Assign{On: on}.Part(), calls(lacking(nic.Addresses, old.Addresses)))
		add(driver.Unassign{On: on}.Part(), calls(lacking(old.Addresses, nic.Addresses)))
	}
	for _, gone := range was {
		if gone.Index >= 0 {
			add("Detach", 1)
		}
		add("Delete", 1)
	}
	return sent
}

// lacking returns how many of a list another one lacks.
func lacking(all, in []netip.Addr) (n int) {
	there := map[netip.Addr]bool{}
	for _, a := range in {
		there[a] = true
	}
	for _, a := range all {
		if !there[a] {
			n++
		}
	}
	return n
}

// estimate returns how many requests per second nodes send: each describes once in selfDescribes, and what changed in the time that
// passed they have asked for. It rises at once and falls by half each time: what was sent in a burst may go on.
func estimate(nodes int, describe []string, changes map[string]int, took time.Duration, before map[string]float64) map[string]float64 {
	rates := map[string]float64{}
	if nodes == 0 {
		return rates
	}
	for _, action := range describe {
		rates[action] += float64(nodes) / selfDescribes.Seconds()
	}
	for action, n := range changes {
		if took > 0 {
			rates[action] += float64(n) / took.Seconds()
		}
	}
	for action, rate := range before {
		if rates[action] = max(rates[action], rate/2); rates[action] < leastCounted {
			delete(rates, action)
		}
	}
	return rates
}

// leastCounted is a rate that is as good as none.
const leastCounted = 0.001

// noteChanges counts what changed on a node that calls the cloud itself, before its next describe is taken in.
func (t *term) noteChanges(node *member, view cloud.View) {
	switch {
	case node.shown == nil || node.shown.view.Err != nil || view.Err != nil || len(view.Quarantined) > 0 || len(node.shown.view.Quarantined) > 0:
		return // what is left out is no change
	case node.network != nil && modeOf(node.network) != crd.Self:
		return
	}
	for action, n := range requestsBetween(node.shown.view.Interfaces, view.Interfaces, t.o.Actions, t.o.Region.Does().PerAssign) {
		if t.looks.others.changes == nil {
			t.looks.others.changes = map[string]int{}
		}
		t.looks.others.changes[action] += n
	}
}

// leaveToOthers takes what other nodes send off the budget, once everything was described.
func (t *term) leaveToOthers(began time.Duration) {
	o := &t.looks.others
	nodes, bare := 0, map[string]bool{}
	for _, m := range t.members {
		if m.network != nil && modeOf(m.network) == crd.Self && !m.isFresh() {
			nodes++
		}
	}
	for name, node := range t.nodes {
		switch {
		case t.members[name] != nil || node.Instance == "" || !node.Agent: // what has another CNI describes nothing for enipool
		case o.bare[name]:
			nodes++
			fallthrough
		default: // a node that has just come may get its object in a moment
			bare[name] = true
		}
	}
	took := time.Duration(0)
	if o.since > 0 {
		took = began - o.since
	}
	before := o.rates
	describe := slices.Concat(t.o.Actions("Interfaces"), t.o.Actions("Subnets"))
	*o = others{bare: bare, since: max(began, 1), rates: estimate(nodes, describe, o.changes, took, before)}
	// Of what people have said of an action nothing is taken off.
	buckets := t.o.Region.Buckets()
	maps.DeleteFunc(o.rates, func(action string, _ float64) bool {
		_, known := buckets[action]
		_, said := t.o.Budget[action]
		return !known || said
	})
	if !maps.Equal(before, o.rates) {
		t.o.Gate.setLimits(t.limits(o.rates), o.rates)
	}
}

// setLimits gives the budget other limits, since other nodes send so many requests per second.
func (g *Gate) setLimits(limits map[string]quota.Limit, others map[string]float64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for action, l := range limits {
		g.budget.SetLimit(action, l, g.sinceOpen())
	}
	g.others = others
}
