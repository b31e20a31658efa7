package engine

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
)

// reservationDeed is what a call has done to a reservation: answers may not show it yet.
type reservationDeed struct {
	driver.Reservation
	at    time.Time
	ended bool
}

// reserving is what a call reserves.
type reserving struct {
	subnet string
	in     netip.Prefix
}

// note is written on reservations: who may end them.
func (r *Region) note() string { return "enipool/" + r.o.Cluster }

// isOurs tells whether this cluster has made the reservation. One without a name has none: it could
// not tell its own from those of another without a name.
func (r *Region) isOurs(is driver.Reservation) bool { return r.o.Cluster != "" && is.Note == r.note() }

// Reserve implements cloud.Region. A range is reserved once, whoever does it: so after a lost
// answer, and after a refusal, the list of what is reserved tells whether it is as it should be.
func (r *Region) Reserve(ctx context.Context, subnet string, in netip.Prefix) (err error) {
	defer nameError(&err, "Reserve", subnet)
	if err := r.mayKeep(in); err != nil {
		return err
	}
	if r.o.Cluster == "" {
		return because(cloud.ErrForbidden, "a cluster without a name could not tell its ranges from others': set cloud.cluster")
	}
	if _, there, err := r.reservation(ctx, subnet, in); err != nil || there {
		return err
	}
	w := driver.Reservation{Subnet: subnet, Range: in, Note: r.note()}
	w.ID, err = r.self.d.Reserve(ctx, w)
	if err == nil {
		r.did(w, false)
		return nil
	}
	return r.settled(ctx, subnet, in, true, r.orLost(reserving{subnet, in}, err))
}

// orLost makes of a refusal, where the answer to the same wish was lost a short while ago, that
// nobody knows: the cloud may refuse a range for what that call has reserved and lists do not show
// yet. A refusal does not make it last longer: it ends when lists show everything.
func (r *Region) orLost(w reserving, said error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.self.clock.Now()
	maps.DeleteFunc(r.lost, func(_ reserving, at time.Time) bool { return now.Sub(at) > r.t.Times.Settle })
	switch {
	case errors.Is(said, cloud.ErrUnknown):
		r.lost[w] = now
	case errors.Is(said, cloud.ErrForbidden):
		if _, lost := r.lost[w]; lost {
			return because(cloud.ErrUnknown, "the answer to an earlier call was lost, and this one is refused: %s; ask again when it shows", detail(said))
		}
	}
	return said
}

// Unreserve implements cloud.Region.
func (r *Region) Unreserve(ctx context.Context, subnet string, in netip.Prefix) (err error) {
	defer nameError(&err, "Unreserve", subnet)
	if err := r.mayKeep(in); err != nil {
		return err
	}
	is, there, err := r.reservation(ctx, subnet, in)
	if errors.Is(err, cloud.ErrTaken) {
		return nil // another range is reserved, and not this one
	}
	if err != nil || !there {
		return err
	}
	if !r.isOurs(is) {
		return because(cloud.ErrForbidden, "%s is reserved by others (%s): end that yourself", in, is.ID)
	}
	if err = r.self.d.Unreserve(ctx, is.ID); err == nil {
		r.did(is, true)
		return nil
	}
	return r.settled(ctx, subnet, in, false, err)
}

// Reserved implements cloud.Region.
func (r *Region) Reserved(ctx context.Context, subnet string) (list []cloud.Reservation, err error) {
	defer nameError(&err, "Reserved", subnet)
	all, err := r.reservations(ctx, subnet)
	for _, is := range all {
		list = append(list, cloud.Reservation{Range: is.Range, Ours: r.isOurs(is), Blocks: is.Blocks})
	}
	return list, err
}

// mayKeep tells why a range can't be kept.
func (r *Region) mayKeep(in netip.Prefix) error {
	switch {
	case !r.t.Keeps:
		return because(cloud.ErrForbidden, "%s keeps no ranges of subnets for addresses by name", r.t.Name)
	case !in.IsValid() || in != in.Masked():
		return because(cloud.ErrForbidden, "%s is not a range: address bits are set behind its length", in)
	}
	return nil
}

// settled tells whether the range is reserved, or is not, after a call that ended with an error.
// Nothing else about a reservation that is refused can be told by its code.
func (r *Region) settled(ctx context.Context, subnet string, in netip.Prefix, reserved bool, said error) error {
	if !errors.Is(said, cloud.ErrUnknown) && !errors.Is(said, cloud.ErrForbidden) && !errors.Is(said, cloud.ErrNotFound) {
		return said
	}
	for wait := r.t.Times.Poll; ; wait *= 2 {
		_, there, err := r.reservation(ctx, subnet, in)
		switch {
		case errors.Is(err, cloud.ErrTaken) && reserved:
			return err
		case (err == nil || errors.Is(err, cloud.ErrTaken)) && there == reserved:
			return nil
		case !errors.Is(said, cloud.ErrUnknown) || wait >= r.t.Times.Slow || r.self.clock.Wait(ctx, wait) != nil:
			return said
		}
	}
}

// reservation finds that of exactly this range. ErrTaken: another one overlaps it.
func (r *Region) reservation(ctx context.Context, subnet string, in netip.Prefix) (is driver.Reservation, there bool, err error) {
	all, err := r.reservations(ctx, subnet)
	if err != nil {
		return is, false, err
	}
	for _, is := range all {
		switch {
		case is.Range == in && !is.Blocks:
			return is, true, nil
		case is.Range.Overlaps(in):
			return is, false, because(cloud.ErrTaken, "%s overlaps %s, which is reserved already (%s)", in, is.Range, is.ID)
		}
	}
	return is, false, nil
}

// reservations are those of a subnet, sorted: as the cloud shows them, and what calls have done
// so lately that it may not show it.
func (r *Region) reservations(ctx context.Context, subnet string) ([]driver.Reservation, error) {
	if !r.t.Keeps {
		return nil, because(cloud.ErrForbidden, "%s keeps no ranges of subnets for addresses by name", r.t.Name)
	}
	asked := r.self.clock.Now()
	list, err := r.self.d.Reservations(ctx, subnet)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	// A list that takes long may lack what a shorter one that was asked for later has shown.
	maps.DeleteFunc(r.deeds, func(_ string, d reservationDeed) bool { return r.self.clock.Now().Sub(d.at) > forgetAfter })
	for id, d := range r.deeds {
		is := func(l driver.Reservation) bool { return l.ID == id }
		switch {
		case asked.Sub(d.at) > r.t.Times.Settle: // the list shows it
		case d.ended:
			list = slices.DeleteFunc(list, is)
		case d.Subnet == subnet && !slices.ContainsFunc(list, is):
			list = append(list, d.Reservation)
		}
	}
	slices.SortFunc(list, func(a, b driver.Reservation) int {
		return cmp.Or(a.Range.Addr().Compare(b.Range.Addr()), cmp.Compare(a.Range.Bits(), b.Range.Bits()))
	})
	return list, nil
}

// did notes what a call has done to a reservation.
func (r *Region) did(is driver.Reservation, ended bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deeds[is.ID] = reservationDeed{is, r.self.clock.Now(), ended}
}
