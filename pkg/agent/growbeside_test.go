package agent

import (
	"context"
	"net/netip"
	"testing"
	"testing/synctest"

	"github.com/enipool/enipool/pkg/netconf"
)

// meanwhile is a Kernel that something happens to just before it is looked at.
type meanwhile struct {
	process
	happens func()
}

func (m meanwhile) Occupancy(ctx context.Context) (netconf.Occupancy, error) {
	m.happens()
	return m.process.Occupancy(ctx)
}

// An ADD gives a pod an address when the tick has read the cache already: what the kernel shows of
// the pod then is not somebody else's, and what leads its packets stays.
func TestAPodThatComesWhileTheCacheGrowsKeepsItsWayOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, n := one(t, large, nil)
		n.stop()
		a := n.agent(&life{killAt: -1}, n.w.log)
		a.Kernel = meanwhile{process{n, &life{killAt: -1}}, func() { must(t, n.add()) }}
		cached, err := a.read(t.Context())
		must(t, err)
		_, err = a.growCache(t.Context(), cached, facts{addrs: map[int][]netip.Addr{0: {netip.MustParseAddr("10.0.1.200")}}}, n.w.now())
		must(t, err)
		if !n.routed[netip.MustParseAddr("10.0.1.200")] {
			t.Error("the cache did not grow")
		}
		for _, pod := range n.pods {
			if !n.routed[pod.addrs[0]] {
				t.Errorf("%s has %s, and the kernel was told to forget that", pod.owner.Pod, pod.addrs[0])
			}
		}
	})
}
