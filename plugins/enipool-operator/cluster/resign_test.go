package cluster

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/enipool/enipool/pkg/operator"
)

// leases is a lease that somebody changes whenever it has been read, for some times.
type leases struct {
	coordinationclient.LeaseInterface
	mu        sync.Mutex
	lease     coordinationv1.Lease
	conflicts int
}

func (l *leases) Leases(string) coordinationclient.LeaseInterface { return l }

func (l *leases) Get(context.Context, string, metav1.GetOptions) (*coordinationv1.Lease, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lease.DeepCopy(), nil
}

func (l *leases) Update(_ context.Context, next *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conflicts > 0 {
		l.conflicts--
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, next.Name, context.DeadlineExceeded)
	}
	l.lease = *next.DeepCopy()
	return next, nil
}

// Somebody writes the lease while it is given on: another operator leads at once nevertheless.
func TestALeaseIsGivenOnThoughSomebodyWritesIt(t *testing.T) {
	me := "me"
	l := &leases{conflicts: 3}
	l.lease.Spec.HolderIdentity = &me
	e := Election{Client: l, Namespace: "default", Name: "enipool-operator", Identity: me, Duration: 15 * time.Second, Log: slog.New(slog.DiscardHandler)}
	if err := e.resign(t.Context()); err != nil || *l.lease.Spec.HolderIdentity != "" {
		t.Errorf("%v, held by %q", err, *l.lease.Spec.HolderIdentity)
	}
}

// The lease has requests that end in time for another try, a rate of its own, and a connection of its own.
func TestTheLeaseHasItsOwnConfiguration(t *testing.T) {
	all := &rest.Config{Host: "https://127.0.0.1:6443", QPS: 200, Burst: 400}
	own := LeaseConfig(all)
	if own.Timeout <= 0 || 2*own.Timeout+retryPeriod > renewDeadline {
		t.Errorf("a request may take %s, and all tries of a renewal %s", own.Timeout, renewDeadline)
	}
	if own.QPS == all.QPS || own.Dial == nil || own.Host != all.Host || all.Dial != nil || all.Timeout != 0 {
		t.Errorf("%+v of %+v", own, all)
	}
}

// lapsing is a lease that can't be written any more from some time on.
type lapsing struct {
	*leases
	down atomic.Bool
}

func (l *lapsing) Leases(string) coordinationclient.LeaseInterface { return l }

func (l *lapsing) Update(ctx context.Context, next *coordinationv1.Lease, o metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	if l.down.Load() {
		return nil, errors.New("no answer")
	}
	return l.leases.Update(ctx, next, o)
}

// A leader whose lease lapses says that, and not only that its term was cancelled.
func TestALeaderWhoseLeaseLapsesSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lapsing{leases: &leases{}}
		e := Election{Client: l, Namespace: "default", Name: "enipool-operator", Identity: "me", Duration: 15 * time.Second, Log: slog.New(slog.DiscardHandler)}
		err := e.leadOnce(t.Context(), func(ctx context.Context, _ operator.Lead) error {
			l.down.Store(true)
			<-ctx.Done()
			return context.Cause(ctx)
		})
		if err == nil || !contains(err, "the lease was not renewed for 10s") {
			t.Error(err)
		}
	})
}
