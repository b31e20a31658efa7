package sim

import (
	"cmp"
	"context"
	"slices"

	"github.com/enipool/enipool/pkg/cloud/driver"
)

// Page implements driver.Driver. Pages are in the order of IDs, each begins after the last
// ENI of the one before.
func (d *Driver) Page(ctx context.Context, s driver.Scan) (driver.Page, error) {
	return describeCall(ctx, d, ActDescribe, func(tx *Tx) (page driver.Page, err error) {
		for _, i := range tx.Interfaces() {
			out := d.interfaceOf(tx, i, markOf(i.Tags))
			if i.ID > s.Next && d.isSelected(s, out) {
				page.Interfaces = append(page.Interfaces, out)
			}
		}
		slices.SortFunc(page.Interfaces, func(a, b driver.Interface) int { return cmp.Compare(a.ID, b.ID) })
		if most := d.traits.PageSize; len(page.Interfaces) > most {
			page.Interfaces = page.Interfaces[:most]
			page.Next = page.Interfaces[most-1].ID
		}
		return page, nil
	})
}

// isSelected tells whether a scan selects an ENI.
func (d *Driver) isSelected(s driver.Scan, i driver.Interface) bool {
	switch {
	case i.Primary && d.traits.HidesPrimary:
		return false
	case len(s.Attached) > 0:
		return slices.Contains(s.Attached, i.Instance)
	case len(s.Made) > 0:
		return i.Mark.Token != "" && slices.Contains(s.Made, i.Mark.Instance)
	}
	return i.VPC == s.VPC
}
