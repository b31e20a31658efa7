package agent

import (
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/pool"
)

// remedies is what it follows from what helps against a limit on this node: what usually helps is a
// list, most of which can't help here.
type remedies struct {
	pool     pool.Config
	cloud    agentconf.Cloud
	limits   eni.Limits // of the instance, as the cloud has them
	families []eni.Family
	maxPods  int // 0: not known
	demand   demand
}

// remedies returns what is known now.
func (a *Agent) remedies() remedies {
	m := remedies{a.conf.Pool, a.conf.Cloud, a.view.limits, a.conf.Settings.Families, 0, a.demand}
	m.maxPods, _ = a.MaxPods()
	return m
}

const (
	movePods = "move pods to other nodes"
	restsOut = "nothing to do: the addresses that cool down are enough for the pods that wait"
)

// give returns the causes with what helps against each.
func (m remedies) give(list []pool.Cause) []pool.Cause {
	list = slices.Clone(list)
	full := slices.IndexFunc(list, func(c pool.Cause) bool { return c.Kind == pool.ENILimit && c.Todo != "" })
	for i := range list {
		c := &list[i]
		switch {
		case c.Kind == pool.SubnetFull && full >= 0: // another subnet serves new ENIs alone
			c.Words += ", and " + list[full].Words
			c.Todo = movePods + ", or delete what else uses addresses there: another subnet serves new ENIs only"
		case c.Kind == pool.ENILimit && c.Todo != "":
			c.Todo = movePods + ", or " + strings.Replace(c.Todo, pool.LargerInstance, m.larger(), 1)
		case c.Kind == pool.AddressLimit && m.most() > 0:
			c.Todo = movePods + ", or " + m.raise()
		}
		if c.Kind.IsLimit() && m.restSoon() {
			c.Todo = restsOut
		}
	}
	return list
}

// restSoon tells whether pods wait, and what cools down is enough for them.
func (m remedies) restSoon() bool {
	waiting, cooling := m.demand.unserved(), m.demand.assigned-m.demand.used
	return waiting > m.demand.free && waiting <= m.demand.free+cooling
}

func (m remedies) most() int { return m.pool.Most(m.limits, m.families, m.maxPods) }

// raise names what makes the node hold no more: what alone makes it so, and what without it there
// would be more room.
func (m remedies) raise() string {
	var keys []string
	for _, k := range []struct {
		name string
		free func(*remedies)
	}{
		{"pool.maxAllocate", func(m *remedies) { m.pool.MaxAllocate = 0 }},
		{"pool.maxAllocateENI", func(m *remedies) { m.pool.MaxAllocateENI = 0 }},
		{"pool.maxIPsPerENI", func(m *remedies) { m.pool.MaxIPsPerENI = 0 }},
		{"the kubelet's maxPods", func(m *remedies) { m.maxPods = 0 }},
	} {
		without := m
		if k.free(&without); without.most() > m.most() {
			keys = append(keys, k.name)
		}
	}
	if m.pool.MaxAllocate > 0 && m.pool.MaxAllocate == m.maxPods && m.maxPods == m.most() { // neither alone
		keys = append(keys, "pool.maxAllocate and the kubelet's maxPods")
	}
	if len(keys) > 0 {
		return "raise " + strings.Join(keys, " or ")
	}
	if m.pool.TopologyPlaces > 0 {
		return "lower pool.topologyPlaces, or " + m.larger()
	}
	return m.larger() + m.unlowered()
}

// larger is what gives a node more than its instance carries.
func (m remedies) larger() string {
	if keys := m.instanceKeys(); keys != "" {
		return pool.LargerInstance + ", or raise " + keys + " and restart the agent if this one carries more"
	}
	return pool.LargerInstance
}

// unlowered says that no key of agent.yaml is worth looking for.
func (m remedies) unlowered() string {
	if m.instanceKeys() != "" {
		return ""
	}
	return ": no key of agent.yaml lowers what this one carries"
}

// instanceKeys are the keys of the file that tell the instance's limits in place of the cloud.
func (m remedies) instanceKeys() string {
	var keys []string
	if m.cloud.Provider == agentconf.Baidu && m.cloud.MaxENIs > 0 {
		keys = append(keys, "cloud.maxENIs")
	}
	if m.cloud.Provider == agentconf.Baidu && m.cloud.MaxIPsPerENI > 0 {
		keys = append(keys, "cloud.maxIPsPerENI")
	}
	return strings.Join(keys, " or ")
}
