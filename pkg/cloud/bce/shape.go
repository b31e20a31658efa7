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

// bareAddresses is what the primary ENI of bare metal may carry.
const bareAddresses = 40

// addressesByMemory is how many addresses of a family an ENI may carry, its primary
// included, on a virtual machine with so many GiB. The API does not tell before
// there is an ENI. Source: sources/cce-planned-cluster-mode.md, 1.1.
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

// enisByCPU is how many ENIs besides its primary a virtual machine may have, where
// neither its quota nor its description tells.
func enisByCPU(cpus int) int { return min(cpus, 8) }

// Shape implements driver.Driver: ENIs by the instance's quota, and where the API does
// not tell, by its processors; addresses by its memory. IPv6 is for ENIs of ours alone:
// of a primary one's addresses nobody can tell which is the primary.
//
// Addresses that a virtual machine's primary ENI gets work only when it has started
// again (cloud.baidu.com/doc/BCC/s/ulxedqb8e). Baidu's driver puts some there on bare
// metal without other ENIs alone: cce-network-v2/pkg/bce/vpceni/node_bbc.go, node_ebc.go.
func (d *Driver) Shape(ctx context.Context, s driver.Self) (driver.Shape, error) {
	m, err := d.machine(ctx, s)
	if err != nil {
		return driver.Shape{}, err
	}
	kind, quota := kindOf(s.Type), 0
	shape := driver.Shape{Type: s.Type, Guessed: true, NoPrimary: kind == BCC, PrimaryAlone: kind == EBC}
	if kind != BBC {
		if quota, shape.Builtin, err = d.quota(ctx, s.Instance, kind, m); err != nil {
			return driver.Shape{}, err
		}
	}
	if kind == BBC || kind == EBC && quota == 0 {
		shape.ENIs, shape.V4 = 1, bareAddresses
		return shape, nil
	}
	shape.ENIs, shape.V4 = min(quota+1, eni.MaxIndex), addressesByMemory(m.memory)
	shape.V6 = shape.V4
	return shape, nil
}

// errNoQuota is why a quota of a virtual machine is not believed: each of them may have an ENI.
var errNoQuota = errors.New("it says that the instance has a quota of 0 ENIs")

// quota asks how many ENIs an instance may have besides its primary. Who may not ask, or
// asks of a kind that has none, gets what the instance's description says, or else a
// rule of thumb, and why.
func (d *Driver) quota(ctx context.Context, instance string, kind Kind, m machine) (enis int, guessed, err error) {
	var q sdk.EniQuoteInfo
	r := request{method: "GET", path: eniPath + "/quota", query: map[string]string{"instanceId": instance}, into: &q}
	err = d.do(ctx, r)
	// A gateway may not know the path, and have a page for that: it has described the instance.
	untold := errors.Is(err, cloud.ErrForbidden) || errors.Is(err, cloud.ErrNotFound) || driver.Reason(err) == driver.Between
	switch {
	case err == nil && q.TotalQuantity < 0:
		return 0, nil, d.badAnswer(r, "a quota is below 0")
	case err == nil && (q.TotalQuantity > 0 || kind == EBC):
		return q.TotalQuantity, nil, nil
	case err != nil && !untold:
		return 0, nil, err
	case m.quota > 0 || kind == EBC:
		return m.quota, nil, nil
	}
	return enisByCPU(m.cpus), cmp.Or(err, errNoQuota), nil
}
