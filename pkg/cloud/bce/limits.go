package bce

import (
	"cmp"
	"context"
	"errors"

	"github.com/baidubce/bce-sdk-go/bce"
	sdk "github.com/baidubce/bce-sdk-go/services/eni"
	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// bareAddresses is what the own ENI of bare metal may carry.
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

// enisByCPU is how many ENIs besides its own a virtual machine may have, where
// neither its quota nor its description tells.
func enisByCPU(cpus int) int { return min(cpus, 8) }

// Limits returns what the instance may carry: ENIs by its quota, and where the API
// does not tell, by its processors; addresses by its memory.
func (c *Client) Limits(ctx context.Context) (l eni.Limits, err error) {
	defer plain(&err)
	const op = "Limits"
	m, err := c.machine(ctx, op)
	if err != nil {
		return eni.Limits{}, err
	}
	quota := m.quota
	if m.kind != BBC && c.o.Limits.ENIs == 0 {
		if quota, err = c.quota(ctx, op, m); err != nil {
			return eni.Limits{}, err
		}
	}
	if l = c.limits(m, quota); l.V4 == 0 {
		return eni.Limits{}, c.badAnswer(call{op: op, object: m.instance}, "the instance has no memory; set the limits")
	}
	return l, nil
}

// limits are those of a machine with so many ENIs besides its own. IPv6 is for ENIs
// of ours alone: of the own one's addresses nobody can tell which is the primary.
func (c *Client) limits(m machine, quota int) eni.Limits {
	l := eni.Limits{ENIs: quota + 1, V4: addressesByMemory(m.memory)}
	if m.kind == BBC || m.kind == EBC && quota == 0 {
		l = eni.Limits{ENIs: 1, V4: bareAddresses}
	}
	l.ENIs = cmp.Or(c.o.Limits.ENIs, min(l.ENIs, eni.MaxIndex))
	l.V4 = cmp.Or(c.o.Limits.V4, l.V4)
	if c.o.IPv6 && l.ENIs > 1 {
		l.V6 = cmp.Or(c.o.Limits.V6, l.V4)
	}
	return l
}

// quota asks how many ENIs the instance may have besides its own. Who may not ask,
// or asks of a kind that has none, gets what the instance's description says.
func (c *Client) quota(ctx context.Context, op string, m machine) (int, error) {
	q, err := c.quotaOf(ctx, call{op: op, object: m.instance}, sdk.EniQuoteArgs{InstanceId: m.instance})
	switch {
	case err == nil && (q.TotalQuantity > 0 || m.kind == EBC):
		return q.TotalQuantity, nil
	case err != nil && !errors.Is(err, cloud.ErrForbidden) && !errors.Is(err, cloud.ErrNotFound):
		return 0, err
	case m.quota > 0 || m.kind == EBC:
		return m.quota, nil
	}
	return enisByCPU(m.cpus), nil
}

func (c *Client) quotaOf(ctx context.Context, k call, of sdk.EniQuoteArgs) (sdk.EniQuoteInfo, error) {
	var a *sdk.EniQuoteInfo
	if err := c.do(ctx, k, func(b *bce.BceClient) (err error) {
		a, err = (&sdk.Client{BceClient: b}).GetEniQuota(&of)
		return err
	}); err != nil {
		return sdk.EniQuoteInfo{}, err
	}
	if a.TotalQuantity < 0 || a.AvailableQuantity < 0 {
		return sdk.EniQuoteInfo{}, c.badAnswer(k, "a quota is below 0")
	}
	return *a, nil
}
