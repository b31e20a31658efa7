package engine_test

import (
	"errors"
	"net/netip"
	"testing"
	"testing/synctest"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
)

// The note on a range tells whose it is: a cluster without a name could not tell its own from another's.
func TestAClusterWithoutANameKeepsNoRangesAndEndsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{})
		r := w.region(engine.Options{})
		in := netip.MustParsePrefix("10.0.1.64/28")
		if err := r.Reserve(t.Context(), "a", in); !errors.Is(err, cloud.ErrForbidden) {
			t.Errorf("a range that nobody could end is reserved: %v", err)
		}
		must(t, w.Update(func(tx *sim.Tx) error {
			_, err := tx.Reserve(sim.Reservation{Subnet: "a", Range: in, Description: "enipool"})
			return err
		}))
		if err := r.Unreserve(t.Context(), "a", in); !errors.Is(err, cloud.ErrForbidden) {
			t.Errorf("what another cluster may keep is ended: %v", err)
		}
		list, err := r.Reserved(t.Context(), "a")
		must(t, err)
		if len(list) != 1 || list[0].Range != in || list[0].Ours {
			t.Errorf("%+v are reserved, want %s of others", list, in)
		}
	})
}
