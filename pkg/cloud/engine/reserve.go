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

// reserving is a range that a call reserves.
type reserving struct {
	subnet string
	in     netip.Prefix
}

// reservationNote is the note on this cluster's reservations, by which it recognises them.
func (r *Region) reservationNote() string { return "enipool/" + r.o.Cluster }

// isOurs tells whether this cluster has made the reservation. A cluster without a name has none: it
// could not tell its own from those of another cluster without a name.
func (r *Region) isOurs(is driver.Reservation) bool {
	return r.o.Cluster != "" && is.Note == r.reservationNote()
}

// Reserve implements cloud.Region. A range can be reserved only once, whoever does it. So after a
// lost answer or a refusal, the list of reservations tells whether the range is reserved.
func (r *Region) Reserve(ctx context.Context, subnet string, in netip.Prefix) (err error) {
	defer nameError(&err, "Reserve", subnet)
	if err := r.mayKeep(in); err != nil {
		return err
	}
	if r.o.Cluster == "" {
		return errorf(cloud.ErrForbidden, "a cluster without a name could not tell its ranges from others': set cloud.cluster")
	}
	if _, there, err := r.findReservation(ctx, subnet, in); err != nil || there {
		return err
	}
	w := driver.Reservation{Subnet: subnet, Range: in, Note: r.reservationNote()}
	w.ID, err = r.self.d.Reserve(ctx, w)
	if err == nil {
		r.noteReservation(w, false)
		return nil
	}
	return r.confirmReservation(ctx, subnet, in, true, r.orLost(reserving{subnet, in}, err))
}

// orLost makes a refusal ErrUnknown if the answer to an earlier request for the same range was lost
// within the consistency window: the earlier request may have reserved the range, and be why this
// one is refused, before lists show it.
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
			return errorf(cloud.ErrUnknown, "the answer to an earlier call was lost, and this one is refused: %s; ask again when it shows", detailOf(said))
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
	is, there, err := r.findReservation(ctx, subnet, in)
	if errors.Is(err, cloud.ErrTaken) {
		return nil // another range is reserved, and not this one
	}
	if err != nil || !there {
		return err
	}
	if !r.isOurs(is) {
		return errorf(cloud.ErrForbidden, "%s is reserved by others (%s): end that yourself", in, is.ID)
	}
	if err = r.self.d.Unreserve(ctx, is.ID); err == nil {
		r.noteReservation(is, true)
		return nil
	}
	return r.confirmReservation(ctx, subnet, in, false, err)
}

// Reserved implements cloud.Region.
func (r *Region) Reserved(ctx context.Context, subnet string) (list []cloud.Reservation, err error) {
	defer nameError(&err, "Reserved", subnet)
	all, err := r.listReservations(ctx, subnet)
	for _, is := range all {
		list = append(list, cloud.Reservation{ID: is.ID, Range: is.Range, Ours: r.isOurs(is), Blocks: is.Blocks})
	}
	return list, err
}

// mayKeep tells why a range can't be reserved, whatever the cloud has, or returns nil.
func (r *Region) mayKeep(in netip.Prefix) error {
	switch {
	case !r.t.Keeps:
		return errorf(cloud.ErrForbidden, "%s keeps no ranges of subnets for addresses by name", r.t.Name)
	case !in.IsValid() || in != in.Masked():
		return errorf(cloud.ErrForbidden, "%s is not a range: address bits are set behind its length", in)
	}
	return nil
}

// confirmReservation turns the error of a call into its outcome: nil if the range is as it should
// be, reserved or not. It goes by the list, because no refusal's code says what is reserved.
func (r *Region) confirmReservation(ctx context.Context, subnet string, in netip.Prefix, reserved bool, said error) error {
	if !errors.Is(said, cloud.ErrUnknown) && !errors.Is(said, cloud.ErrForbidden) && !errors.Is(said, cloud.ErrNotFound) {
		return said
	}
	for wait := r.t.Times.Poll; ; wait *= 2 {
		_, there, err := r.findReservation(ctx, subnet, in)
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

// findReservation finds the one of exactly this range. ErrTaken: another one overlaps it.
func (r *Region) findReservation(ctx context.Context, subnet string, in netip.Prefix) (is driver.Reservation, there bool, err error) {
	all, err := r.listReservations(ctx, subnet)
	if err != nil {
		return is, false, err
	}
	for _, is := range all {
		switch {
		case is.Range == in && !is.Blocks:
			return is, true, nil
		case is.Range.Overlaps(in):
			return is, false, errorf(cloud.ErrTaken, "%s overlaps %s, which is reserved already (%s)", in, is.Range, is.ID)
		}
	}
	return is, false, nil
}

// listReservations returns those of a subnet, sorted: as the cloud lists them, corrected by recent
// calls.
func (r *Region) listReservations(ctx context.Context, subnet string) ([]driver.Reservation, error) {
	if !r.t.Keeps {
		return nil, errorf(cloud.ErrForbidden, "%s keeps no ranges of subnets for addresses by name", r.t.Name)
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

// noteReservation notes what a call has done to a reservation.
func (r *Region) noteReservation(is driver.Reservation, ended bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deeds[is.ID] = reservationDeed{is, r.self.clock.Now(), ended}
}
