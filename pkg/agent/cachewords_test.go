package agent

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/health"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nodecache"
)

// Whatever is wrong with the node cache: people read once that it is about that.
func TestTheNodeCacheIsNamedOnceWhereItCanNotBeUsed(t *testing.T) {
	w := newWorld(t, sim.Options{}, subnet("subnet-a", "10.0.1.0/24"))
	n := w.addNode(testConfig("n1"), sim.NodeSpec{Limits: large, Subnet: "subnet-a"})
	a := n.agent(&life{killAt: -1}, w.log)
	refused := &nodecache.UnwritableError{Err: errors.New("open /run/node.cache: read-only file system"), Todo: "file system tmpfs at /run is mounted read-only: mount -o remount,bind,rw /run"}
	for want, state := range map[string]struct {
		cached *ipam.State
		err    error
		failed error // the attempt to build it anew
	}{
		"node cache is damaged: line 1":                                             {nil, nodecache.Cache{Path: "/run/node.cache"}.DamagedRecord("line 1"), nil},
		"node cache has 1 damaged records":                                          {&ipam.State{Damaged: make([]ipam.Damage, 1)}, nil, nil},
		"node cache is missing":                                                     {nil, fmt.Errorf("%w: /run/node.cache; more", nodecache.ErrMissing), nil},
		"node cache: the node's primary ENI is not there":                           {nil, nodecache.ErrDamaged, errors.New("the node's primary ENI is not there")},
		"node cache can't be written: " + refused.Err.Error() + "; " + refused.Todo: {nil, refused, nil},
	} {
		a.cached, a.cacheErr, a.backoffs = state.cached, state.err, backoffs{}
		if state.failed != nil {
			a.backOff(of(rebuilds), state.failed, 0)
		}
		got := a.cacheProblem()
		if told := a.whyUnusable(state.cached, state.err); strings.Contains(told, "pool load") { // the log has it as why it was built again
			t.Errorf("%q tells the agent to do what it does", told)
		}
		if got != want || strings.Count(health.Explain(health.Cause{Reason: health.CacheUnusable, What: got}), "node cache") != 1 {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
