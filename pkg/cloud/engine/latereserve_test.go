package engine_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
)

// late is a driver whose reservations show late, and whose first answer to Reserve is lost.
type adviseTimeout struct {
	elsewhere
	lost, hides bool
}

func (d *adviseTimeout) Reserve(ctx context.Context, r driver.Reservation) (string, error) {
	id, err := d.elsewhere.Reserve(ctx, r)
	if err == nil && !d.lost {
		d.lost = true
		return "", &driver.Error{Kind: cloud.ErrUnknown, Detail: "the answer is lost"}
	}
	return id, err
}

func (d *adviseTimeout) Reservations(ctx context.Context, subnet string) ([]driver.Reservation, error) {
	list, err := d.elsewhere.Reservations(ctx, subnet)
	if d.hides {
		list = nil
	}
	return list, err
}

// The answer to Reserve is lost, and the list is late. To ask again is safe, and must not tell
// that the range can't be reserved.
func TestAskingAgainForAReservationThatShowsLateIsNotForbidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.LikeEC2(), sim.Options{}, engine.Options{})
		all, err := w.Driver("i-1", w.traits).Subnets(t.Context(), driver.SubnetFilter{IDs: []string{"a"}})
		must(t, err)
		in := netip.PrefixFrom(all[slices.IndexFunc(all, func(s driver.Subnet) bool { return s.ID == "a" })].V4.Addr(), 28)
		d := &adviseTimeout{elsewhere: elsewhere{w.Driver("", w.traits)}, hides: true}
		r := engine.NewRegion(d, engine.Options{Subnets: []string{"a"}, Cluster: "blue", Times: w.o.Times})
		if err := r.Reserve(t.Context(), "a", in); !errors.Is(err, cloud.ErrUnknown) {
			t.Fatal(err)
		}
		if err := r.Reserve(t.Context(), "a", in); !errors.Is(err, cloud.ErrUnknown) {
			t.Errorf("it is reserved, which does not show yet, and to ask again says %v", err)
		}
		time.Sleep(time.Minute)
		if err := r.Reserve(t.Context(), "a", in); !errors.Is(err, cloud.ErrForbidden) {
			t.Errorf("when it would have shown long ago to ask again says %v", err)
		}
		d.hides = false
		must(t, r.Reserve(t.Context(), "a", in))
		list, err := r.Reserved(t.Context(), "a")
		must(t, err)
		if len(list) != 1 || list[0].Range != in || !list[0].Ours {
			t.Errorf("%+v are reserved", list)
		}
	})
}
