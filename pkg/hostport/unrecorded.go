package hostport

import (
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/podrecord"
)

// The record of a living pod may be lost, damaged or of a later release. Until repair has
// made it anew, what the kernel holds for the pod is all that tells of its ports: no other
// pod's ADD or DEL takes them away. Whether records are missing nobody knows without a look.

// unrecorded returns the ports that iptables holds beyond those of the records, for the
// families of r, which are about to be written anew. First are those that another network
// of the same sandbox waits for.
func (n Node) unrecorded(r podrecord.Record, others []podrecord.Record) (first, rest []netconf.PodPorts, err error) {
	have, err := foundIptables(familiesOf(r.Addrs)...)
	if err != nil {
		return nil, nil, err
	}
	recorded := slices.Clone(r.Addrs)
	for _, other := range others {
		recorded = append(recorded, other.Addrs...)
	}
	// What leads to a pod with a record that does not ask for it was another's before.
	have = slices.DeleteFunc(have, func(p netconf.PodPorts) bool { return slices.Contains(recorded, p.Pod) })
	asked, waiting := netconf.NewPortSet(Wanted(others)...), netconf.NewPortSet(Wanted(waitingOf(others))...)
	for _, p := range have {
		if len(waiting.Select(p, true).Ports) > 0 {
			owner, found, err := n.unrecordedOwner(p.Pod)
			if err != nil {
				return nil, nil, err
			}
			if found {
				first = append(first, netconf.NewPortSet(Wanted(recordsBefore(owner, others))...).Select(p, false))
				continue
			}
		}
		rest = append(rest, asked.Select(p, false))
	}
	return first, rest, nil
}

// waitingOf returns the records that had to wait for another network of their sandbox.
func waitingOf(records []podrecord.Record) (list []podrecord.Record) {
	for _, r := range records {
		if r.Turn > 0 {
			list = append(list, r)
		}
	}
	return list
}

// refuseKept refuses a record that asks for a port which leads to another pod without a
// record. It returns what stays: those of kept that r does not ask for, and first those that
// lead to another network of its sandbox, behind which r has to wait. The rest leads to nobody.
func (n Node) refuseKept(r podrecord.Record, kept []netconf.PodPorts) (first, rest []netconf.PodPorts, err error) {
	wanted := netconf.NewPortSet(Ports(r)...)
	for _, p := range kept {
		asked := wanted.Select(p, true)
		if len(asked.Ports) == 0 {
			continue
		}
		owner, found, err := n.unrecordedOwner(p.Pod)
		switch {
		case err != nil:
			return nil, nil, err
		case !found || owner.Key == r.Key:
			continue
		case sameSandbox(owner, r):
			first = append(first, asked)
			continue
		}
		port := asked.Ports[0]
		if port.Host.IsUnspecified() {
			port.Host = netip.Addr{} // as it is asked for
		}
		return nil, nil, &TakenError{port, owner}
	}
	return first, selectAll(wanted, kept, false), nil
}

// queue makes the record come behind a network of its sandbox that has no record. The one
// that is made anew for that has no turn.
func (n Node) queue(r podrecord.Record) error {
	r.Turn = max(r.Turn, 1)
	return n.Records.Write(r)
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
