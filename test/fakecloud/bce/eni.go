package bce

import (
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
)

// eniBody is an ENI in answers.
type eniBody struct {
	ID          string    `json:"eniId"`
	Name        string    `json:"name"`
	Zone        string    `json:"zoneName"`
	Description string    `json:"description"`
	Instance    string    `json:"instanceId,omitempty"`
	MAC         string    `json:"macAddress"`
	VPC         string    `json:"vpcId"`
	Subnet      string    `json:"subnetId"`
	Status      string    `json:"status"`
	V4          []ipBody  `json:"privateIpSet"`
	V6          []ipBody  `json:"ipv6PrivateIpSet"`
	Groups      []string  `json:"securityGroupIds"`
	Enterprises []string  `json:"enterpriseSecurityGroupIds"`
	Created     string    `json:"createdTime"`
	Tags        []tagBody `json:"tags"`
}

type ipBody struct {
	Public  string `json:"publicIpAddress"`
	Primary bool   `json:"primary"`
	Address string `json:"privateIpAddress"`
}

type tagBody struct {
	Key   string `json:"tagKey"`
	Value string `json:"tagValue"`
}

// statusOf is the API's word for a state. It knows nothing of ENIs that take time
// to be made.
func statusOf(s sim.Status) string {
	switch s {
	case sim.InUse:
		return "inuse"
	case sim.Pending:
		return "available"
	}
	return string(s)
}

// stamp is a time as the API writes it: to the second.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

func show(tx *sim.Tx, i sim.Interface) eniBody {
	b := eniBody{ID: i.ID, Name: i.Name, Zone: i.Zone, Description: i.Description, MAC: i.MAC, VPC: tx.VPC().ID, Subnet: i.Subnet,
		Status: statusOf(i.Status), Created: stamp(i.Created), V6: []ipBody{}, Groups: []string{}, Enterprises: []string{},
		Tags: showTags(i.Tags)}
	if i.Attachment != nil {
		b.Instance = i.Attachment.Instance
	}
	if i.Primary.IsValid() {
		b.V4 = append(b.V4, ipBody{Address: i.Primary.String(), Primary: true})
	}
	for _, a := range i.V4 {
		b.V4 = append(b.V4, ipBody{Address: a.String()})
	}
	for _, a := range i.V6 {
		b.V6 = append(b.V6, ipBody{Address: a.String()})
	}
	b.Groups, b.Enterprises = split(i.Groups)
	return b
}

// split tells ordinary security groups from those of enterprises.
func split(groups []string) (plain, enterprise []string) {
	plain, enterprise = []string{}, []string{}
	for _, id := range groups {
		if strings.HasPrefix(id, "esg-") {
			enterprise = append(enterprise, id)
		} else {
			plain = append(plain, id)
		}
	}
	return plain, enterprise
}

// isOwn tells whether an ENI is an instance's own, which this service does not know.
func isOwn(i sim.Interface) bool { return i.Attachment != nil && i.Attachment.Index == 0 }

// find returns an ENI that the service for ENIs knows.
func find(tx *sim.Tx, id string) (sim.Interface, error) {
	i, err := tx.Interface(id)
	if err == nil && isOwn(i) {
		return sim.Interface{}, &sim.Error{Reason: sim.NoSuchInterface, Object: id}
	}
	return i, err
}

func listENI(e *Endpoint, r *request) (effect, error) {
	vpc := r.param("vpcId")
	size, err := e.pageSize(r)
	if vpc == "" {
		err = invalid("vpcId is required")
	}
	return func(tx *sim.Tx) (any, error) {
		var list []eniBody
		for _, i := range tx.Interfaces() {
			instance, name := r.param("instanceId"), r.param("name")
			if isOwn(i) || vpc != tx.VPC().ID || instance != "" && !i.At(instance) || !strings.Contains(i.Name, name) {
				continue
			}
			list = append(list, show(tx, i))
		}
		page, next, err := cut(list, r.param("marker"), size, func(b eniBody) string { return b.ID })
		if err != nil {
			return nil, err
		}
		return struct {
			paging
			ENIs []eniBody `json:"enis"`
		}{paging{Marker: r.param("marker"), Truncated: next != "", Next: next, Max: size}, page}, nil
	}, err
}

// paging is what lists have besides.
type paging struct {
	Marker    string `json:"marker,omitempty"`
	Truncated bool   `json:"isTruncated"`
	Next      string `json:"nextMarker,omitempty"`
	Max       int    `json:"maxKeys"`
}

// cut returns the page that begins at the marker, and the marker of the next.
func cut[T any](list []T, marker string, size int, id func(T) string) (page []T, next string, err error) {
	from := 0
	for marker != "" && (from >= len(list) || id(list[from]) != marker) {
		if from++; from >= len(list) {
			return nil, "", invalid("the marker is invalid")
		}
	}
	page = append([]T{}, list[from:]...)
	if len(page) > size {
		return page[:size], id(page[size]), nil
	}
	return page, "", nil
}

func eniDetail(_ *Endpoint, r *request) (effect, error) {
	return func(tx *sim.Tx) (any, error) {
		i, err := find(tx, r.id)
		if err != nil {
			return nil, err
		}
		return show(tx, i), nil
	}, nil
}

func eniStatus(_ *Endpoint, r *request) (effect, error) {
	return func(tx *sim.Tx) (any, error) {
		i, err := find(tx, r.id)
		if err != nil {
			return nil, err
		}
		return struct {
			Status string `json:"status"`
		}{statusOf(i.Status)}, nil
	}, nil
}
