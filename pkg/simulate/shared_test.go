package simulate

import (
	"net/netip"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/pool"
)

// sharedAccount is EC2 at the scale of 50 nodes in place of 1,000: with a twentieth of what
// passes they take as long.
func sharedAccount(prefixes bool) World {
	const part = 20
	r, ms := EC2(), func(base, jitter int) sim.Latency {
		return sim.Latency{Base: time.Duration(base) * time.Millisecond, Jitter: time.Duration(jitter) * time.Millisecond}
	}
	w := World{Limits: eni.Limits{ENIs: 4, V4: 15}, MaxPods: 56, Driver: r.Driver, Wait: 5 * time.Second, Seed: 1,
		Subnets: []Subnet{{ID: "a", CIDR: netip.MustParsePrefix("10.0.0.0/12"), Reserved: 5}},
		Latency: map[string]sim.Latency{"": ms(100, 100), assign: ms(600, 400), create: ms(4000, 3000)},
		Buckets: map[string]sim.Bucket{}}
	if prefixes {
		w.Limits.V4, w.Limits.V4Block = 1+14*16, eni.Block{Bits: 28, Size: 16}
	}
	fewer := func(b sim.Bucket) sim.Bucket { return sim.Bucket{Burst: b.Burst / part, Every: b.Every * part} }
	w.Mutating, w.Describing = fewer(r.Mutating), fewer(r.Describing)
	for name, b := range r.Buckets {
		w.Buckets[name] = fewer(b)
	}
	return w
}

// Nodes that begin together on one account serve all pods about as soon as its limits
// allow: what pods need comes first, and nobody waits long when there is room again.
func TestAClusterThatStartsAtOnceIsServedNearTheBound(t *testing.T) {
	l, err := Generate("start", Shape{Nodes: 50, Pods: 30, Duration: 10 * time.Minute, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, prefixes := range []bool{false, true} {
		for _, m := range []pool.Mode{pool.Batch, pool.Burstable, pool.BestEffort} {
			got := mustRun(t, sharedAccount(prefixes), l, mode(m)).Served
			t.Logf("%s, prefixes %t: %s of %s, %.3f", m, prefixes, got.Reached, got.Bound, got.Ratio())
			if !got.All || got.Ratio() < 1 || got.Ratio() > 1.2 {
				t.Errorf("%s, prefixes %t: all served after %s, %.2f times the bound of %s", m, prefixes, got.Reached, got.Ratio(), got.Bound)
			}
		}
	}
}
