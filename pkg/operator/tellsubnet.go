package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/placement"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// toldSubnet is what was written of a subnet's object.
type toldSubnet struct {
	spec    *crd.SubnetSpec // that it had last, nil if there was none in this term
	deleted types.UID       // of the object that somebody has deleted
	writing bool
	barred  time.Duration     // until when nothing is written: the last write was a moment ago, or was refused
	pause   time.Duration     // for how long that was, if it was refused
	refused string            // why the last write was refused, "" if it was not
	sent    *crd.SubnetStatus // that was written last, and what the API server has kept of it
	stored  *crd.SubnetStatus
}

// forgetMoves drops what a describe that began then has in its numbers.
func (s *subnet) forgetMoves(began time.Duration) {
	s.sums = nil
	s.moves = slices.DeleteFunc(s.moves, func(m *move) bool { return m.ended > 0 && m.ended < began })
}

// wasTold tells whether a next status was sent already, and the object is as the API server has kept it, which may be less.
func (s *subnet) wasTold(next crd.SubnetStatus) bool {
	return s.sent != nil && sameSubnet(*s.sent, next) && sameSubnet(*s.stored, s.object.Status)
}

// dropSubnet takes in that somebody has deleted a subnet's object. It is made again at once, or no new ENI would lie there until then.
func (t *term) dropSubnet(s *subnet, object *crd.Subnet) {
	s.object, s.older, s.deleted = nil, nil, object.UID
	s.sent, s.stored, s.barred = nil, nil, 0
	if s.spec == nil {
		s.spec = &object.Spec
	}
	t.dirtyAll()
	if s.isDescribed() {
		t.o.Log.Warn("a Subnet object was deleted; it is made again as it was, since the cloud shows the subnet", "subnet", object.Name)
		t.tellPeople(Notice{Kind: "Subnet", Name: object.Name, UID: string(object.UID), Warning: true, Reason: "MadeAgain",
			Message: "the object was deleted, and the cloud shows the subnet: it is made again as it was, without ranges to reserve. With use: Disabled no new ENI lies in it"})
	}
	t.tellSubnet(s)
}

// makesSubnets tells whether objects of subnets are being made that the cloud shows.
func (t *term) makesSubnets() bool {
	for _, s := range t.subnets {
		if s.object == nil && s.isDescribed() && s.refused == "" {
			return true
		}
	}
	return false
}

// tellSubnet writes what is new of a subnet beside the loop, or makes its object.
func (t *term) tellSubnet(s *subnet) {
	if s.writing || s.object == nil && !s.isDescribed() || s.barred > t.now().Mono {
		return
	}
	if s.object == nil {
		s.kept.unnamed = true // an object that was deleted may have named ranges
		made := &crd.Subnet{ObjectMeta: metav1.ObjectMeta{Name: s.place.ID}, Spec: crd.SubnetSpec{Use: string(placement.Shared)}}
		if s.spec != nil {
			made.Spec = *s.spec
			made.Spec.Reserve = nil // who deletes the object names no range any more
		}
		made = made.DeepCopy()
		t.writeSubnet(s, made, func(ctx context.Context) (*crd.Subnet, error) { return t.o.Objects.CreateSubnet(ctx, made) })
		return
	}
	counts := t.tally[s.object.Name]
	next, changed := s.tell(s.forPlacement(t.tally.targetsIn(s.object.Name)), counts, t.now())
	if !changed || s.wasTold(next.Status) {
		return
	}
	before := s.object.Status
	t.writeSubnet(s, next, func(ctx context.Context) (*crd.Subnet, error) {
		written, err := t.o.Objects.WriteSubnet(ctx, next)
		if err == nil {
			t.tellPeople(append(subnetNotices(written, before), keptNotices(written, before)...)...)
		}
		return written, err
	})
}

// tellSubnets writes what had to wait, and returns how long until there is more of that.
func (t *term) tellSubnets(now time.Duration) (wait time.Duration) {
	wait = patience
	for _, s := range t.subnets {
		switch {
		case s.barred == 0:
		case s.barred > now:
			wait = min(wait, s.barred-now)
		default:
			s.barred = 0
			t.tellSubnet(s)
		}
	}
	return wait
}

// writeSubnet makes a write of a subnet's object beside the loop.
func (t *term) writeSubnet(s *subnet, next *crd.Subnet, write func(context.Context) (*crd.Subnet, error)) {
	s.writing = true
	t.under.Go(func() {
		ctx, cancel := context.WithTimeout(t.ctx, writeLimit)
		defer cancel()
		written, err := write(ctx)
		t.post(func(t *term) { t.wroteSubnet(s, next, written, err) })
	})
}

// wroteSubnet takes in how that has ended.
func (t *term) wroteSubnet(s *subnet, next, written *crd.Subnet, err error) {
	s.writing = false
	now := t.now().Mono
	switch {
	case errors.Is(err, ErrGone):
		if s.object != nil && s.object.UID == next.UID {
			t.dropSubnet(s, s.object)
			return
		}
		t.tellSubnet(s) // the watch has told that it is gone, or what is there now
		return
	case err != nil:
		s.pause = min(max(2*s.pause, apart), longestPause)
		s.barred = now + s.pause // or the watch tells of another version before
		t.subnetRefused(s, next, err)
		return
	}
	s.barred, s.pause = now+apart, 0
	if s.refused != "" {
		s.refused = ""
		t.dirtyAll() // nodes that have that as a cause
	}
	if next.ResourceVersion != "" {
		s.sent, s.stored = &next.Status, &written.Status
		if !sameSubnet(next.Status, written.Status) {
			t.tellKinds(Notice{Kind: "Subnet", Name: written.Name, UID: string(written.UID)}, lackingFields(next.Status, written.Status))
		}
	}
	t.takeSubnet(written, false)
}

// subnetRefused takes in why an object was neither made nor written. People are told once of each reason.
func (t *term) subnetRefused(s *subnet, next *crd.Subnet, err error) {
	if errors.Is(err, ErrConflict) {
		t.o.Meter.Conflicted()
		if s.older != nil {
			s.object, s.spec, s.older = s.older, &s.older.Spec, nil // the store was put back: what the watch told last is what there is
			t.dirtyAll()
		}
		return
	}
	if s.refused == err.Error() {
		return
	}
	s.refused = err.Error()
	t.dirtyAll()
	done := "written"
	if next.ResourceVersion == "" {
		done = "made: no new ENI lies in the subnet until it is there"
	}
	t.o.Log.Warn("a Subnet object can't be "+done+"; it is tried again", "subnet", next.Name, "error", err)
	t.tellPeople(Notice{Kind: "Subnet", Name: next.Name, UID: string(next.UID), Warning: true, Reason: "Refused", Message: fmt.Sprintf("it can't be %s: %v", done, err)})
}
