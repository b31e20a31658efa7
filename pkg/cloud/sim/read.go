package sim

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/eni"
)

// Interfaces returns the ENIs of the account in the order of their creation.
func (tx *Tx) Interfaces() []Interface {
	var list []Interface
	for _, n := range tx.a.nics {
		if i, ok := tx.visible(n); ok {
			list = append(list, i)
		}
	}
	return list
}

// visible returns the ENI as this read sees it, false if it does not exist then.
func (tx *Tx) visible(n *nic) (Interface, bool) {
	if !tx.past || len(n.seen) == 0 {
		return n.Interface, !n.gone
	}
	i, ok := n.seen.asOf(tx.at)
	if !ok || i == nil {
		return Interface{}, false
	}
	return *i, true
}

// Interface returns an ENI.
func (tx *Tx) Interface(id string) (Interface, error) {
	n, known := tx.a.byID[id]
	if tx.past && !known {
		at := slices.IndexFunc(tx.a.dead, func(n *nic) bool { return n.ID == id })
		if known = at >= 0; known {
			n = tx.a.dead[at]
		}
	}
	if known {
		if i, ok := tx.visible(n); ok {
			return i, nil
		}
	}
	return Interface{}, fail(NoSuchInterface, id, "")
}

// Subnets returns the VPC's subnets by id, with their Free.
func (tx *Tx) Subnets() []Subnet {
	list := make([]Subnet, 0, len(tx.a.subnets))
	for _, s := range tx.a.subnets {
		list = append(list, tx.visibleSubnet(s))
	}
	slices.SortFunc(list, func(x, y Subnet) int { return strings.Compare(x.ID, y.ID) })
	return list
}

// Subnet returns a subnet.
func (tx *Tx) Subnet(id string) (Subnet, error) {
	s := tx.a.subnets[id]
	if s == nil {
		return Subnet{}, fail(NoSuchSubnet, id, "")
	}
	return tx.visibleSubnet(s), nil
}

// visibleSubnet returns the subnet as this read sees it.
func (tx *Tx) visibleSubnet(sub *subnet) Subnet {
	shown, left := sub.Subnet, sub.free()
	if tx.past {
		if was, ok := sub.seen.asOf(tx.at); ok {
			left = was
		}
	}
	shown.Free, shown.Free6, shown.KeptFree = left.v4, left.v6, left.kept
	for _, f := range sub.families() {
		if f == eni.IPv4 {
			shown.GatewayV4 = sub.gateway(f)
		} else {
			shown.GatewayV6 = sub.gateway(f)
		}
	}
	return shown
}

// Instances returns the instances by id, the terminated ones too.
func (tx *Tx) Instances() []Instance {
	var list []Instance
	for _, m := range tx.a.vms {
		list = append(list, m.Instance)
	}
	slices.SortFunc(list, func(x, y Instance) int { return strings.Compare(x.ID, y.ID) })
	return list
}

// Instance returns an instance.
func (tx *Tx) Instance(id string) (Instance, error) {
	m := tx.a.vms[id]
	if m == nil {
		return Instance{}, fail(NoSuchInstance, id, "")
	}
	return m.Instance, nil
}

// Groups returns the security groups by id.
func (tx *Tx) Groups() []Group {
	var list []Group
	for _, g := range tx.a.groups {
		list = append(list, *g)
	}
	slices.SortFunc(list, func(x, y Group) int { return strings.Compare(x.ID, y.ID) })
	return list
}

// Types returns the instance types by name.
func (tx *Tx) Types() []Type {
	return slices.SortedFunc(maps.Values(tx.a.types), func(x, y Type) int { return cmp.Compare(x.Name, y.Name) })
}

// Type returns an instance type.
func (tx *Tx) Type(name string) (Type, error) {
	t, ok := tx.a.types[name]
	if !ok {
		return Type{}, fail(NoSuchType, name, "")
	}
	return t, nil
}

// VPC returns the account's VPC.
func (tx *Tx) VPC() VPC { return tx.a.vpc }
