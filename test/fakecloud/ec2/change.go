package ec2

import (
	"errors"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
)

type createdXML struct {
	Interface interfaceXML `xml:"networkInterface"`
	Token     string       `xml:"clientToken,omitempty"`
}

type attachedXML struct {
	ID   string `xml:"attachmentId"`
	Card int    `xml:"networkCardIndex"`
}

func createNetworkInterface(e *Endpoint, q *query) effect {
	q.token = q.text("ClientToken")
	if len(q.token) > 64 {
		q.fail("InvalidParameterValue", "The client token has more than 64 characters")
	}
	c := sim.Create{Subnet: q.need("SubnetId"), Description: q.text("Description"), Groups: q.list("SecurityGroupId", ""),
		Tags: q.specified("network-interface")}
	if len(c.Description) > 255 {
		q.fail("InvalidParameterValue", "The description has more than 255 characters")
	}
	if kind := q.text("InterfaceType"); kind != "" && kind != "interface" {
		q.fail("UnsupportedOperation", "Interfaces of type %s are not supported here", kind)
	}
	c.Primary, c.V4 = q.firstAddresses()
	c.CountV4, c.BlocksV4 = q.number("SecondaryPrivateIpAddressCount", 0), q.number("Ipv4PrefixCount", 0)
	c.V6, c.CountV6, c.BlocksV6 = q.addrs("Ipv6Addresses", ".Ipv6Address"), q.number("Ipv6AddressCount", 0), q.number("Ipv6PrefixCount", 0)
	c.Prefixes = append(q.prefixes("Ipv4Prefix", ".Ipv4Prefix"), q.prefixes("Ipv6Prefix", ".Ipv6Prefix")...)
	c.First6 = q.bool("EnablePrimaryIpv6")
	q.oneKind(c.AddressRequest)
	token := q.token
	return func(tx *sim.Tx) (any, error) {
		if e.o.Quirks.NoPrefixes {
			c.Prefixes, c.BlocksV4, c.BlocksV6 = nil, 0, 0
		}
		made, err := tx.Create(c)
		if err != nil {
			return nil, malformed(err)
		}
		return createdXML{e.show(tx).netInterface(made), token}, nil
	}
}

// firstAddresses reads the addresses by name of a new ENI.
func (q *query) firstAddresses() (primary netip.Addr, others []netip.Addr) {
	if v := q.text("PrivateIpAddress"); v != "" {
		primary = q.addr("PrivateIpAddress", v)
	}
	for i, a := range q.addrs("PrivateIpAddresses", ".PrivateIpAddress") {
		is := q.bool(nth("PrivateIpAddresses", i, ".Primary"))
		switch {
		case is && primary.IsValid() && primary != a:
			q.fail("InvalidParameterValue", "Two addresses are to be primary: %s and %s", primary, a)
		case is:
			primary = a
		case a != primary:
			others = append(others, a)
		}
	}
	return primary, others
}

// oneKind refuses a request for IPv4 addresses by several ways, and the same of IPv6.
func (q *query) oneKind(w sim.AddressRequest) {
	named := [2]int{}
	for _, p := range w.Prefixes {
		if p.Addr().Is4() {
			named[0]++
		} else {
			named[1]++
		}
	}
	for _, ways := range [][]int{{len(w.V4), w.CountV4, named[0], w.BlocksV4}, {len(w.V6), w.CountV6, named[1], w.BlocksV6}} {
		if len(slices.DeleteFunc(ways, func(n int) bool { return n == 0 })) > 1 {
			q.fail("InvalidParameterCombination", "Specify addresses, a number of addresses, prefixes or a number of prefixes, and only one of them")
		}
	}
}

