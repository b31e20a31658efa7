package agent

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/pool"
	"github.com/enipool/enipool/pkg/scale"
)

// supply is where the node's addresses come from and where they go back to. The tick is the same
// whoever calls the cloud: see DESIGN.md.
type supply interface {
	// lookIfDue takes in what is known of the node's ENIs, or begins to ask.
	lookIfDue(ctx context.Context, now time.Duration)
	// follow brings the cache in step with that, and returns it as it is then.
	follow(ctx context.Context, cached *ipam.State, now time.Duration) (*ipam.State, error)
	// spare adds to an observation that others need what the node has, and how much it keeps.
	spare(obs *scale.Observation, sizing scale.Config, s pool.Snapshot, now time.Duration)
	// act does the steps of a plan, or begins them.
	act(ctx context.Context, steps []pool.Step, now time.Duration) []error
	// finish goes on with what is on its way back, and with what nobody waits for. earlier is what went wrong in the tick so far.
	finish(ctx context.Context, cached *ipam.State, now time.Duration, earlier error) error
	// noteWritten takes in what came of a write of the node's object.
	noteWritten(r result, now time.Duration)
	// goesBack tells whether the cloud may take an address of a new cache at any moment.
	goesBack(addr netip.Addr) bool
	// again is when there is more to do though nothing happens, 0 for never.
	again() time.Duration
}

// Object is the node's object in the cluster, by which an agent and the operator talk.
type Object interface {
	// Newest returns the newest copy that is known, of version "" if there is no object. It is
	// false until the first read, which is not from a cache, and no copy is older than one before it.
	Newest() (order.Object, bool)
	// First returns the first copy that was read, which it does not watch, and false until then. Later ones may be newer.
	First() (order.Object, bool)
	// ReadAgain reads the copy that First returns once more, beside the caller.
	ReadAgain()
	// Wrong returns why the object can't be read now, nil if it can.
	Wrong() error
	// Write writes the spec where the object still has the version of from, makes the object where that is "", and
	// returns the copy that it made. order.ErrConflict: the object has another version by now.
	Write(ctx context.Context, from order.Object, spec order.Spec, asks order.Asks) (order.Object, error)
}

// self is the supply of a node that calls the cloud itself.
type self struct {
	*Agent
	out *leave
}

func (s self) follow(ctx context.Context, cached *ipam.State, now time.Duration) (*ipam.State, error) {
	if !s.view.known {
		return cached, nil
	}
	s.noteTried()
	if s.restarted {
		s.assumeBegun(cached, now)
	}
	s.endMade(cached)
	cached, err := s.endReservations(ctx, cached, now)
	if err != nil {
		return cached, err
	}
	return s.learn(ctx, cached, now)
}

func (s self) spare(obs *scale.Observation, sizing scale.Config, snap pool.Snapshot, now time.Duration) {
	s.spareAddresses(obs, sizing, snap, now)
}

func (s self) act(ctx context.Context, steps []pool.Step, now time.Duration) (errs []error) {
	if s.holds() {
		return nil
	}
	for _, step := range steps {
		errs = append(errs, s.doStep(ctx, step, now))
	}
	s.retryCreates(ctx, now)
	return errs
}

func (s self) finish(ctx context.Context, cached *ipam.State, now time.Duration, earlier error) error {
	var err error
	if !s.holds() { // else what goes back is not the agent's to call for
		err = s.finishReleases(ctx, cached, now)
	}
	if s.unsaved && !errors.As(errors.Join(earlier, err), new(*memoryError)) { // else it is tried, and told, once more
		err = errors.Join(err, s.save())
	}
	return errors.Join(err, s.sweepLeaks(ctx, now))
}

func (s self) goesBack(addr netip.Addr) bool { return s.mem.Begun[addr] }
