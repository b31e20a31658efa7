package cce

import (
	"cmp"
	"encoding/json"
	"net/netip"

	"github.com/enipool/enipool/pkg/topology"
)

// subnetOf is what a Subnet of CCE's says.
type subnetOf struct {
	Exclusive bool   `json:"exclusive"` // it is for psts alone
	CIDR      string `json:"cidr"`
	CIDR6     string `json:"ipv6CIDR"`
}

// readSubnet reads one. What can't be read of it is as if it were not there.
func readSubnet(o object) (s subnetOf) {
	_ = json.Unmarshal(o.Spec, &s)
	return s
}

// forTopologies returns a subnet as topologies go by it once what is printed is applied. Of one that was not read each address is one of its own.
func (s subnetOf) forTopologies(id string, exclusive bool) topology.Subnet {
	is := topology.Subnet{ID: id, Ready: true, Exclusive: exclusive}
	var err4, err6 error
	is.V4, err4 = netip.ParsePrefix(cmp.Or(s.CIDR, "0.0.0.0/0"))
	is.V6, err6 = netip.ParsePrefix(cmp.Or(s.CIDR6, "::/0"))
	if err4 != nil || err6 != nil {
		return subnetOf{}.forTopologies(id, exclusive)
	}
	return is
}

// noteUnserved says of each topology why the operator would not serve it, and what CCE has otherwise of its subnets.
func noteUnserved(all []imported, exclusive map[string]bool, read map[string]subnetOf) {
	topologies := make([]topology.Topology, len(all))
	var subnets []topology.Subnet
	listed := map[string]bool{}
	for k, i := range all {
		t, _ := i.topology.Read() // check refuses what can't be read
		topologies[k] = t
		for _, from := range t.Sources {
			if !listed[from.Subnet] {
				listed[from.Subnet] = true
				subnets = append(subnets, read[from.Subnet].forTopologies(from.Subnet, exclusive[from.Subnet]))
			}
		}
	}
	for k, t := range topologies {
		// CCE goes by what each psts says for itself; here an address is one topology's.
		if why := topology.Check(t, topologies, subnets); why.Reason != "" {
			all[k].note("its pods wait as it stands: %s", why.Message)
		}
		for _, from := range t.Sources {
			if of, is := read[from.Subnet]; is && !of.Exclusive && exclusive[from.Subnet] {
				all[k].note("CCE has subnet %s as one that is not exclusive: ENIs of nodes may lie in it; let it have none before you apply use: Exclusive", from.Subnet)
			}
		}
	}
}
