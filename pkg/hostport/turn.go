package hostport

import (
	"math"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/podrecord"
)

// A runtime may hand the same port mappings to each network of a pod. That is no
// conflict: the network that came first has the port, and when it is gone the next
// one takes over. So it is with the portmap plugin, whose rules stand in that order;
// here each record that comes behind others has a turn.

func sameSandbox(a, b podrecord.Record) bool { return a.Key.Container == b.Key.Container }

// nextTurn returns a turn behind those of the sandbox's other records that ask for one
// of r's ports, 0 if there are none.
func nextTurn(r podrecord.Record, others []podrecord.Record) int {
	turn := 0
	wanted := netconf.NewPortSet(Ports(r)...)
	for _, other := range others {
		if !sameSandbox(r, other) {
			continue
		}
		for _, p := range Ports(other) {
			if len(wanted.Select(p, true).Ports) > 0 {
				turn = max(turn, other.Turn+1)
			}
		}
	}
	return turn
}

// byTurn returns the records in the order in which they get their ports. There are few
// turns, and a sort of its own for records would be large in the plugin.
func byTurn(records []podrecord.Record) []podrecord.Record {
	list := make([]podrecord.Record, 0, len(records))
	for turn := math.MinInt; len(list) < len(records); {
		next := math.MaxInt
		for _, r := range records {
			if r.Turn >= turn {
				next = min(next, r.Turn)
			}
		}
		for _, r := range records {
			if r.Turn == next {
				list = append(list, r)
			}
		}
		turn = next + 1
	}
	return list
}

// Held returns the ports that lead to the record's pod itself: not those that another
// network of the sandbox has.
func (n Node) Held(r podrecord.Record) ([]netconf.PodPorts, error) {
	if r.Turn == 0 {
		return Ports(r), nil // nobody was there before
	}
	others, err := n.readOthers(r)
	if err != nil {
		return nil, err
	}
	return portsHeld(r, others), nil
}

// HeldOf returns what Held does for each of the records, which are all there are.
func HeldOf(records []podrecord.Record) map[eni.Key][]netconf.PodPorts {
	all := make(map[eni.Key][]netconf.PodPorts, len(records))
	for _, r := range records {
		if all[r.Key] = Ports(r); r.Turn > 0 {
			all[r.Key] = portsHeld(r, records)
		}
	}
	return all
}

func portsHeld(r podrecord.Record, others []podrecord.Record) []netconf.PodPorts {
	var before []netconf.PodPorts
	for _, other := range others {
		if sameSandbox(r, other) && other.Turn < r.Turn {
			before = append(before, Ports(other)...)
		}
	}
	return selectAll(netconf.NewPortSet(before...), Ports(r), false)
}

// inheritedPorts returns those of r's ports that other networks of the sandbox have once r
// is gone.
func inheritedPorts(r podrecord.Record, others []podrecord.Record) []netconf.PodPorts {
	var list []netconf.PodPorts
	left := netconf.NewPortSet(Ports(r)...)
	for _, other := range others {
		if sameSandbox(r, other) {
			list = append(list, selectAll(left, portsHeld(other, others), true)...)
		}
	}
	return list
}

// selectAll selects of each address's ports, and keeps addresses without any: they may
// have to reach themselves by ports that they get later.
func selectAll(s netconf.PortSet, list []netconf.PodPorts, in bool) []netconf.PodPorts {
	var selected []netconf.PodPorts
	for _, p := range list {
		selected = append(selected, s.Select(p, in))
	}
	return selected
}
