package ec2

import (
	"slices"
	"strconv"

	"github.com/enipool/enipool/pkg/cloud/sim"
)

type subnetsXML struct {
	Set  set[subnetXML] `xml:"subnetSet"`
	Next string         `xml:"nextToken,omitempty"`
}

type groupsXML struct {
	Set  set[securityGroupXML] `xml:"securityGroupInfo"`
	Next string                `xml:"nextToken,omitempty"`
}

type vpcsXML struct {
	Set  set[vpcXML] `xml:"vpcSet"`
	Next string      `xml:"nextToken,omitempty"`
}

func describeSubnets(e *Endpoint, q *query) effect {
	s := q.selection(e, "SubnetId", "subnet-id", "vpc-id", "availability-zone", "availabilityZone", "availability-zone-id",
		"cidr-block", "cidr", "cidrBlock", "available-ip-address-count", "ipv6-cidr-block-association.ipv6-cidr-block",
		"ipv6-native", "state", "owner-id", "tag:", "tag-key")
	return func(tx *sim.Tx) (out any, err error) {
		var list subnetsXML
		list.Set.Items, list.Next, err = page(e, s.paging, func() ([]subnetXML, error) { return e.subnets(tx, s) })
		return list, err
	}
}

func (e *Endpoint) subnets(tx *sim.Tx, s selection) ([]subnetXML, error) {
	if err := noSubnet.named(s.ids, func(id string) bool { _, err := tx.Subnet(id); return err == nil }); err != nil {
		return nil, err
	}
	sh := e.show(tx)
	var list []subnetXML
	for _, sub := range tx.Subnets() {
		x := sh.subnet(sub)
		if s.wants(sub.ID, sub.Tags, x.values) {
			list = append(list, x)
		}
	}
	return list, nil
}

// values are a subnet's for the filter of a name.
func (x subnetXML) values(name string) []string {
	switch name {
	case "subnet-id":
		return []string{x.ID}
	case "vpc-id":
		return []string{x.VPC}
	case "availability-zone", "availabilityZone":
		return []string{x.Zone}
	case "availability-zone-id":
		return []string{x.ZoneID}
	case "cidr-block", "cidr", "cidrBlock":
		return []string{x.CIDR}
	case "available-ip-address-count":
		return []string{strconv.Itoa(x.Free)}
	case "ipv6-native":
		return yes(x.V6Native)
	case "state":
		return []string{x.State}
	case "owner-id":
		return []string{x.Owner}
	}
	var v6 []string
	for _, a := range x.V6.Items {
		v6 = append(v6, a.V6)
	}
	return v6
}

func describeSecurityGroups(e *Endpoint, q *query) effect {
	s := q.selection(e, "GroupId", "group-id", "group-name", "description", "vpc-id", "owner-id", "tag:", "tag-key")
	return func(tx *sim.Tx) (out any, err error) {
		var list groupsXML
		list.Set.Items, list.Next, err = page(e, s.paging, func() ([]securityGroupXML, error) { return e.securityGroups(tx, s) })
		return list, err
	}
}

func (e *Endpoint) securityGroups(tx *sim.Tx, s selection) ([]securityGroupXML, error) {
	all := tx.Groups()
	if err := noGroup.named(s.ids, func(id string) bool {
		return slices.ContainsFunc(all, func(g sim.Group) bool { return g.ID == id })
	}); err != nil {
		return nil, err
	}
	owner, vpc := e.a.Options().Owner, tx.VPC().ID
	var list []securityGroupXML
	for _, g := range all {
		of := map[string]string{"group-id": g.ID, "group-name": g.Name, "description": g.Description, "vpc-id": vpc, "owner-id": owner}
		if s.wants(g.ID, g.Tags, func(name string) []string { return []string{of[name]} }) {
			list = append(list, securityGroupXML{Owner: owner, ID: g.ID, Name: g.Name, Description: g.Description, VPC: vpc,
				Tags: tagSet(g.Tags)})
		}
	}
	return list, nil
}

func describeVpcs(e *Endpoint, q *query) effect {
	s := q.selection(e, "VpcId", "vpc-id", "cidr", "cidr-block-association.cidr-block", "state", "owner-id", "is-default", "tag:", "tag-key")
	return func(tx *sim.Tx) (out any, err error) {
		var list vpcsXML
		list.Set.Items, list.Next, err = page(e, s.paging, func() ([]vpcXML, error) { return e.vpcs(tx, s) })
		return list, err
	}
}

func (e *Endpoint) vpcs(tx *sim.Tx, s selection) ([]vpcXML, error) {
	x := e.show(tx).vpc(tx.VPC())
	if err := noVPC.named(s.ids, func(id string) bool { return id == x.ID }); err != nil {
		return nil, err
	}
	if !s.wants(x.ID, tx.VPC().Tags, x.values) {
		return nil, nil
	}
	return []vpcXML{x}, nil
}

// values are a VPC's for the filter of a name.
func (x vpcXML) values(name string) []string {
	switch name {
	case "vpc-id":
		return []string{x.ID}
	case "cidr":
		return []string{x.CIDR}
	case "state":
		return []string{x.State}
	case "owner-id":
		return []string{x.Owner}
	case "is-default":
		return yes(x.Default)
	}
	var blocks []string
	for _, a := range x.V4.Items {
		blocks = append(blocks, a.V4)
	}
	return blocks
}
