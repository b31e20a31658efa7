// Package hostport opens ports of the node for pods and closes them, as the
// portmap plugin does: in nftables by elements of maps that the agent has put in
// place, in iptables by rules of a chain. It links neither's library, because
// the plugin runs it. Every caller holds the lock of the pod records, so what
// the records say and what the kernel holds change together.
package hostport

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/podrecord"
)

// ErrNotReady means that the node's packet filter is not set up for host ports,
// or not any more. The agent puts that right at once.
var ErrNotReady = errors.New("the packet filter has no place for host ports: the agent puts it there; without an agent: enipoolctl pool load")

// TakenError says that another pod has the port.
type TakenError struct {
	Port  netconf.HostPort
	Owner podrecord.Record
}

// Error says which port of the node is whose.
func (e *TakenError) Error() string {
	return fmt.Sprintf("host port: %s is taken by pod %s (sandbox %s)", e.Port, e.Owner.Pod, e.Owner.Key.Container)
}

// Node is where ports are opened.
type Node struct {
	Firewall ipam.Firewall
	// Iptables needs the primary addresses of ENI 0 too, as far as there are.
	Node4, Node6 netip.Addr

	Records podrecord.Folder
	Lock    *podrecord.Lock
}

// Reserve writes the record, unless another pod has one of its ports. From then
// on Close finds what is to be closed, whatever happens.
func (n Node) Reserve(r podrecord.Record) error {
	if len(r.Ports) > 0 {
		if err := n.findTaken(r); err != nil {
			return err
		}
	}
	return n.Records.Write(r)
}

// findTaken compares with the records. They are few, and unlike the kernel they
// are right even while the table is being put back.
func (n Node) findTaken(r podrecord.Record) error {
	all, err := n.Records.All()
	if err != nil && !errors.Is(err, podrecord.ErrDamaged) {
		return err
	}
	for _, other := range all {
		if other.Key == r.Key {
			continue
		}
		for _, p := range r.Ports {
			if slices.ContainsFunc(other.Ports, func(o netconf.HostPort) bool { return o.Claims(p, other.Addrs, r.Addrs) }) {
				return &TakenError{p, other}
			}
		}
	}
	return nil
}

// Open makes the record's ports lead to its pod. It replaces nothing.
func (n Node) Open(r podrecord.Record) error {
	if n.Firewall == ipam.Iptables {
		return n.restore(r.Addrs)
	}
	return openNft(Ports(r))
}

// Close undoes Open and removes the record. What is missing is fine.
func (n Node) Close(r podrecord.Record) error {
	if err := closeNft(Ports(r)); err != nil {
		return err
	}
	if len(r.Ports) == 0 || n.Firewall != ipam.Iptables {
		return n.Records.Remove(r.Key)
	}
	return n.withdraw(r)
}

// Check returns a line for each port that does not lead where it should.
func (n Node) Check(r podrecord.Record) ([]string, error) {
	if n.Firewall == ipam.Iptables {
		return n.checkIptables(r)
	}
	return checkNft(Ports(r))
}

// Ports returns the record's host ports by the pod's addresses.
func Ports(r podrecord.Record) []netconf.PodPorts {
	if len(r.Ports) == 0 {
		return nil
	}
	var list []netconf.PodPorts
	for _, a := range r.Addrs {
		list = append(list, netconf.PodPorts{Pod: a, Ports: r.Ports})
	}
	return list
}

// Wanted returns the ports that the node should have open: those of the records
// whose pods still have the addresses. owner returns whose an address is.
func Wanted(records []podrecord.Record, owns func(podrecord.Record, netip.Addr) bool) []netconf.PodPorts {
	var list []netconf.PodPorts
	for _, r := range records {
		for _, p := range Ports(r) {
			if owns(r, p.Pod) {
				list = append(list, p)
			}
		}
	}
	return list
}
