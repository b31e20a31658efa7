package bce

import (
	"regexp"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
)

var nameFormat = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_/.-]{0,64}$`)

// createBody asks for an ENI.
type createBody struct {
	Name        string    `json:"name"`
	Subnet      string    `json:"subnetId"`
	Groups      []string  `json:"securityGroupIds"`
	Enterprises []string  `json:"enterpriseSecurityGroupIds"`
	V4          []ipBody  `json:"privateIpSet"`
	V6          []ipBody  `json:"ipv6PrivateIpSet"`
	Description string    `json:"description"`
	Tags        []tagBody `json:"tags"`
}

func (b createBody) check() error {
	switch {
	case !nameFormat.MatchString(b.Name):
		return invalid("the name must begin with a letter and have 1 to 65 letters, digits and -_/.")
	case len(b.Description) > 200:
		return invalid("the description has more than 200 characters")
	case len(b.V4) == 0:
		return invalid("privateIpSet is required")
	case (len(b.Groups) > 0) == (len(b.Enterprises) > 0):
		return invalid("one of securityGroupIds and enterpriseSecurityGroupIds is required")
	}
	return nil
}

// request is what the body is to the account.
func (b createBody) request() (sim.Create, error) {
	c := sim.Create{Subnet: b.Subnet, Name: b.Name, Description: b.Description, Groups: append(b.Groups, b.Enterprises...),
		Tags: map[string]string{}}
	for _, t := range b.Tags {
		c.Tags[t.Key] = t.Value
	}
	primaries := 0
	for _, ip := range b.V4 {
		a, err := parseIP(ip.Address, eni.IPv4)
		switch {
		case err != nil:
			return c, err
		case ip.Primary:
			primaries, c.Primary = primaries+1, a
		case a.IsValid():
			c.V4 = append(c.V4, a)
		default:
			c.CountV4++
		}
	}
	if primaries != 1 {
		return c, invalid("one address must be the primary")
	}
	for _, ip := range b.V6 {
		a, err := parseIP(ip.Address, eni.IPv6)
		switch {
		case err != nil:
			return c, err
		case ip.Primary:
			return c, invalid("IPv6 addresses are all secondary")
		case a.IsValid():
			c.V6 = append(c.V6, a)
		default:
			c.CountV6++
		}
	}
	return c, nil
}

func createENI(_ *Endpoint, r *request) (effect, error) {
	var b createBody
	if err := r.read(&b); err != nil {
		return nil, err
	}
	if err := b.check(); err != nil {
		return nil, err
	}
	c, err := b.request()
	return func(tx *sim.Tx) (any, error) {
		i, err := tx.Create(c)
		if err != nil {
			return nil, err
		}
		return struct {
			ID string `json:"eniId"`
		}{i.ID}, nil
	}, err
}

func updateENI(_ *Endpoint, r *request) (effect, error) {
	var b struct {
		Name        *string `json:"name"`
		Description *string `json:"description"`
	}
	if err := r.read(&b); err != nil {
		return nil, err
	}
	if b.Name == nil && b.Description == nil || b.Name != nil && !nameFormat.MatchString(*b.Name) ||
		b.Description != nil && len(*b.Description) > 200 {
		return nil, invalid("name or description is required, and must be right")
	}
	return onENI(r, func(tx *sim.Tx, i sim.Interface) error {
		return tx.Modify(i.ID, sim.Edit{Name: b.Name, Description: b.Description})
	}), nil
}

// setGroups replaces an ENI's security groups by those of one kind.
func setGroups(_ *Endpoint, r *request) (effect, error) {
	var b struct {
		Plain      []string `json:"securityGroupIds"`
		Enterprise []string `json:"enterpriseSecurityGroupIds"`
	}
	if err := r.read(&b); err != nil {
		return nil, err
	}
	wanted, other := b.Plain, b.Enterprise
	if r.flag("bindEsg") {
		wanted, other = other, wanted
	}
	plain, enterprise := split(wanted)
	if len(wanted) == 0 || len(other) > 0 || len(plain) > 0 && len(enterprise) > 0 || (len(enterprise) > 0) != r.flag("bindEsg") {
		return nil, invalid("security groups of the kind that the query names are required, and no others")
	}
	return onENI(r, func(tx *sim.Tx, i sim.Interface) error { return tx.Modify(i.ID, sim.Edit{Groups: wanted}) }), nil
}

// onENI is an action on an ENI that answers nothing.
func onENI(r *request, do func(*sim.Tx, sim.Interface) error) effect {
	return func(tx *sim.Tx) (any, error) {
		i, err := find(tx, r.id)
		if err != nil {
			return nil, err
		}
		return nothing{}, do(tx, i)
	}
}

func deleteENI(_ *Endpoint, r *request) (effect, error) {
	return onENI(r, func(tx *sim.Tx, i sim.Interface) error { return tx.Delete(i.ID) }), nil
}

// placeBody is an instance to attach to or to detach from.
type placeBody struct {
	Instance string `json:"instanceId"`
}

func attachENI(_ *Endpoint, r *request) (effect, error) {
	var b placeBody
	if err := r.read(&b); err != nil {
		return nil, err
	}
	return onENI(r, func(tx *sim.Tx, i sim.Interface) error {
		_, err := tx.Attach(sim.Attach{Interface: i.ID, Instance: b.Instance, Index: -1})
		return err
	}), nil
}

func detachENI(_ *Endpoint, r *request) (effect, error) {
	var b placeBody
	if err := r.read(&b); err != nil {
		return nil, err
	}
	return onENI(r, func(tx *sim.Tx, i sim.Interface) error {
		if !i.At(b.Instance) {
			return &sim.Error{Reason: sim.NoSuchAttachment, Object: i.ID, Detail: "it is not at instance " + b.Instance}
		}
		_, err := tx.Detach(i.Attachment.ID, false)
		return err
	}), nil
}
