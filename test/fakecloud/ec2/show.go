package ec2

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
)

// shower makes answers of what a call may see.
type shower struct {
	tx     *sim.Tx
	o      sim.Options
	groups map[string]string // names by id
}

func (e *Endpoint) show(tx *sim.Tx) shower {
	s := shower{tx: tx, o: e.a.Options(), groups: map[string]string{}}
	for _, g := range tx.Groups() {
		s.groups[g.ID] = g.Name
	}
	return s
}

func tagSet(tags map[string]string) set[tagXML] {
	var list set[tagXML]
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		list.Items = append(list.Items, tagXML{key, tags[key]})
	}
	return list
}

func (s shower) groupSet(ids []string) set[groupXML] {
	var list set[groupXML]
	for _, id := range ids {
		list.Items = append(list.Items, groupXML{id, s.groups[id]})
	}
	return list
}

// zoneID is the zone's name that is the same in all accounts.
func (s shower) zoneID(zone string) string {
	return "az" + fmt.Sprint(len(s.o.Region)) + "-" + strings.TrimPrefix(zone, s.o.Region)
}

// dns is the private name of an address.
func (s shower) dns(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return "ip-" + strings.ReplaceAll(a.String(), ".", "-") + "." + s.o.Region + ".compute.internal"
}

func text(a fmt.Stringer, valid bool) string {
	if !valid {
		return ""
	}
	return a.String()
}

// status is an ENI's as EC2 shows it: what is on its way is told by the attachment.
func status(i sim.Interface) string {
	if i.Attachment != nil {
		return string(sim.InUse)
	}
	return string(i.Status)
}

func (s shower) attachment(at *sim.Attachment) *attachmentXML {
	if at == nil {
		return nil
	}
	return &attachmentXML{ID: at.ID, Instance: at.Instance, Owner: s.o.Owner, Index: at.Index, Card: at.Card,
		Status: string(at.Status), Time: stamped(at.Time), Delete: at.DeleteOnTermination}
}

// eni is an ENI wherever it is shown.
func (s shower) eni(i sim.Interface) eniXML {
	x := eniXML{ID: i.ID, Subnet: i.Subnet, VPC: s.tx.VPC().ID, Description: i.Description, Owner: s.o.Owner, Status: status(i),
		MAC: i.MAC, Primary: text(i.Primary, i.Primary.IsValid()), DNS: s.dns(i.Primary), SourceCheck: !i.NoSourceCheck,
		Groups: s.groupSet(i.Groups), Attachment: s.attachment(i.Attachment), Type: "interface"}
	for _, a := range i.Addresses() {
		if a.Is6() {
			x.V6.Items = append(x.V6.Items, v6XML{a.String(), i.First6 && a == i.V6[0]})
			continue
		}
		x.Addresses.Items = append(x.Addresses.Items, addressXML{a.String(), s.dns(a), a == i.Primary})
	}
	x.Prefixes, x.PrefixesV6 = prefixSet(i.PrefixesOf(eni.IPv4)), prefixSet(i.PrefixesOf(eni.IPv6))
	return x
}

// prefixSet is nil without prefixes: EC2 leaves it out then.
func prefixSet(prefixes []netip.Prefix) *set[prefixXML] {
	if len(prefixes) == 0 {
		return nil
	}
	var list set[prefixXML]
	for _, p := range prefixes {
		if p.Addr().Is4() {
			list.Items = append(list.Items, prefixXML{V4: p.String()})
		} else {
			list.Items = append(list.Items, prefixXML{V6: p.String()})
		}
	}
	return &list
}

// netInterface is an ENI on its own.
func (s shower) netInterface(i sim.Interface) interfaceXML {
	return interfaceXML{eniXML: s.eni(i), Zone: i.Zone, ZoneID: s.zoneID(i.Zone), Requester: i.Requester,
		RequesterManaged: i.Requester != "", Tags: tagSet(i.Tags)}
}

