package ec2

import (
	"net/netip"

	"github.com/enipool/enipool/pkg/cloud/sim"
)

// cidrReservationXML is a range of a subnet that is reserved.
type cidrReservationXML struct {
	ID          string `xml:"subnetCidrReservationId"`
	Subnet      string `xml:"subnetId"`
	CIDR        string `xml:"cidr"`
	Kind        string `xml:"reservationType"`
	Owner       string `xml:"ownerId"`
	Description string `xml:"description,omitempty"`
}

type reservedXML struct {
	Made cidrReservationXML `xml:"subnetCidrReservation"`
}

type unreservedXML struct {
	Gone cidrReservationXML `xml:"deletedSubnetCidrReservation"`
}

type reservedRangesXML struct {
	V4   set[cidrReservationXML] `xml:"subnetIpv4CidrReservationSet"`
	V6   set[cidrReservationXML] `xml:"subnetIpv6CidrReservationSet"`
	Next string                  `xml:"nextToken,omitempty"`
}

func (e *Endpoint) reservation(r sim.Reservation) cidrReservationXML {
	return cidrReservationXML{r.ID, r.Subnet, r.Range.String(), "explicit", e.a.Options().Owner, r.Description}
}

func createReservation(e *Endpoint, q *query) effect {
	r := sim.Reservation{Subnet: q.need("SubnetId"), Description: q.text("Description")}
	var err error
	if r.Range, err = netip.ParsePrefix(q.need("Cidr")); err != nil {
		q.fail("InvalidParameterValue", "Value (%s) for parameter cidr is invalid. This is not a valid CIDR block.", q.text("Cidr"))
	}
	if kind := q.need("ReservationType"); kind != "explicit" {
		q.fail("UnsupportedOperation", "Reservations of type %s are not supported here", kind)
	}
	return func(tx *sim.Tx) (any, error) {
		made, err := tx.Reserve(r)
		return reservedXML{e.reservation(made)}, malformed(err)
	}
}

func deleteReservation(e *Endpoint, q *query) effect {
	id := q.need("SubnetCidrReservationId")
	return func(tx *sim.Tx) (any, error) {
		gone, err := tx.Unreserve(id)
		return unreservedXML{e.reservation(gone)}, malformed(err)
	}
}

func getReservations(e *Endpoint, q *query) effect {
	subnet, p := q.need("SubnetId"), q.paging(nil, mostPage)
	return func(tx *sim.Tx) (any, error) {
		some, next, err := page(e, p, func() ([]sim.Reservation, error) {
			list, err := tx.Reservations(subnet)
			return list, malformed(err)
		})
		out := reservedRangesXML{Next: next}
		for _, r := range some {
			of := &out.V4.Items
			if r.Range.Addr().Is6() {
				of = &out.V6.Items
			}
			*of = append(*of, e.reservation(r))
		}
		return out, err
	}
}
