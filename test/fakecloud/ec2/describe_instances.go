package ec2

import (
	"slices"
	"strconv"
	"strings"

	"github.com/enipool/enipool/pkg/cloud/sim"
)

type reservationsXML struct {
	Set  set[reservationXML] `xml:"reservationSet"`
	Next string              `xml:"nextToken,omitempty"`
}

type typesXML struct {
	Set  set[instanceTypeXML] `xml:"instanceTypeSet"`
	Next string               `xml:"nextToken,omitempty"`
}

func describeInstances(e *Endpoint, q *query) effect {
	s := q.selection(e, "InstanceId", "instance-id", "instance-type", "instance-state-name", "subnet-id", "vpc-id",
		"availability-zone", "private-ip-address", "network-interface.network-interface-id", "tag:", "tag-key")
	q.bool("IncludeManagedResources")
	return func(tx *sim.Tx) (out any, err error) {
		var list reservationsXML
		list.Set.Items, list.Next, err = page(e, s.paging, func() ([]reservationXML, error) { return e.reservations(tx, s) })
		return list, err
	}
}

func (e *Endpoint) reservations(tx *sim.Tx, s selection) ([]reservationXML, error) {
	if err := noInstance.named(s.ids, func(id string) bool { _, err := tx.Instance(id); return err == nil }); err != nil {
		return nil, err
	}
	sh, enis := e.show(tx), tx.Interfaces()
	var list []reservationXML
	for _, i := range tx.Instances() {
		if len(s.ids) > 0 && !slices.Contains(s.ids, i.ID) {
			continue
		}
		x := sh.instance(i, enis)
		if pass(s.filters, i.Tags, x.values) {
			list = append(list, reservationXML{ID: "r-" + strings.TrimPrefix(x.ID, "i-"), Owner: sh.o.Owner, Instances: set[instanceXML]{[]instanceXML{x}}})
		}
	}
	return list, nil
}

// values are an instance's for the filter of a name.
func (x instanceXML) values(name string) []string {
	switch name {
	case "instance-id":
		return []string{x.ID}
	case "instance-type":
		return []string{x.Type}
	case "instance-state-name":
		return []string{x.State.Name}
	case "subnet-id":
		return []string{x.Subnet}
	case "vpc-id":
		return []string{x.VPC}
	case "availability-zone":
		return []string{x.Placement.Zone}
	case "private-ip-address":
		return []string{x.Address}
	}
	var ids []string
	for _, n := range x.Interfaces.Items {
		ids = append(ids, n.ID)
	}
	return ids
}

func describeInstanceTypes(e *Endpoint, q *query) effect {
	s := q.selection(e, "InstanceType", "instance-type", "current-generation", "bare-metal", "hypervisor",
		"network-info.maximum-network-interfaces", "network-info.ipv4-addresses-per-interface", "network-info.ipv6-supported",
		"vcpu-info.default-vcpus", "memory-info.size-in-mib")
	q.bool("IncludeUnsupportedInRegion")
	return func(tx *sim.Tx) (out any, err error) {
		var list typesXML
		list.Set.Items, list.Next, err = page(e, s.paging, func() ([]instanceTypeXML, error) { return types(tx, s) })
		return list, err
	}
}

func types(tx *sim.Tx, s selection) ([]instanceTypeXML, error) {
	for _, name := range s.ids {
		if _, err := tx.Type(name); err != nil {
			return nil, err
		}
	}
	var list []instanceTypeXML
	for _, t := range tx.Types() {
		x := instanceType(t)
		if s.wants(t.Name, nil, x.values) {
			list = append(list, x)
		}
	}
	return list, nil
}

// values are a type's for the filter of a name.
func (x instanceTypeXML) values(name string) []string {
	switch name {
	case "instance-type":
		return []string{x.Name}
	case "current-generation":
		return yes(x.Current)
	case "bare-metal":
		return yes(x.BareMetal)
	case "hypervisor":
		return []string{x.Hypervisor}
	case "network-info.maximum-network-interfaces":
		return []string{strconv.Itoa(x.Network.Interfaces)}
	case "network-info.ipv4-addresses-per-interface":
		return []string{strconv.Itoa(x.Network.V4)}
	case "network-info.ipv6-supported":
		return yes(x.Network.HasV6)
	case "vcpu-info.default-vcpus":
		return []string{strconv.Itoa(x.CPUs)}
	}
	return []string{strconv.Itoa(x.Memory)}
}
