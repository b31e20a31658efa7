package ec2

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	"github.com/enipool/enipool/pkg/cloud/sim"
)

type interfacesXML struct {
	Set  set[interfaceXML] `xml:"networkInterfaceSet"`
	Next string            `xml:"nextToken,omitempty"`
}

// missing is how a list tells of an id that it does not have.
type missing struct{ prefix, malformed, code, noun string }

// named checks that the ids that a request names are there.
func (m missing) named(ids []string, has func(id string) bool) error {
	for _, id := range ids {
		if !has(id) {
			code := notFound(id, m.prefix, m.malformed, m.code)
			return refuse(code, "The %s ID '%s' does not exist", m.noun, id)
		}
	}
	return nil
}

// The lists' own.
var (
	noInterface = missing{"eni", "InvalidNetworkInterfaceId.Malformed", "InvalidNetworkInterfaceID.NotFound", "networkInterface"}
	noInstance  = missing{"i", "InvalidInstanceID.Malformed", "InvalidInstanceID.NotFound", "instance"}
	noSubnet    = missing{"subnet", "InvalidSubnetID.Malformed", "InvalidSubnetID.NotFound", "subnet"}
	noGroup     = missing{"sg", "InvalidGroupId.Malformed", "InvalidGroup.NotFound", "security group"}
	noVPC       = missing{"vpc", "InvalidVpcID.Malformed", "InvalidVpcID.NotFound", "vpc"}
)

// selection is which of a list a request wants.
type selection struct {
	ids     []string
	filters []filter
	paging  paging
}

// selection reads it. Who asks for all at once counts in the bucket for that.
func (q *query) selection(e *Endpoint, ids string, names ...string) selection {
	s := selection{ids: q.list(ids, ""), filters: q.filters(e, names...)}
	most := mostPage
	if ids == "InstanceType" {
		most = 100
	}
	s.paging = q.paging(s.ids, most)
	if len(s.ids)+len(s.filters) == 0 && !q.has("MaxResults") && !q.has("NextToken") {
		q.bucket = unfiltered
	}
	return s
}

// wants tells whether the request wants an object.
func (s selection) wants(id string, tags map[string]string, of func(string) []string) bool {
	return (len(s.ids) == 0 || slices.Contains(s.ids, id)) && pass(s.filters, tags, of)
}

func yes(b bool) []string { return []string{strconv.FormatBool(b)} }

func interfaceFilters() []string {
	return []string{"network-interface-id", "subnet-id", "vpc-id", "status", "description", "group-id", "mac-address",
		"private-ip-address", "private-dns-name", "addresses.private-ip-address", "addresses.primary", "ipv6-addresses.ipv6-address",
		"attachment.attachment-id", "attachment.instance-id", "attachment.instance-owner-id", "attachment.device-index",
		"attachment.status", "attachment.delete-on-termination", "attachment.attach-time", "availability-zone",
		"availability-zone-id", "interface-type", "owner-id", "requester-id", "requester-managed", "source-dest-check",
		"operator.managed", "tag:", "tag-key"}
}

func describeNetworkInterfaces(e *Endpoint, q *query) effect {
	s := q.selection(e, "NetworkInterfaceId", interfaceFilters()...)
	q.bool("IncludeManagedResources")
	return func(tx *sim.Tx) (any, error) {
		var err error
		var out interfacesXML
		out.Set.Items, out.Next, err = page(e, s.paging, func() ([]interfaceXML, error) { return e.interfaces(tx, s) })
		if most := e.o.MaxUnpaged; err == nil && most > 0 && q.bucket == unfiltered && len(out.Set.Items) > most {
			return nil, refuse("OperationNotPermitted", "Too many network interfaces. Use pagination, or filters.")
		}
		return out, err
	}
}

func (e *Endpoint) interfaces(tx *sim.Tx, s selection) ([]interfaceXML, error) {
	sh := e.show(tx)
	all := tx.Interfaces()
	if err := noInterface.named(s.ids, func(id string) bool {
		return slices.ContainsFunc(all, func(i sim.Interface) bool { return i.ID == id })
	}); err != nil {
		return nil, err
	}
	var list []interfaceXML
	for _, i := range all {
		if s.wants(i.ID, i.Tags, func(name string) []string { return sh.interfaceValues(e, i, name) }) {
			list = append(list, sh.netInterface(i))
		}
	}
	return list, nil
}

// interfaceValues are an ENI's for the filter of a name.
func (s shower) interfaceValues(e *Endpoint, i sim.Interface, name string) []string {
	switch name {
	case "network-interface-id":
		return []string{i.ID}
	case "subnet-id":
		return []string{i.Subnet}
	case "vpc-id":
		return []string{s.tx.VPC().ID}
	case "status":
		return []string{status(i)}
	case "description":
		return []string{i.Description}
	case "group-id":
		return i.Groups
	case "mac-address":
		return []string{i.MAC}
	case "private-ip-address":
		return v4Texts(i, e.o.Quirks.NoSecondaryFilter)
	case "private-dns-name":
		return []string{s.dns(i.Primary)}
	case "addresses.private-ip-address":
		return v4Texts(i, e.o.Quirks.NoSecondaryFilter)
	case "addresses.primary":
		return append(yes(i.Primary.IsValid()), yes(len(i.V4) == 0)...)
	case "ipv6-addresses.ipv6-address":
		return texts(i.V6)
	case "availability-zone":
		return []string{i.Zone}
	case "availability-zone-id":
		return []string{s.zoneID(i.Zone)}
	case "interface-type":
		return []string{"interface"}
	case "owner-id":
		return []string{s.o.Owner}
	case "requester-id":
		return []string{i.Requester}
	case "requester-managed":
		return yes(i.Requester != "")
	case "source-dest-check":
		return yes(!i.NoSourceCheck)
	case "operator.managed":
		return yes(false)
	}
	return s.attachmentValues(i.Attachment, name)
}

func (s shower) attachmentValues(at *sim.Attachment, name string) []string {
	if at == nil {
		return nil
	}
	switch name {
	case "attachment.attachment-id":
		return []string{at.ID}
	case "attachment.instance-id":
		return []string{at.Instance}
	case "attachment.instance-owner-id":
		return []string{s.o.Owner}
	case "attachment.device-index":
		return []string{strconv.Itoa(at.Index)}
	case "attachment.status":
		return []string{string(at.Status)}
	case "attachment.delete-on-termination":
		return yes(at.DeleteOnTermination)
	case "attachment.attach-time":
		return []string{stamped(at.Time)}
	}
	return nil
}

// v4Texts are the IPv4 addresses of an ENI.
func v4Texts(i sim.Interface, primaryAlone bool) []string {
	list := []netip.Addr{}
	if i.Primary.IsValid() {
		list = append(list, i.Primary)
	}
	if !primaryAlone {
		list = append(list, i.V4...)
	}
	return texts(list)
}

func texts[T fmt.Stringer](list []T) []string {
	var out []string
	for _, v := range list {
		out = append(out, v.String())
	}
	return out
}
