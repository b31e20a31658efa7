package sim

import (
	"context"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
)

// Reserve implements driver.Driver.
func (d *Driver) Reserve(ctx context.Context, r driver.Reservation) (string, error) {
	if err := d.keepsNone(); err != nil {
		return "", err
	}
	return carryOut(ctx, d, Call{Action: ActReserve, Mutates: true}, func(tx *Tx) (string, error) {
		made, err := tx.Reserve(Reservation{Subnet: r.Subnet, Range: r.Range, Description: r.Note})
		return made.ID, err
	})
}

// Unreserve implements driver.Driver.
func (d *Driver) Unreserve(ctx context.Context, id string) error {
	if err := d.keepsNone(); err != nil {
		return err
	}
	return d.changeCall(ctx, ActUnreserve, "", func(tx *Tx) error {
		_, err := tx.Unreserve(id)
		return err
	})
}

// Reservations implements driver.Driver.
func (d *Driver) Reservations(ctx context.Context, subnet string) ([]driver.Reservation, error) {
	if err := d.keepsNone(); err != nil {
		return nil, err
	}
	return describeCall(ctx, d, ActReserved, func(tx *Tx) (list []driver.Reservation, err error) {
		all, err := tx.Reservations(subnet)
		for _, r := range all {
			list = append(list, driver.Reservation{ID: r.ID, Subnet: r.Subnet, Range: r.Range, Note: r.Description})
		}
		return list, err
	})
}

func (d *Driver) keepsNone() error {
	if d.traits.Keeps {
		return nil
	}
	return &driver.Error{Kind: cloud.ErrForbidden, Detail: "no range of a subnet is kept for addresses by name here"}
}
