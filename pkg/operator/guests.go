package operator

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/placement"
)

// takeGuest makes a node known that has no NodeNetwork: an operator that observes tells what it would find there.
func (t *term) takeGuest(name string) {
	of, is := t.nodes[name]
	if !t.o.Observe || !is || of.Instance == "" || t.members[name] != nil {
		return
	}
	if old := t.guests[name]; old != nil && old.node.Instance == of.Instance {
		was := old.node.Type
		old.node = of
		t.takeType(old, was)
		return
	}
	t.dropGuest(name)
	guest := newMember(of, nil)
	guest.client = t.o.Region.Node(instanceOf(guest))
	t.guests[name] = guest
}

// dropGuest forgets what is known of a node as one without an object: its agent's calls may be under way. Where another Node names the same
// instance that one goes on: a describe of an instance that the engine does not know fails for all.
func (t *term) dropGuest(name string) {
	guest := t.guests[name]
	if guest == nil {
		return
	}
	delete(t.guests, name)
	if t.claims[guest.node.Instance] != nil {
		return
	}
	t.o.Region.Forget(guest.node.Instance)
	for _, other := range t.guests {
		if other.node.Instance == guest.node.Instance {
			other.client = t.o.Region.Node(instanceOf(other))
		}
	}
}

// instanceOf returns the instance of a node as the engine knows it.
func instanceOf(m *member) cloud.Instance {
	return cloud.Instance{ID: m.node.Instance, Type: m.node.Type, Zone: m.node.Zone}
}

// subnetsFor returns the subnets that a new ENI of a node may lie in, in the order in which they are chosen.
func subnetsFor(m *member, all []placement.Subnet, now time.Duration) (ids []string) {
	who := placement.Node{Zone: m.node.Zone, Labels: m.node.Labels}
	list := slices.DeleteFunc(slices.Clone(all), func(s placement.Subnet) bool { return !s.For(who, now) })
	slices.SortFunc(list, func(a, b placement.Subnet) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), cmp.Compare(b.Room(), a.Room()), cmp.Compare(a.ID, b.ID))
	})
	for _, s := range list {
		ids = append(ids, s.ID)
	}
	return ids
}

// allPlacements returns all subnets that the cloud shows.
func (t *term) allPlacements() (list []placement.Subnet) {
	for id, s := range t.subnets {
		if s.place.ID != "" {
			list = append(list, s.forPlacement(t.tally.targetsIn(id)))
		}
	}
	return list
}

// limitsText says what an instance can carry, "" as long as that is not known.
func limitsText(l eni.Limits) string {
	if l == (eni.Limits{}) {
		return ""
	}
	return fmt.Sprintf("%d ENIs x %d addresses", l.ENIs, max(l.V4, l.V6))
}