// instance is an instance with its ENIs.
func (s shower) instance(i sim.Instance, enis []sim.Interface) instanceXML {
	sub, _ := s.tx.Subnet(i.Subnet)
	x := instanceXML{ID: i.ID, Image: "ami-0" + strings.Repeat("1", 16), State: stateXML{16, "running"}, Type: i.Type,
		Launched: stamped(i.Launched), Placement: placementXML{sub.Zone, s.zoneID(sub.Zone), "default"}, SourceCheck: true,
		Architecture: "x86_64", Hypervisor: "xen", Tags: tagSet(i.Tags)}
	if i.Stopped {
		x.State = stateXML{80, "stopped"}
	}
	if i.Terminated {
		x.State = stateXML{48, "terminated"}
		return x
	}
	x.Subnet, x.VPC = i.Subnet, s.tx.VPC().ID
	for _, n := range enis {
		if !n.At(i.ID) {
			continue
		}
		if own(n) {
			x.Address, x.DNS, x.SourceCheck = text(n.Primary, n.Primary.IsValid()), s.dns(n.Primary), !n.NoSourceCheck
			x.Groups = s.groupSet(n.Groups)
		}
		shown := s.eni(n)
		shown.Attachment.Instance, shown.Attachment.Owner = "", ""
		x.Interfaces.Items = append(x.Interfaces.Items, shown)
	}
	return x
}

// own tells whether it is its instance's own ENI.
func own(i sim.Interface) bool {
	return i.Attachment != nil && i.Attachment.Index == 0 && i.Attachment.Card == 0
}

func instanceType(t sim.Type) instanceTypeXML {
	cards := t.Cards
	if len(cards) == 0 {
		cards = []int{t.ENIs}
	}
	hypervisor, ena := "nitro", "required"
	if t.NoPrefix {
		hypervisor, ena = "xen", "unsupported"
	}
	x := instanceTypeXML{Name: t.Name, Current: true, Hypervisor: hypervisor, CPUs: t.CPUs, Memory: t.Memory,
		Network: networkXML{Performance: "Up to 10 Gigabit", Interfaces: t.ENIs, CardCount: len(cards), V4: t.V4, V6: t.V6,
			HasV6: t.V6 > 0, ENA: ena}}
	for i, most := range cards {
		x.Network.Cards.Items = append(x.Network.Cards.Items, cardXML{i, "Up to 10 Gigabit", most})
	}
	return x
}

func (s shower) subnet(sub sim.Subnet) subnetXML {
	x := subnetXML{ID: sub.ID, ARN: fmt.Sprintf("arn:aws:ec2:%s:%s:subnet/%s", s.o.Region, s.o.Owner, sub.ID), State: "available",
		Owner: s.o.Owner, VPC: s.tx.VPC().ID, CIDR: text(sub.V4, sub.V4.IsValid()), V6Native: !sub.V4.IsValid(),
		Free: sub.Free, Zone: sub.Zone, ZoneID: s.zoneID(sub.Zone), Tags: tagSet(sub.Tags)}
	if !sub.V4.IsValid() {
		x.Free = 0
	}
	if sub.V6.IsValid() {
		x.V6.Items = []associationXML{{ID: "subnet-cidr-assoc-" + strings.TrimPrefix(sub.ID, "subnet-"),
			V6: sub.V6.String(), V6State: "associated"}}
	}
	return x
}

func (s shower) vpc(v sim.VPC) vpcXML {
	x := vpcXML{ID: v.ID, Owner: s.o.Owner, State: "available", DHCP: "dopt-0" + strings.Repeat("1", 16), Tenancy: "default",
		Tags: tagSet(v.Tags)}
	for i, p := range v.V4 {
		x.V4.Items = append(x.V4.Items, associationXML{ID: fmt.Sprintf("vpc-cidr-assoc-%017x", i), V4: p.String(), State: "associated"})
	}
	for i, p := range v.V6 {
		x.V6.Items = append(x.V6.Items, associationXML{ID: fmt.Sprintf("vpc-cidr-assoc-1%016x", i), V6: p.String(), V6State: "associated"})
	}
	if len(v.V4) > 0 {
		x.CIDR = v.V4[0].String()
	}
	return x
}
