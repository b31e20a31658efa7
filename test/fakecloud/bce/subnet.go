package bce

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/enipool/enipool/pkg/cloud/sim"
)

// subnetBody is a subnet in answers.
type subnetBody struct {
	ID          string    `json:"subnetId"`
	Name        string    `json:"name"`
	Zone        string    `json:"zoneName"`
	V4          string    `json:"cidr"`
	V6          string    `json:"ipv6Cidr"`
	VPC         string    `json:"vpcId"`
	Type        string    `json:"subnetType"`
	Description string    `json:"description"`
	Created     string    `json:"createdTime"`
	Free        int       `json:"availableIp"`
	Unreserved  int       `json:"availableUnreservedIp"`
	Tags        []tagBody `json:"tags"`
}

func showSubnet(tx *sim.Tx, s sim.Subnet) subnetBody {
	b := subnetBody{ID: s.ID, Name: s.Name, Zone: s.Zone, VPC: tx.VPC().ID, Type: "BCC", Created: "2020-11-19T12:46:01Z", Free: s.Free + s.KeptFree,
		Unreserved: s.Free, Tags: showTags(s.Tags)}
	if s.V4.IsValid() {
		b.V4 = s.V4.String()
	}
	if s.V6.IsValid() {
		b.V6 = s.V6.String()
	}
	return b
}

func showTags(tags map[string]string) []tagBody {
	list := []tagBody{}
	for key, value := range tags {
		list = append(list, tagBody{key, value})
	}
	slices.SortFunc(list, func(a, b tagBody) int { return cmp.Compare(a.Key, b.Key) })
	return list
}

// pageSize is how many a page has at most, by the request and by what the endpoint allows.
func (e *Endpoint) pageSize(r *request) (size int, err error) {
	size = e.o.MaxPage
	if text := r.param("maxKeys"); text != "" {
		n, badly := strconv.Atoi(text)
		if badly != nil || n < 1 || n > 1000 {
			err = invalid("maxKeys must be 1 to 1000")
		}
		size = min(size, n)
	}
	return size, err
}

func listSubnets(e *Endpoint, r *request) (effect, error) {
	size, err := e.pageSize(r)
	return func(tx *sim.Tx) (any, error) {
		var list []subnetBody
		for _, s := range tx.Subnets() {
			vpc, zone, ids := r.param("vpcId"), r.param("zoneName"), r.param("subnetIds")
			if vpc != "" && vpc != tx.VPC().ID || zone != "" && zone != s.Zone ||
				ids != "" && !slices.Contains(strings.Split(ids, ","), s.ID) {
				continue
			}
			list = append(list, showSubnet(tx, s))
		}
		page, next, err := cut(list, r.param("marker"), size, func(b subnetBody) string { return b.ID })
		if err != nil {
			return nil, err
		}
		return struct {
			paging
			Subnets []subnetBody `json:"subnets"`
		}{paging{Marker: r.param("marker"), Truncated: next != "", Next: next, Max: size}, page}, nil
	}, err
}

func subnetDetail(_ *Endpoint, r *request) (effect, error) {
	return func(tx *sim.Tx) (any, error) {
		s, err := tx.Subnet(r.id)
		if err != nil {
			return nil, err
		}
		return struct {
			Subnet subnetBody `json:"subnet"`
		}{showSubnet(tx, s)}, nil
	}, nil
}
