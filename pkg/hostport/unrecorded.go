package hostport

import (
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/podrecord"
)

// The record of a living pod may be lost, damaged or of a later release. Until repair has
// made it anew, what the kernel holds for the pod is all that tells of its ports: no other
// pod's ADD or DEL takes them away.

// unrecorded returns the ports that iptables holds beyond those of the records, for the
// families of r, which are about to be written anew. They are looked for where records
// can't be read, or where there is no other one: all of them may have been removed.
func (n Node) unrecorded(r podrecord.Record, others []podrecord.Record, unreadable bool) ([]netconf.PodPorts, error) {
	if !unreadable && len(others) > 0 {
		return nil, nil
	}
	have, err := foundIptables(familiesOf(r.Addrs)...)
	if err != nil {
		return nil, err
	}
	recorded := slices.Clone(r.Addrs)
	for _, other := range others {
		recorded = append(recorded, other.Addrs...)
	}
	// What leads to a pod with a record that does not ask for it was another's before.
	have = slices.DeleteFunc(have, func(p netconf.PodPorts) bool { return slices.Contains(recorded, p.Pod) })
	return selectAll(netconf.NewPortSet(Wanted(others)...), have, false), nil
}

// refuseKept refuses a record that asks for a port which leads to a pod without a record.
// It returns those of kept that r does not ask for: the rest leads to nobody.
func (n Node) refuseKept(r podrecord.Record, kept []netconf.PodPorts) ([]netconf.PodPorts, error) {
	wanted := netconf.NewPortSet(Ports(r)...)
	for _, p := range kept {
		for _, port := range p.Ports {
			if _, found := wanted.Find(p.Pod, port); !found {
				continue
			}
			owner, found, err := n.unrecordedOwner(p.Pod)
			if err != nil {
				return nil, err
			}
			if found && owner.Key != r.Key {
				if port.Host.IsUnspecified() {
					port.Host = netip.Addr{} // as it is asked for
				}
				return nil, &TakenError{port, owner}
			}
		}
	}
	return selectAll(wanted, kept, false), nil
}

// unrecordedOwner returns the pod with the address, if it has no record that can be read:
// one with a record asks for other ports.
func (n Node) unrecordedOwner(addr netip.Addr) (owner podrecord.Record, found bool, err error) {
	if n.Owner == nil {
		return owner, false, nil
	}
	owner, found, err = n.Owner(addr)
	if err != nil || !found {
		return owner, false, err
	}
	r, recorded, err := n.Records.Read(owner.Key)
	if podrecord.Unreadable(err) {
		return owner, true, nil
	}
	return owner, !recorded || !slices.Contains(r.Addrs, addr), err
}
