// Package fakecloud has what tests over the wire endpoints in the folders beside it share.
package fakecloud

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/sim"
)

// Serves fails the test unless a packet to each of the ENI's addresses reaches the instance
// now.
func Serves(t *testing.T, a *sim.Account, instance string, ready cloud.Interface) {
	t.Helper()
	a.View(0, func(tx *sim.Tx) {
		at := slices.IndexFunc(tx.Interfaces(), func(i sim.Interface) bool { return i.ID == ready.ID })
		if at < 0 || len(ready.Addresses) == 0 {
			t.Fatalf("there is no ENI %q, or it has no address: %v", ready.ID, ready.Addresses)
		}
		i := tx.Interfaces()[at]
		if !i.At(instance) || i.Attachment.Status != sim.Attached {
			t.Errorf("ENI %s is at %+v", i.ID, i.Attachment)
		}
		for _, addr := range ready.Addresses {
			in := func(p netip.Prefix) bool { return p.Contains(addr) }
			if !slices.Contains(i.Addresses(), addr) && !slices.ContainsFunc(i.Prefixes, in) {
				t.Errorf("ENI %s has no address %s", i.ID, addr)
			}
		}
	})
}
