package hostport

import (
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/podrecord"
)

// SameExtras tells whether two records of one attachment ask for the same ports and limits.
// A record that was made of what the kernel has says so in other words than the runtime, and
// leaves out ports that another network of the sandbox has, whose record is among all.
func SameExtras(one, other podrecord.Record, all []podrecord.Record) bool {
	var others []podrecord.Record
	for _, o := range all {
		if sameSandbox(one, o) && o.Key != one.Key {
			others = append(others, o)
		}
	}
	elsewhere := netconf.NewPortSet(Wanted(others)...)
	own := func(r podrecord.Record) netconf.PortSet {
		return netconf.NewPortSet(selectAll(elsewhere, Ports(r), false)...)
	}
	return one.Limits.Same(other.Limits) && own(one).Equal(own(other))
}
