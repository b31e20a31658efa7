package agent

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/nodecache"
)

// reshaped is a driver that takes the instance for another kind.
type reshaped struct {
	driver.Driver
	bare *bool
}

func (d reshaped) Shape(ctx context.Context, s driver.Self) (driver.Shape, error) {
	out, err := d.Driver.Shape(ctx, s)
	if *d.bare {
		out.ENIs, out.NoPrimary, out.PrimaryAlone = 1, false, false
	} else {
		out.PrimaryAlone = true
	}
	return out, err
}

// An elastic bare metal instance was taken for bare metal whose primary ENI alone has pods'
// addresses; by now it has ENIs of its own, and its primary one gets no more. What is free there goes to no
// pod any more, and back to the subnet.
func TestAPrimaryENIThatGetsNoneFromNowOnGivesBackWhatIsFree(t *testing.T) {
	t.Run("by what is known of the instance", func(t *testing.T) { vacates(t, func(_ *testNode, bare *bool) { *bare = false }) })
	t.Run("by the configuration", func(t *testing.T) { vacates(t, func(n *testNode, _ *bool) { n.over, n.conf.Pool.FirstENI = nil, 1 }) })
}

// onItsPrimary is a node with ten pods on its primary ENI alone, whose agent has stopped.
func onItsPrimary(t *testing.T) (n *testNode, bare *bool) {
	w := newWorld(t, sim.Options{}, subnet("subnet-a", "10.0.1.0/24"))
	n, bare = w.addNode(testConfig("n1"), sim.NodeSpec{Limits: eni.Limits{ENIs: 4, V4: 41}, Subnet: "subnet-a"}), new(bool)
	*bare = true
	n.over = func(inner driver.Driver) driver.Driver { return reshaped{inner, bare} }
	n.start(-1, false)
	for range 10 {
		_ = n.add()
	}
	n.all(t, 5*time.Minute)
	n.stop()
	return n, bare
}

func vacates(t *testing.T, change func(n *testNode, bare *bool)) {
	synctest.Test(t, func(t *testing.T) {
		n, bare := onItsPrimary(t)
		change(n, bare)
		n.start(-1, false)
		defer n.stop()
		sleep(time.Hour)
		for range 20 {
			_ = n.add()
		}
		n.all(t, 5*time.Minute)
		on := 0
		n.mu.Lock()
		for _, line := range n.cached.Addresses {
			if line.ENI == 0 && line.State == eni.Used {
				on++
			}
		}
		n.mu.Unlock()
		if on > 10 {
			t.Errorf("the primary ENI gets no addresses for pods (NoPrimary), 10 pods had some there, and now %d have", on)
		}
		for _, key := range n.keys() {
			n.del(key)
		}
		sleep(3 * time.Hour)
		for _, nic := range n.attached() {
			if nic.Index == 0 && len(nic.Addresses) > 0 {
				t.Errorf("three hours after its last pod the primary ENI, which gets none, has %d addresses", len(nic.Addresses))
			}
		}
	})
}

// The pods that still run there keep their network when the node cache is lost, or their own record.
func TestPodsOnAPrimaryENIThatGetsNoneAreInARebuiltCache(t *testing.T) {
	for name, lose := range map[string]func(n *testNode){
		"the cache is gone": func(n *testNode) { n.cached, n.cacheErr = nil, nodecache.ErrMissing },
		"a record is torn": func(n *testNode) {
			n.tear(slices.IndexFunc(n.cached.Addresses, func(line eni.Address) bool { return line.State == eni.Used }))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, bare := onItsPrimary(t)
				*bare = false
				lose(n)
				n.start(-1, false)
				defer n.stop()
				sleep(10 * time.Minute)
				n.mu.Lock()
				defer n.mu.Unlock()
				known := knownOf(n.cached)
				for _, pod := range n.pods {
					if a := pod.addrs[0]; !known[a] || !n.routed[a] {
						t.Errorf("%s of a pod that runs is in the cache: %t, in the kernel: %t", a, known[a], n.routed[a])
					}
				}
				for _, line := range n.cached.Addresses {
					if line.ENI == 0 && line.State != eni.Used {
						t.Errorf("the cache has %s, %s, on the primary ENI", line.Addr, line.State)
					}
				}
			})
		})
	}
}

