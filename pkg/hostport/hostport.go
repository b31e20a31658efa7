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

	// Owner returns, without its ports, the pod that an address is of. It is asked where
	// the kernel leads a port to an address and no record that can be read says so. A nil
	// one knows no pods.
	Owner func(netip.Addr) (pod podrecord.Record, found bool, err error)
}

// Reserve writes the record, unless another pod has one of its ports, and returns it
// with its turn. From then on Close finds what is to be closed, whatever happens.
func (n Node) Reserve(record podrecord.Record) (podrecord.Record, error) {
	if len(record.Ports) > 0 {
		others, err := n.readOthers(record)
		if err != nil {
			return record, err
		}
		if err := findTaken(record, others); err != nil {
			return record, err
		}
		record.Turn = nextTurn(record, others)
	}
	return record, n.Records.Write(record)
}

// readOthers returns all records but r, as far as they can be read.
func (n Node) readOthers(r podrecord.Record) ([]podrecord.Record, error) {
	all, err := n.Records.All()
	if err != nil && !podrecord.Unreadable(err) {
		return nil, err
	}
	return slices.DeleteFunc(all, func(o podrecord.Record) bool { return o.Key == r.Key }), nil
}

// findTaken compares with the records. They are few, and unlike the kernel they
// are right even while the table is being put back.
func findTaken(r podrecord.Record, others []podrecord.Record) error {
	wanted := netconf.NewPortSet(Ports(r)...)
	for _, other := range others {
		if sameSandbox(r, other) {
			continue
		}
		for _, p := range Ports(other) {
			for _, port := range p.Ports {
				if taken, found := wanted.Find(p.Pod, port); found {
					return &TakenError{taken, other}
				}
			}
		}
	}
	return nil
}

// Open makes the ports that the record holds lead to its pod. It replaces nothing that
// a record asks for, nor what leads to a pod whose record is lost: then the new record
// goes, so that nobody takes it for that pod's.
func (n Node) Open(r podrecord.Record) error {
	err := n.openByFirewall(r)
	if errors.As(err, new(*TakenError)) {
		err = errors.Join(err, n.Records.Remove(r.Key))
	}
	return err
}

func (n Node) openByFirewall(r podrecord.Record) error {
	if n.Firewall == ipam.Iptables {
		return n.restoreIptables(r)
	}
	held, err := n.Held(r)
	if err != nil {
		return err
	}
	return n.openNft(r, held)
}

// Close undoes Open and removes the record. What is missing is fine. Ports that other
// networks of the sandbox ask for too lead to them from now on. The late function is to
// be called last, after an error too: it waits until the kernel has freed what was closed. To
// remove a pod's links takes as long, and both waits can run at the same time.
func (n Node) Close(record podrecord.Record) (late func(), err error) {
	late = func() {}
	if len(record.Ports) == 0 {
		return late, n.Records.Remove(record.Key)
	}
	others, err := n.readOthers(record)
	if err != nil {
		return late, err
	}
	conn, err := nftTable().Open()
	if noNftables(err) {
		conn, err = nil, nil
	}
	if err != nil {
		return late, fmt.Errorf("close host ports: %w", err)
	}
	if conn != nil {
		late = conn.Close
		var heirs []netconf.PodPorts
		if n.Firewall != ipam.Iptables {
			heirs = inheritedPorts(record, others)
		}
		err = closeNft(conn, Ports(record), heirs) // in iptables the agent may have moved them since
	}
	if err == nil && n.Firewall == ipam.Iptables {
		err = n.withdrawRules(record, others)
	}
	if err != nil {
		return late, err
	}
	return late, n.Records.Remove(record.Key)
}

// Check returns a line for each port that does not lead where it should.
func (n Node) Check(r podrecord.Record) ([]string, error) {
	held, err := n.Held(r)
	if err != nil {
		return nil, err
	}
	if n.Firewall == ipam.Iptables {
		return n.checkIptables(held)
	}
	return checkNft(held)
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

// Wanted returns the ports that the node should have open for the records. Where two
// ask for the same one, who has it comes first.
func Wanted(records []podrecord.Record) []netconf.PodPorts {
	var list []netconf.PodPorts
	for _, r := range byTurn(records) {
		list = append(list, Ports(r)...)
	}
	return list
}
