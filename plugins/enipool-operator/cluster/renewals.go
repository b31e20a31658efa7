package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// renewals notes when each renewal that was done had been sent: the lease lasts from then on at least, whatever clock
// others have. It logs why the lease can't be read or written when that changes: it is tried again every few seconds.
type renewals struct {
	resourcelock.Interface
	log     *slog.Logger
	renewed atomic.Pointer[time.Time]
	said    map[string]string // what failed last, of reading and of writing: where one works the other may fail each time
}

func (r *renewals) last() time.Time { return *r.renewed.Load() }

// Get reads the lease.
func (r *renewals) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := r.Interface.Get(ctx)
	if apierrors.IsNotFound(err) { // the first operator of a cluster makes it
		r.logFailure(ctx, "read", nil)
	} else {
		r.logFailure(ctx, "read", err)
	}
	return record, raw, err
}

// Create takes a lease that nobody had.
func (r *renewals) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	sent := time.Now()
	return r.noteWrite(ctx, sent, r.Interface.Create(ctx, record))
}

// Update takes or renews it.
func (r *renewals) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	sent := time.Now()
	return r.noteWrite(ctx, sent, r.Interface.Update(ctx, record))
}

func (r *renewals) noteWrite(ctx context.Context, sent time.Time, err error) error {
	if err == nil {
		r.renewed.Store(&sent)
	}
	if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) { // another operator was faster
		r.logFailure(ctx, "written", err)
	}
	return err
}

// logFailure logs an error that differs from the one before, and that it is over. The end of the program's own time is no error.
func (r *renewals) logFailure(ctx context.Context, done string, err error) {
	switch {
	case ctx.Err() != nil, err != nil && strings.Contains(err.Error(), "would exceed context deadline"): // the client does not begin what has no time left
	case err == nil && r.said[done] != "":
		delete(r.said, done)
		r.log.Info("the lease can be " + done + " again")
	case err != nil && err.Error() != r.said[done]:
		if r.said == nil {
			r.said = map[string]string{}
		}
		r.said[done] = err.Error()
		r.log.Error("the lease can't be "+done+", without which this operator can't lead; it is tried again", "lease", r.Describe(), "error", explainLease(err))
	}
}

// explainLease says what people can do about an error of the lease.
func explainLease(err error) error {
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w; the Role enipool-operator in the namespace of the lease allows it (conf/kubernetes/operator)", err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%w; the API server does not take the service account's token, or the credentials of the key kubeconfig", err)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w; the key namespace of operator.yaml names the namespace of the lease", err)
	case apierrors.ReasonForError(err) == "": // nobody has answered
		return fmt.Errorf("%w; the API server does not answer: is it up, and is there a way to it from this node?", err)
	}
	return err
}
