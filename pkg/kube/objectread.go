package kube

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/order"
)

// First returns the first copy that was read, or a later one, and false until then. It is asked for and not watched: nodes whose
// agents call the cloud themselves have no more to do with it.
func (o *Object) First() (order.Object, bool) {
	o.first.Do(func() { close(o.asked) })
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.newest, o.read
}

// ReadAgain reads the first copy once more, beside the caller. One that is watched is the newest anyway.
func (o *Object) ReadAgain() { signalChange(o.again) }

// Wrong returns why the object can't be read now, nil if it can.
func (o *Object) Wrong() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.wrong
}

// run reads until ctx ends, once somebody asks, and watches when somebody wants the newest copy.
func (o *Object) run(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-o.asked:
	case <-o.wanted:
	}
	for backoff := retry; ctx.Err() == nil; {
		version, err := o.refresh(ctx)
		switch {
		case o.isEnough(ctx, err):
			select {
			case <-ctx.Done():
				return
			case <-o.wanted:
			case <-o.again:
			}
			continue // what was read is old by now
		case err != nil:
			if o.isKindless(ctx, err) {
				err = withoutKinds(err)
			}
			o.noteFailure(ctx, err)
		default:
			o.noteFailure(ctx, nil)
			began := time.Now()
			if err := o.follow(ctx, version); err != nil { // the read that comes next tells whether it matters
				o.log.Debug("the watch of the node's NodeNetwork has ended", "error", err)
			}
			if time.Since(began) > patience { // it worked for a while
				backoff = retry
			}
		}
		if !waitFor(ctx, backoff.Step()) {
			return
		}
	}
}

// isEnough tells whether a read that ended with err tells all that was asked for: the first copy, or that there can be none.
func (o *Object) isEnough(ctx context.Context, err error) bool {
	select {
	case <-o.wanted:
		return false
	default:
	}
	if err != nil {
		if !o.isKindless(ctx, err) {
			return false
		}
		o.forget("", false)
	}
	o.noteFailure(ctx, nil)
	return true
}

// isKindless tells whether the object can't be read since the cluster has no NodeNetworks at all, and so no operator. To whom the right to
// read them is not given the API server does not say that; but which kinds it has it tells everybody.
func (o *Object) isKindless(ctx context.Context, err error) bool {
	switch {
	case apierrors.IsNotFound(err):
		return true
	case !apierrors.IsForbidden(err):
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return apierrors.IsNotFound(o.rest.Get().AbsPath("apis", crd.GroupVersion.Group, crd.GroupVersion.Version).Do(ctx).Error())
}

// withoutKinds says what to do about an error that comes of their absence.
func withoutKinds(err error) error {
	return fmt.Errorf("%w; install the kinds: kubectl apply --server-side --kustomize conf/kubernetes/crds", err)
}

// noteFailure takes in whether the object can be read. What keeps it from that is logged once.
func (o *Object) noteFailure(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return // it ends
	}
	o.mu.Lock()
	before := o.wrong
	o.wrong = err
	o.mu.Unlock()
	switch {
	case err != nil && (before == nil || withoutNumbers(before) != withoutNumbers(err)):
		o.log.Warn("the node's NodeNetwork can't be read; it is tried again", "error", err)
	case err == nil && before != nil:
		o.log.Info("the node's NodeNetwork can be read again")
	default:
		return
	}
	signalChange(o.changed)
}

// withoutNumbers is an error's text without ports and whatever else each try has of its own.
func withoutNumbers(err error) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, err.Error())
}
