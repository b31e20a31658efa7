package aws

import (
	"context"
	"net/netip"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
)

// Reserve implements driver.Driver: a subnet CIDR reservation of the explicit type. It has no
// token; a second one of the same range overlaps the first.
func (d *Driver) Reserve(ctx context.Context, r driver.Reservation) (string, error) {
	out, err := changeEC2(ctx, d, &d.api.CreateSubnetCidrReservation, &ec2.CreateSubnetCidrReservationInput{SubnetId: aws.String(r.Subnet),
		Cidr: aws.String(r.Range.String()), ReservationType: types.SubnetCidrReservationTypeExplicit, Description: unlessZero(r.Note)})
	if err != nil {
		return "", err
	}
	if out.SubnetCidrReservation == nil || aws.ToString(out.SubnetCidrReservation.SubnetCidrReservationId) == "" {
		return "", errorf(cloud.ErrUnknown, "the answer has no reservation")
	}
	return d.safeText(out.SubnetCidrReservation.SubnetCidrReservationId), nil
}

// Unreserve implements driver.Driver.
func (d *Driver) Unreserve(ctx context.Context, id string) error {
	_, err := changeEC2(ctx, d, &d.api.DeleteSubnetCidrReservation, &ec2.DeleteSubnetCidrReservationInput{SubnetCidrReservationId: aws.String(id)})
	return err
}

// Reservations implements driver.Driver.
func (d *Driver) Reservations(ctx context.Context, subnet string) ([]driver.Reservation, error) {
	all, err := listAll(nil, func(_ []types.Filter, token *string) (list []types.SubnetCidrReservation, next *string, err error) {
		out, err := askEC2(ctx, d, &d.api.GetSubnetCidrReservations, &ec2.GetSubnetCidrReservationsInput{SubnetId: aws.String(subnet), MaxResults: aws.Int32(d.page), NextToken: token})
		if err != nil {
			return nil, nil, err
		}
		return append(out.SubnetIpv4CidrReservations, out.SubnetIpv6CidrReservations...), out.NextToken, nil
	})
	var list []driver.Reservation
	for _, in := range all {
		r := driver.Reservation{ID: d.safeText(in.SubnetCidrReservationId), Subnet: d.safeText(in.SubnetId), Note: d.safeText(in.Description),
			Blocks: in.ReservationType == types.SubnetCidrReservationTypePrefix}
		if r.Range, err = netip.ParsePrefix(aws.ToString(in.Cidr)); err != nil || r.ID == "" {
			return nil, errorf(cloud.ErrUnavailable, "bad answer: a reservation %s of subnet %s can't be", d.safeText(in.Cidr), subnet)
		}
		list = append(list, r)
	}
	return list, err
}
