package cni

import (
	"context"
	"errors"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

func isAwaited(err error) bool {
	_, is := errors.AsType[*ipam.Awaited](err)
	return is
}

// awaitReserved waits until what is reserved for the pod can be had, or the time to wait has passed. None of the
// other pending ADDs wants that, so this one is not in their queue, and reads the cache each time that it changes.
// The agent is not told either: more addresses for any pod would not help. awaited is what the ADD found before.
func (s *search) awaitReserved(ctx context.Context, awaited error) (err error) {
	wait := s.request.Conf.WaitForAddress
	s.Log.Warn("waits for what is reserved for it", "key", s.request.Owner.Key.String(), "cause", awaited)
	began, deadline := time.Now(), time.NewTimer(wait)
	defer deadline.Stop()
	defer func() { s.recordWait(time.Since(began), err) }()
	wake := s.watch() // before the cache is read, so that no change is missed
	defer wake.close()
	for {
		s.freeEarlierSandboxes(ctx, awaited)
		if awaited = s.tryAssign(ctx, nil, false); !isAwaited(awaited) {
			return awaited
		}
		if wait == 0 {
			return awaited
		}
		select {
		case <-wake.changed:
		case <-wake.poll:
		case <-time.After(reclaimTime): // an earlier sandbox may be gone, which changes no file
		case <-deadline.C:
			return s.tryAssign(ctx, nil, false)
		case <-ctx.Done():
			return errors.Join(awaited, context.Cause(ctx))
		}
	}
}

// freeEarlierSandboxes frees what earlier sandboxes of the pod have if they are provably gone. Nothing else takes an
// address from one sandbox for another: two that run would have the same one.
func (s *search) freeEarlierSandboxes(ctx context.Context, awaited error) {
	a, _ := errors.AsType[*ipam.Awaited](awaited)
	me := s.request.Owner
	if a == nil || a.Other == nil || a.Other.Owner.Container == me.Container {
		return
	}
	pod := eni.Reservation{Namespace: me.Namespace, Pod: me.Pod, UID: me.UID}
	_, err := s.sweep(ctx, s.host, func(a eni.Address) (bool, error) {
		if a.Owner.Container == me.Container || !pod.IsFor(*a.Owner) {
			return false, nil
		}
		return ownerGone(s.host, a)
	})
	if err != nil {
		s.Log.Warn("can't look whether earlier sandboxes of the pod are gone", "error", err)
	}
}

// awaitedDetails says who reserves addresses.
const awaitedDetails = "the operator chooses the address and the agent of this node writes it into the node cache: `enipoolctl pool show` tells what is reserved here"
