package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/enipool/enipool/pkg/operator"
)

// EpochKey is the annotation of the lease that has the latest leader's number. leaseTransitions would not do: it
// begins at 0 again when a lease is deleted.
const EpochKey = "enipool.io/epoch"

// nameLabel is the label of the lease, which the operators' pods have too: people list them together by it.
const nameLabel = "app.kubernetes.io/name"

// How often the holder renews, and how long it tries, of a lease of 15 s.
const (
	renewDeadline = 10 * time.Second
	// Who waits for the lease tries in up to 2.2 times that: with the usual 2 s a starving node would wait for 4 s more than the lease and settle.
	retryPeriod = time.Second
	// requestLimit leaves time for another try: after an unanswered renewal the leader may send nothing for a while, and still leads.
	requestLimit = 3 * time.Second
)

// LeaseConfig returns how the lease is written: by requests that end soon, at a rate and on a connection of its own, so that the writes of
// thousands of nodes do not hold up a renewal.
func LeaseConfig(c *rest.Config) *rest.Config {
	own := rest.CopyConfig(c)
	own.Timeout, own.QPS, own.Burst = requestLimit, 20, 40
	// What differs in its dialer has another connection: all others share one.
	own.Dial = (&net.Dialer{Timeout: requestLimit, KeepAlive: 30 * time.Second}).DialContext
	return own
}

// Election decides which of several operators leads.
type Election struct {
	Client    coordinationclient.LeasesGetter
	Namespace string
	Name      string        // of the lease
	Identity  string        // of this operator, no other process has the same
	Duration  time.Duration // of the lease, in whole seconds, at least 11 s
	Log       *slog.Logger
	Recorder  resourcelock.EventRecorder // tells on the lease who leads; nil: nobody is told
	// All lists the operators' leases of all namespaces, of which one may be held. nil: there is one namespace.
	All func(context.Context) ([]coordinationv1.Lease, error)
}

// Run waits for the lease and leads with it, again and again until ctx ends. lead ends with its context, at once with
// Lead.Held, and the lease is not given to another before lead has returned. An error of lead gives the lease to another for once.
func (e Election) Run(ctx context.Context, lead func(context.Context, operator.Lead) error) error {
	others, failures := &rivals{Election: e}, &failures{}
	for ctx.Err() == nil {
		if others.awaitNone(ctx); ctx.Err() != nil {
			break
		}
		err := e.leadOnce(ctx, func(ctx context.Context, l operator.Lead) error {
			if err := others.refuseTerm(ctx); err != nil {
				return err
			}
			return lead(ctx, l)
		})
		if err != nil {
			e.logFailure(err, failures.add(err, time.Now()))
			waitFor(ctx, renewDeadline+rand.N(renewDeadline/2)) // two that have found each other do so once
		}
	}
	return nil
}

// leadOnce is one term.
func (e Election) leadOnce(ctx context.Context, lead func(context.Context, operator.Lead) error) error {
	// The lease is held for longer than ctx: until the term's calls have ended.
	held, drop := context.WithCancel(context.WithoutCancel(ctx))
	defer drop()
	lock := &renewals{Interface: e.makeLock(), log: e.Log}
	var leads atomic.Bool
	ended := make(chan error, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name: e.Name, Lock: lock, LeaseDuration: e.Duration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) {
				defer drop()
				leads.Store(true)
				may, cancel := context.WithCancel(leading)
				defer cancel()
				defer context.AfterFunc(ctx, cancel)()
				ended <- e.leadWith(may, leading, lock, lead)
			},
			OnStoppedLeading: func() {},
			OnNewLeader: func(who string) {
				if who != e.Identity {
					e.Log.Info("another operator leads", "leader", who)
				}
			},
		},
	})
	if err != nil {
		return fmt.Errorf("prepare the election: %w", err)
	}
	defer context.AfterFunc(ctx, func() {
		if !leads.Load() {
			drop()
		}
	})()
	elector.Run(klog.NewContext(held, logr.Discard())) // lock logs what fails, once and with what to do
	if lock.renewed.Load() == nil {
		return nil // it never had the lease
	}
	err = <-ended
	if gone := e.resign(context.WithoutCancel(ctx)); gone != nil {
		e.Log.Warn("the lease can't be handed over; another operator gets it when it runs out", "error", gone)
	}
	switch {
	case ctx.Err() != nil:
		return nil
	case errors.Is(err, context.Canceled): // not by this process
		return fmt.Errorf("the lease was not renewed for %s, or another operator has it", renewDeadline)
	}
	return err
}

// makeLock returns the lease as the election writes it, labelled as the operators' pods are.
func (e Election) makeLock() *resourcelock.LeaseLock {
	return &resourcelock.LeaseLock{Client: e.Client, LeaseMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name}, Labels: map[string]string{nameLabel: e.Name},
		LockConfig: resourcelock.ResourceLockConfig{Identity: e.Identity, EventRecorder: e.Recorder}}
}

// leadWith leads with the lease as it is now, for as long as ctx says; the lease is held for as long as held does.
func (e Election) leadWith(ctx, held context.Context, lock *renewals, lead func(context.Context, operator.Lead) error) error {
	lease, err := e.own(ctx)
	if err != nil {
		return err
	}
	epoch, _ := strconv.ParseInt(lease.Annotations[EpochKey], 10, 64) // none, or what no operator has written: the statuses tell too
	return lead(ctx, operator.Lead{Epoch: epoch, Acquired: time.Now(), Renewed: lock.last, Number: e.number, Held: held})
}

// own returns the lease, if this operator has it.
func (e Election) own(ctx context.Context) (*coordinationv1.Lease, error) {
	lease, err := e.Client.Leases(e.Namespace).Get(ctx, e.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the lease: %w", err)
	}
	if holder := lease.Spec.HolderIdentity; holder == nil || *holder != e.Identity {
		return nil, errors.New("read the lease: another operator has it")
	}
	return lease, nil
}

// number writes a term's epoch on the lease. Between reading and writing the lease may be renewed: it is read again then.
func (e Election) number(ctx context.Context, epoch int64) error {
	for {
		lease, err := e.own(ctx)
		if err != nil {
			return err
		}
		if lease.Annotations == nil {
			lease.Annotations = map[string]string{}
		}
		lease.Annotations[EpochKey] = strconv.FormatInt(epoch, 10)
		if _, err = e.Client.Leases(e.Namespace).Update(ctx, lease, metav1.UpdateOptions{}); apierrors.IsConflict(err) {
			continue
		}
		if err == nil { // one that can't read the cluster's objects gets the lease again and again, and never gets here
			e.Log.Info("this operator leads", "identity", e.Identity, "epoch", epoch)
		}
		return err
	}
}

// resign lets another operator lead at once. Between reading and writing somebody may annotate the lease: it is read again then.
func (e Election) resign(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, renewDeadline)
	defer cancel()
	for {
		lease, err := e.own(ctx)
		if err != nil {
			return err
		}
		nobody, second := "", int32(1)
		now := metav1.NowMicro()
		lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime, lease.Spec.AcquireTime = &nobody, &second, &now, &now
		if _, err = e.Client.Leases(e.Namespace).Update(ctx, lease, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
			return err
		}
	}
}
