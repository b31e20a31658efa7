// Package convert makes of a NodeNetwork, as the API server has it, the copy that an agent goes by, and
// of what an agent asks for the spec that is written.
package convert

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/order"
)

// Object returns the copy of a NodeNetwork. What it can't read of the status is an error: a part of it
// would look like addresses that the cloud has taken.
func Object(n *crd.NodeNetwork) (order.Object, error) {
	readable := *n
	switch readable.Status.Mode {
	case "", crd.Self, crd.Operator, crd.Joining, crd.Leaving:
	default: // of a later release: nobody calls the cloud
		readable.Status.Mode = crd.Joining
	}
	view, err := crd.View(&readable)
	asks, wrong := readAsks(n.Spec)
	if err = errors.Join(err, wrong); err != nil {
		return order.Object{}, err
	}
	return order.Object{Version: n.ResourceVersion, UID: string(n.UID), Generation: n.Generation, View: view, Asks: asks, Tells: readTells(n.Status)}, nil
}

func readAsks(s crd.NodeNetworkSpec) (order.Asks, error) {
	asks := order.Asks{WaitingSince: timeOf(s.WaitingSince), IdleSlots: int(s.IdleSlots), SeenReclaim: int(s.SeenReclaim)}
	for id, n := range s.IdleIn {
		if asks.IdleIn == nil {
			asks.IdleIn = map[string]int{}
		}
		asks.IdleIn[id] = int(n)
	}
	h := s.Handover
	if h == nil {
		return asks, nil
	}
	asks.Handover = &order.Handover{Tokens: slices.Clone(h.Tokens), ReleaseInterfaces: slices.Clone(h.ReleaseInterfaces)}
	for _, text := range h.Release {
		p, err := parsePrefix(text)
		if err != nil {
			return asks, fmt.Errorf("handover: %w", err)
		}
		asks.Handover.Release = append(asks.Handover.Release, p)
	}
	return asks, nil
}

func readTells(s crd.NodeNetworkStatus) order.Tells {
	tells := order.Tells{Observed: s.ObservedGeneration, Reclaim: int(s.Reclaim), ReclaimIn: slices.Clone(s.ReclaimIn)}
	for _, c := range s.Causes {
		tells.Causes = append(tells.Causes, order.Cause{Reason: order.Reason(c.Reason), Message: c.Message, Until: timeOf(c.Until)})
	}
	if s.Handover != nil {
		tells.Tokens = slices.Clone(s.Handover.Tokens)
	}
	return tells
}

// ToSpec returns what an agent asks for as the object has it. What the agent does not know of stays as it was.
func ToSpec(spec order.Spec, asks order.Asks, was crd.NodeNetworkSpec) crd.NodeNetworkSpec {
	next := was
	next.Write(spec)
	next.WaitingSince, next.Handover = nil, nil
	next.IdleSlots, next.SeenReclaim, next.IdleIn = int32(asks.IdleSlots), int32(asks.SeenReclaim), nil
	for id, n := range asks.IdleIn {
		if next.IdleIn == nil {
			next.IdleIn = map[string]int32{}
		}
		next.IdleIn[id] = int32(n)
	}
	if !asks.WaitingSince.IsZero() {
		next.WaitingSince = &metav1.Time{Time: asks.WaitingSince}
	}
	if h := asks.Handover; h != nil {
		next.Handover = &crd.Handover{Tokens: slices.Clone(h.Tokens), ReleaseInterfaces: slices.Clone(h.ReleaseInterfaces)}
		for _, p := range h.Release {
			next.Handover.Release = append(next.Handover.Release, crd.FormatPrefix(p))
		}
	}
	return next
}

// parsePrefix reads an address, which is a host prefix, or a delegated prefix.
func parsePrefix(text string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	return netip.ParsePrefix(text)
}

// timeOf returns the time, zero for none.
func timeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}