func attachNetworkInterface(e *Endpoint, q *query) effect {
	w := sim.Attach{Interface: q.need("NetworkInterfaceId"), Instance: q.need("InstanceId"), Card: q.number("NetworkCardIndex", 0)}
	q.need("DeviceIndex")
	w.Index = q.number("DeviceIndex", 0)
	return func(tx *sim.Tx) (any, error) {
		at, err := tx.Attach(w)
		if err != nil {
			return nil, malformed(err)
		}
		return attachedXML{at.ID, at.Card}, nil
	}
}

func detachNetworkInterface(e *Endpoint, q *query) effect {
	id, force := q.need("AttachmentId"), q.bool("Force")
	return func(tx *sim.Tx) (any, error) {
		_, err := tx.Detach(id, force)
		return done{true}, malformed(err)
	}
}

func deleteNetworkInterface(e *Endpoint, q *query) effect {
	id := q.need("NetworkInterfaceId")
	return func(tx *sim.Tx) (any, error) { return done{true}, malformed(tx.Delete(id)) }
}

func modifyNetworkInterfaceAttribute(e *Endpoint, q *query) effect {
	id := q.need("NetworkInterfaceId")
	edit := sim.Edit{Description: q.pointer("Description.Value"), Groups: q.list("SecurityGroupId", ""),
		Attachment: q.text("Attachment.AttachmentId")}
	changes := 0
	for _, is := range []bool{edit.Description != nil, len(edit.Groups) > 0, q.has("SourceDestCheck.Value"), edit.Attachment != ""} {
		if is {
			changes++
		}
	}
	if q.has("SourceDestCheck.Value") {
		off := !q.bool("SourceDestCheck.Value")
		edit.NoSourceCheck = &off
	}
	if q.has("Attachment.DeleteOnTermination") {
		on := q.bool("Attachment.DeleteOnTermination")
		edit.DeleteOnTermination = &on
	}
	if changes != 1 || (edit.Attachment != "") != (edit.DeleteOnTermination != nil) {
		q.fail("InvalidParameterCombination", "Specify exactly one attribute to modify")
	}
	return func(tx *sim.Tx) (any, error) {
		if e.o.Quirks.NoDeleteOnTerminate && edit.DeleteOnTermination != nil {
			return done{true}, nil
		}
		return done{true}, malformed(tx.Modify(id, edit))
	}
}

// malformed makes an error of an id that does not exist one of an id that can't.
func malformed(err error) error {
	e, ok := errors.AsType[*sim.Error](err)
	if !ok || e.Code != "" {
		return err
	}
	of := map[sim.Reason]missing{sim.NoSuchInterface: noInterface, sim.NoSuchInstance: noInstance, sim.NoSuchSubnet: noSubnet,
		sim.NoSuchGroup:      noGroup,
		sim.NoSuchAttachment: {"eni-attach", "InvalidNetworkInterfaceAttachmentId.Malformed", "InvalidAttachmentID.NotFound", "attachment"}}
	m, ok := of[e.Reason]
	if !ok {
		return err
	}
	return m.named([]string{e.Object}, func(string) bool { return false })
}

type assignedXML struct {
	ID        string          `xml:"networkInterfaceId"`
	Addresses set[addressOf]  `xml:"assignedPrivateIpAddressesSet"`
	Prefixes  *set[prefixXML] `xml:"assignedIpv4PrefixSet"`
	Return    bool            `xml:"return"`
}

type addressOf struct {
	Address string `xml:"privateIpAddress"`
}

func assignPrivateIPAddresses(e *Endpoint, q *query) effect {
	id := q.need("NetworkInterfaceId")
	w := sim.AddressRequest{V4: q.addrs("PrivateIpAddress", ""), CountV4: q.number("SecondaryPrivateIpAddressCount", 1),
		Prefixes: q.prefixes("Ipv4Prefix", ""), BlocksV4: q.number("Ipv4PrefixCount", 1), Reassign: q.bool("AllowReassignment")}
	q.something(w)
	return func(tx *sim.Tx) (any, error) {
		if e.o.Quirks.NoPrefixes {
			w.Prefixes, w.BlocksV4 = nil, 0
		}
		got, err := tx.Assign(id, w)
		if err != nil {
			return nil, malformed(err)
		}
		if e.o.Quirks.AssignListsAll {
			if i, err := tx.Interface(id); err == nil {
				got.V4 = i.Addresses()
			}
		}
		out := assignedXML{ID: id, Prefixes: prefixSet(got.Prefixes), Return: true}
		for _, a := range got.V4 {
			if a.Is4() {
				out.Addresses.Items = append(out.Addresses.Items, addressOf{a.String()})
			}
		}
		return out, nil
	}
}

