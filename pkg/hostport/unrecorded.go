package hostport

import (
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/podrecord"
)

// The record of a living pod may be lost, damaged or of a later release. Until repair has
// made it again, only what the kernel holds for the pod tells of its ports: no other
// pod's ADD or DEL takes them away. Nothing says that a record is missing: what the kernel
// holds has to be compared with the records.

// findUnrecorded returns the ports that iptables holds beyond those of the records, for the
// families of r, which are about to be written again. First are those that another network
// of the same sandbox waits for.
func (n Node) findUnrecorded(r podrecord.Record, others []podrecord.Record) (first, rest []netconf.PodPorts, err error) {
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
	for _, led := range have {
		if len(waiting.Select(led, true).Ports) > 0 {
			owner, found, err := n.unrecordedOwner(led.Pod)
			if err != nil {
				return nil, nil, err
			}
			if found {
				first = append(first, netconf.NewPortSet(Wanted(recordsBefore(owner, others))...).Select(led, false))
				continue
			}
		}
		rest = append(rest, asked.Select(led, false))
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
// record. It returns what stays: those of kept that the record does not ask for, and first
// those that lead to another network of its sandbox, behind which it has to wait. The others
// lead to nobody and go. The error is a *TakenError, or that of asking for an owner.
func (n Node) refuseKept(record podrecord.Record, kept []netconf.PodPorts) (first, rest []netconf.PodPorts, err error) {
	wanted := netconf.NewPortSet(Ports(record)...)
	for _, p := range kept {
		asked := wanted.Select(p, true)
		if len(asked.Ports) == 0 {
			continue
		}
		owner, found, err := n.unrecordedOwner(p.Pod)
		switch {
		case err != nil:
			return nil, nil, err
		case !found || owner.Key == record.Key:
			continue
		case sameSandbox(owner, record):
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

// queueBehind makes the record come behind a network of its sandbox that has no record. The one
// that is made for that one later has no turn.
func (n Node) queueBehind(r podrecord.Record) error {
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
