package bce

import (
	"cmp"
	"context"
	"errors"

	sdk "github.com/baidubce/bce-sdk-go/services/eni"
	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/eni"
)

// bareAddresses is how many addresses the primary ENI of bare metal may carry.
const bareAddresses = 40

// addressesByMemory is how many addresses of a family an ENI may carry, its primary included,
// on a virtual machine with this memory in GiB. The API tells it only of an ENI that exists.
// Source: https://cloud.baidu.com/theme/T/3198724-23.
func addressesByMemory(memory int) int {
	switch {
	case memory <= 0:
		return 0
	case memory < 2:
		return 2
	case memory <= 8:
		return 8
	case memory <= 32:
		return 16
	case memory <= 64:
		return 30
	}
	return 40
}

// enisByCPU is how many ENIs besides its primary a virtual machine may have, if neither its
// quota nor its description tells.
func enisByCPU(cpus int) int { return min(cpus, 8) }

// Shape implements driver.Driver: ENIs by the instance's quota or, if the API does not tell it,
// by its processors; addresses by its memory. There is IPv6 only on ENIs that enipool made: of
// the IPv6 addresses of a primary ENI nobody can tell which is its primary one.
//
// Addresses added to the primary ENI of a virtual machine work only after a reboot
// (cloud.baidu.com/doc/BCC/s/ulxedqb8e). Baidu's driver adds some only on bare metal without
// other ENIs: cce-network-v2/pkg/bce/vpceni/node_bbc.go, node_ebc.go.
func (d *Driver) Shape(ctx context.Context, s driver.Self) (driver.Shape, error) {
	info, err := d.describeInstance(ctx, s)
	if err != nil {
		return driver.Shape{}, err
	}
	kind, quota := kindOf(s.Type), 0
	shape := driver.Shape{Type: s.Type, Guessed: true, NoPrimary: kind == BCC, PrimaryAlone: kind == EBC}
	if kind != BBC { // which has one ENI, and no quota to ask for
		if quota, shape.Builtin, err = d.eniQuota(ctx, s.Instance, kind, info); err != nil {
			return driver.Shape{}, err
		}
	}
	if kind == BBC || kind == EBC && quota == 0 {
		shape.ENIs, shape.V4 = 1, bareAddresses
		return shape, nil
	}
	shape.ENIs, shape.V4 = min(quota+1, eni.MaxIndex), addressesByMemory(info.memory)
	shape.V6 = shape.V4
	return shape, nil
}

// errNoQuota is why a quota of a virtual machine is not believed: any of them may have an ENI.
var errNoQuota = errors.New("it says that the instance has a quota of 0 ENIs")

// eniQuota returns how many ENIs an instance may have besides its primary. If the quota can't be
// asked for, or is 0 for a virtual machine, it is the number in the instance's description or,
// without one, a rule of thumb; guessed is then why.
func (d *Driver) eniQuota(ctx context.Context, instance string, kind Kind, info instanceInfo) (enis int, guessed, err error) {
	var q sdk.EniQuoteInfo
	r := request{method: "GET", path: eniPath + "/quota", query: map[string]string{"instanceId": instance}, into: &q}
	err = d.send(ctx, r)
	// A gateway that does not know this path answers with a page of its own (Between). The instance
	// was described through it a moment ago, so it is no failure of the connection.
	untold := errors.Is(err, cloud.ErrForbidden) || errors.Is(err, cloud.ErrNotFound) || driver.Reason(err) == cloud.Between
	switch {
	case err == nil && q.TotalQuantity < 0:
		return 0, nil, d.badAnswer(r, "a quota is below 0")
	case err == nil && (q.TotalQuantity > 0 || kind == EBC):
		return q.TotalQuantity, nil, nil
	case err != nil && !untold:
		return 0, nil, err
	case info.quota > 0 || kind == EBC:
		return info.quota, nil, nil
	}
	return enisByCPU(info.cpus), cmp.Or(err, errNoQuota), nil
}
