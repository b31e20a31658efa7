package topology

import (
	"fmt"
	"slices"
)

// Class is what is written on a new pod before any node gets it.
type Class struct {
	Topology string   // "" if it belongs to none: its gate goes, and nothing else changes
	Zones    []string // in which it can run, in order; none for a pod without a topology
}

// Classify says to which topology a pod belongs, and in which zones it has or can get an address. While that waits the gate stays. It
// is decided once in the life of a pod: neither labels nor topologies that change later touch it.
func Classify(p Pod, k *Cluster) (Class, Wait) {
	t, found := Find(p, k.Topologies)
	if !found {
		return Class{}, Wait{}
	}
	class := Class{Topology: t.Name}
	var wait Wait
	var full []string
	for _, zone := range k.allZones() {
		// With room on its ENIs: which node it will be is for the scheduler to say.
		if why := k.canServe(t, p, Node{Name: "a node", Zone: zone, Anywhere: true}); why.Cause == None {
			class.Zones = append(class.Zones, zone)
		} else if wait.Cause == None || why.Cause == NoRoom { // the others only say that it is none of the topology's zones
			if wait = why; why.Cause == NoRoom {
				full = append(full, zone)
			}
		}
	}
	if len(class.Zones) > 0 {
		return class, Wait{}
	}
	if len(full) > 1 {
		wait = k.noRoomIn(t, full)
	}
	if wait.Cause == None { // no subnet is known at all
		wait = Wait{Cause: TopologyNotReady, Message: fmt.Sprintf("topology %s: %s", t.Name, Check(t, k.Topologies, k.Subnets).Message)}
	}
	return class, wait
}

// noRoomIn says which subnets of all these zones have no address left.
func (k *Cluster) noRoomIn(t Topology, zones []string) Wait {
	var sources []Source
	for _, from := range t.Sources {
		if in, known := findSubnet(k.Subnets, from.Subnet); known && in.Ready && slices.Contains(zones, in.Zone) && k.hasAll(from, in) {
			sources = append(sources, from)
		}
	}
	return k.noRoom(t, zones, sources, k.Families)
}

// canServe tells what keeps the node from an address of each family.
func (k *Cluster) canServe(t Topology, p Pod, n Node) Wait {
	for _, f := range k.Families {
		if _, why := Choose(t, p, n, f, k); why.Cause != None {
			return why
		}
	}
	return Wait{}
}

// allZones returns those of all subnets: a pod may have an address of one that its topology does not name any more.
func (k *Cluster) allZones() (list []string) {
	for _, s := range k.Subnets {
		list = append(list, s.Zone)
	}
	slices.Sort(list)
	return slices.Compact(list)
}
