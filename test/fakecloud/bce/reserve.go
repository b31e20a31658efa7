package bce

import (
	"net/netip"

	"github.com/enipool/enipool/pkg/cloud/sim"
)

// reserveBody is a reserved range of a subnet. In answers the version is text.
type reserveBody struct {
	ID          string `json:"ipReserveId"`
	Subnet      string `json:"subnetId"`
	CIDR        string `json:"ipCidr"`
	Version     string `json:"ipVersion"`
	Description string `json:"description"`
	Created     string `json:"createdTime"`
	Updated     string `json:"updatedTime"`
}

func createReserve(_ *Endpoint, r *request) (effect, error) {
	var asked struct {
		Subnet      string `json:"subnetId"`
		CIDR        string `json:"ipCidr"`
		Version     int    `json:"ipVersion"`
		Description string `json:"description"`
	}
	if err := r.read(&asked); err != nil {
		return nil, err
	}
	in, err := netip.ParsePrefix(asked.CIDR)
	switch {
	case err != nil:
		return nil, invalid("ipCidr %q is no range", asked.CIDR)
	case asked.Version != 4 && asked.Version != 6 || in.Addr().Is4() != (asked.Version == 4):
		return nil, invalid("ipVersion must be that of ipCidr")
	case in.Addr().Is6() && in.Bits() < 96:
		return nil, invalid("the mask of an IPv6 range must be at least 96")
	}
	return func(tx *sim.Tx) (any, error) {
		made, err := tx.Reserve(sim.Reservation{Subnet: asked.Subnet, Range: in, Description: asked.Description})
		return struct {
			ID string `json:"ipReserveId"`
		}{made.ID}, err
	}, nil
}

func deleteReserve(_ *Endpoint, r *request) (effect, error) {
	return func(tx *sim.Tx) (any, error) {
		_, err := tx.Unreserve(r.id)
		return nothing{}, err
	}, nil
}

func listReserves(e *Endpoint, r *request) (effect, error) {
	size, err := e.pageSize(r)
	return func(tx *sim.Tx) (any, error) {
		var list []reserveBody
		for _, s := range tx.Subnets() {
			if id := r.param("subnetId"); id != "" && id != s.ID {
				continue
			}
			all, err := tx.Reservations(s.ID)
			if err != nil {
				return nil, err
			}
			for _, is := range all {
				version := "4"
				if is.Range.Addr().Is6() {
					version = "6"
				}
				list = append(list, reserveBody{is.ID, is.Subnet, is.Range.String(), version, is.Description, "2024-12-30T08:00:00Z", "2024-12-30T08:00:00Z"})
			}
		}
		page, next, err := cut(list, r.param("marker"), size, func(b reserveBody) string { return b.ID })
		if err != nil {
			return nil, err
		}
		return struct {
			paging
			Ranges []reserveBody `json:"ipReserves"`
		}{paging{Marker: r.param("marker"), Truncated: next != "", Next: next, Max: size}, page}, nil
	}, err
}
