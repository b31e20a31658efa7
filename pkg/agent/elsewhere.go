package agent

import (
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// elsewhereAfter is how long a pod must show another plugin's address before none is kept for it. After
// a reboot pods show the addresses of sandboxes that are gone until they get new ones, perhaps ours.
const elsewhereAfter = 10 * time.Minute

// withoutElsewhere returns the pods without those that another plugin serves with addresses which can't be
// the pool's. What they have of ours all the same, in a second network, their records and ADDs say.
func (a *Agent) withoutElsewhere(pods []eni.Pod, now time.Duration) []eni.Pod {
	if a.PodIPs == nil {
		return pods
	}
	shown := a.PodIPs()
	a.elsewhere = a.elsewhere.still(func(yield func(eni.Pod) bool) {
		for _, p := range pods {
			if a.isOthers(shown[p]) && !yield(p) {
				return
			}
		}
	}, now)
	if len(a.elsewhere) == 0 { // nearly always
		return pods
	}
	return slices.DeleteFunc(slices.Clone(pods), func(p eni.Pod) bool {
		return a.elsewhere.has(p) && now-a.elsewhere[p] >= elsewhereAfter
	})
}

// isOthers tells whether no address of the pool can ever have been that one: it is outside the VPC, or on an
// ENI that is not enipool's. What else lies in the VPC may have been the pod's until its sandbox went.
func (a *Agent) isOthers(addr netip.Addr) bool {
	if !addr.IsValid() {
		return false
	}
	told := false // which ranges of the family the VPC has
	for _, r := range a.conf.Settings.VPC {
		if r.Contains(addr) {
			return slices.ContainsFunc(a.view.enis, func(nic cloud.Interface) bool {
				return !nic.Ours && nic.Index > 0 && slices.Contains(nic.Addresses, addr)
			})
		}
		told = told || r.Addr().Is4() == addr.Is4()
	}
	return told
}