// Addresses come in prefixes, and a new pod's comes from the fullest prefix of the first ENI that
// has one free: that is none of the primary ENI any more, whose prefixes go back as its pods end.
func TestAPrimaryENIWithPrefixesIsVacatedAsItsPodsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{}, subnet("subnet-a", "10.0.2.0/23"))
		n := w.addNode(testConfig("n1"), sim.NodeSpec{Limits: slashes28(5), Subnet: "subnet-a"})
		n.start(-1, false)
		r, ends := rand.New(rand.NewPCG(1, 2)), map[eni.Key]time.Duration{}
		n.churn(t, r, ends, 12, 20*time.Minute)
		n.stop()
		n.conf.Pool.FirstENI = 1
		n.serial++
		n.start(-1, false)
		defer n.stop()
		n.churn(t, r, ends, 12, 2*time.Hour)
		if waiting := n.retry(); waiting > 0 {
			t.Errorf("%d pods wait for an address", waiting)
		}
		if on := n.attached()[0].Addresses; len(on) > 0 {
			t.Errorf("two hours later, when all pods have ended many times over, the primary ENI has %d addresses", len(on))
		}
	})
}

// The node reboots before what its primary ENI got for pods has gone back: nobody knows any more
// whose that is, so nothing takes it, and people are told.
func TestAfterARebootPeopleAreToldOfWhatIsLeftOnAPrimaryENIThatGetsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, bare := onItsPrimary(t)
		if lines := n.status().Unused; len(lines) > 0 {
			t.Errorf("while the primary ENI is for pods, the status says %q", lines)
		}
		*bare = false
		for _, key := range n.keys() {
			n.del(key)
		}
		n.cached, n.cacheErr = nil, nodecache.ErrBoot
		n.start(-1, false)
		defer n.stop()
		sleep(time.Hour)
		want := fmt.Sprintf("has %d that no pod uses", len(n.attached()[0].Addresses))
		if lines := n.status().Unused; len(lines) != 1 || !strings.Contains(lines[0], want) {
			t.Errorf("the status says %q, want %q", lines, want)
		}
	})
}

// The agent takes over another first ENI for pods while it runs. What is free on the node's own ENI goes
// back, no pod that comes gets any of it, and those that run there keep theirs until they end.
func TestAReloadTakesTheNodesOwnENIOutOfService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := one(t, large, nil)
		defer n.stop()
		for range 10 {
			_ = n.add()
		}
		n.all(t, time.Minute)
		onPrimary := func() (used, other int) {
			n.mu.Lock()
			defer n.mu.Unlock()
			for _, line := range n.cached.Addresses {
				if line.ENI == 0 && line.State == eni.Used {
					used++
				} else if line.ENI == 0 && line.State != eni.Releasing {
					other++
				}
			}
			return used, other
		}
		conf := n.conf
		conf.Pool.FirstENI = 1
		n.life.reload <- conf
		if sleep(time.Second); n.total() == 0 {
			t.Fatal("no addresses")
		}
		if used, other := onPrimary(); used != 10 || other != 0 {
			t.Errorf("a second later the node's own ENI has %d addresses of pods and %d in service, want 10 and 0", used, other)
		}
		for range 5 {
			_ = n.add()
		}
		n.all(t, time.Minute)
		if used, other := onPrimary(); used != 10 || other != 0 {
			t.Errorf("with 5 pods more it has %d addresses of pods and %d in service, want 10 and 0", used, other)
		}
		for _, k := range n.keys()[:10] {
			n.del(k)
		}
		sleep(2 * time.Minute) // they cool down
		if used, other := onPrimary(); used != 0 || other != 0 {
			t.Errorf("when its pods are gone it has %d addresses of pods and %d in service", used, other)
		}
		if on := len(n.attached()[0].Addresses); on != 0 {
			t.Errorf("the cloud has %d addresses on the node's own ENI", on)
		}
		if err := w.check(); err != nil {
			t.Error(err)
		}
	})
}