// something refuses a request for nothing, and for the same by several ways.
func (q *query) something(w sim.AddressRequest) {
	q.oneKind(w)
	if len(w.V4)+len(w.V6)+len(w.Prefixes)+w.CountV4+w.CountV6+w.BlocksV4+w.BlocksV6 == 0 {
		q.fail("MissingParameter", "Either addresses or prefixes, or a number of them, must be specified")
	}
}

func unassignPrivateIPAddresses(e *Endpoint, q *query) effect {
	id := q.need("NetworkInterfaceId")
	g := sim.Got{V4: q.addrs("PrivateIpAddress", ""), Prefixes: q.prefixes("Ipv4Prefix", "")}
	q.named(g)
	return func(tx *sim.Tx) (any, error) { return done{true}, malformed(tx.Unassign(id, g)) }
}

// named refuses a request to unassign nothing.
func (q *query) named(g sim.Got) {
	if len(g.V4)+len(g.V6)+len(g.Prefixes) == 0 {
		q.fail("MissingParameter", "Either addresses or prefixes must be specified")
	}
}

type assignedV6XML struct {
	ID        string      `xml:"networkInterfaceId"`
	Addresses set[string] `xml:"assignedIpv6Addresses"`
	Prefixes  set[string] `xml:"assignedIpv6PrefixSet"`
}

func assignIPv6Addresses(e *Endpoint, q *query) effect {
	id := q.need("NetworkInterfaceId")
	w := sim.AddressRequest{V6: q.addrs("Ipv6Addresses", ""), CountV6: q.number("Ipv6AddressCount", 1),
		Prefixes: q.prefixes("Ipv6Prefix", ""), BlocksV6: q.number("Ipv6PrefixCount", 1)}
	q.something(w)
	return func(tx *sim.Tx) (any, error) {
		if e.o.Quirks.NoPrefixes {
			w.Prefixes, w.BlocksV6 = nil, 0
		}
		got, err := tx.Assign(id, w)
		if err != nil {
			return nil, malformed(err)
		}
		return assignedV6XML{id, set[string]{texts(got.V6)}, set[string]{texts(got.Prefixes)}}, nil
	}
}

type unassignedV6XML struct {
	ID        string      `xml:"networkInterfaceId"`
	Addresses set[string] `xml:"unassignedIpv6Addresses"`
	Prefixes  set[string] `xml:"unassignedIpv6PrefixSet"`
}

func unassignIPv6Addresses(e *Endpoint, q *query) effect {
	id := q.need("NetworkInterfaceId")
	g := sim.Got{V6: q.addrs("Ipv6Addresses", ""), Prefixes: q.prefixes("Ipv6Prefix", "")}
	q.named(g)
	return func(tx *sim.Tx) (any, error) {
		before, _ := tx.Interface(id)
		if err := tx.Unassign(id, g); err != nil {
			return nil, malformed(err)
		}
		after, _ := tx.Interface(id)
		return unassignedV6XML{id, set[string]{texts(gone(before.V6, after.V6))},
			set[string]{texts(gone(before.PrefixesOf(eni.IPv6), after.PrefixesOf(eni.IPv6)))}}, nil
	}
}

// gone returns what was before and is not after.
func gone[T comparable](before, after []T) []T {
	return slices.DeleteFunc(slices.Clone(before), func(v T) bool { return slices.Contains(after, v) })
}
