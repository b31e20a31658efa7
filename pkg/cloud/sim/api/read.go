package api

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
		if i, ok := tx.shown(n); ok {
			list = append(list, i)
		}
	}
	return list
}

// shown is the ENI as the call may see it.
func (tx *Tx) shown(n *nic) (Interface, bool) {
	if !tx.past {
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
	for _, n := range tx.a.nics {
		if n.ID == id {
			if i, ok := tx.shown(n); ok {
				return i, nil
			}
		}
	}
	return Interface{}, fail(NoSuchInterface, id, "")
}

// Subnets returns the VPC's subnets by id, with their Free.
func (tx *Tx) Subnets() []Subnet {
	var list []Subnet
	for _, s := range tx.a.subnets {
		made := s.Subnet
		made.Free = s.free()
		if tx.past {
			if free, ok := s.seen.asOf(tx.at); ok {
				made.Free = free
			}
		}
		if s.pools[eni.IPv4] != nil {
			made.GatewayV4 = s.gateway(eni.IPv4)
		}
		if s.pools[eni.IPv6] != nil {
			made.GatewayV6 = s.gateway(eni.IPv6)
		}
		list = append(list, made)
	}
	slices.SortFunc(list, func(x, y Subnet) int { return strings.Compare(x.ID, y.ID) })
	return list
}

// Subnet returns a subnet.
func (tx *Tx) Subnet(id string) (Subnet, error) {
	list := tx.Subnets()
	i := slices.IndexFunc(list, func(s Subnet) bool { return s.ID == id })
	if i < 0 {
		return Subnet{}, fail(NoSuchSubnet, id, "")
	}
	return list[i], nil
}

// Instances returns the instances by id, the terminated ones too.
func (tx *Tx) Instances() []Instance {
	var list []Instance
	for _, m := range tx.a.machines {
		list = append(list, m.Instance)
	}
	slices.SortFunc(list, func(x, y Instance) int { return strings.Compare(x.ID, y.ID) })
	return list
}

// Instance returns an instance.
func (tx *Tx) Instance(id string) (Instance, error) {
	m := tx.a.machines[id]
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
