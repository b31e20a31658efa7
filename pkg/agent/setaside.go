package agent

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// setAside reserves an address for each pod without a topology of the gated namespaces. Pods there get nothing that is not reserved for them, since the runtime
// does not say which are of a topology; the API server does, from the moment at which a pod is bound. As long as it has told nothing, nothing changes: pods
// wait, and what is set aside stays.
func (a *Agent) setAside(ctx context.Context, cached *ipam.State, now time.Duration) (*ipam.State, error) {
	if a.Pods == nil || len(cached.Settings.Gated) == 0 && !slices.ContainsFunc(cached.Addresses, eni.Address.IsSetAside) {
		return cached, nil
	}
	pods, synced := a.Pods()
	if !synced {
		return cached, nil
	}
	pods = a.withoutElsewhere(pods, now)
	lack := a.known.lacking(pods, cached)
	if set, unset := cached.Clone().SetAside(lack, now); len(set)+len(unset) == 0 {
		return cached, nil // nearly always
	}
	var set, unset []netip.Addr
	err := a.Cache.Update(ctx, func(s *ipam.State) error {
		// An ADD may have taken what was set aside for its pod by now.
		set, unset = s.SetAside(a.known.lacking(pods, s), now)
		return nil
	})
	if err != nil {
		return cached, fmt.Errorf("reserve addresses in gated namespaces: %w", err)
	}
	a.logAddresses("reserve", set, "pods without a topology are to have them, in namespaces in which pods get only what is reserved")
	a.logAddresses("free", unset, "the pods that were to have them are gone")
	return a.read(ctx)
}

// lacking returns those of the pods that are in gated namespaces and have no address.
func (s podSet) lacking(pods []eni.Pod, cached *ipam.State) (list []eni.Pod) {
	s.clear()
	for i := range cached.Addresses {
		if line := &cached.Addresses[i]; line.State == eni.Used {
			s.add(line.Owner)
		}
	}
	for _, p := range pods {
		if cached.Settings.IsGated(p.Namespace) && p.UID != "" && !s.has(p) {
			list = append(list, p)
		}
	}
	return list
}
