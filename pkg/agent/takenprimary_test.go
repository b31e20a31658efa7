package agent

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
)

// blind is a driver of a cloud that shows no node's ENIs now, but those that are asked for by name.
type blind struct {
	driver.Driver
	now *bool
}

func (d blind) Interfaces(ctx context.Context, f driver.Filter) ([]driver.Interface, error) {
	if *d.now && len(f.IDs) == 0 {
		return nil, errors.New("this is not shown now")
	}
	return d.Driver.Interfaces(ctx, f)
}

// Somebody takes an address away from a pod, and the cloud gives it to the next ENI of the node as
// its primary one. Until the next describe is answered the agent knows it in both places.
func TestAnAddressThatIsAnENIsPrimaryOneByNowIsLostAtOnce(t *testing.T) {
	for name, torn := range map[string]bool{"nothing is torn": false, "a record is torn": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, sim.Options{Reuse: sim.ReuseLatest}, subnet("subnet-a", "10.0.1.0/24"))
				n := w.addNode(testConfig("n1"), sim.NodeSpec{Limits: eni.Limits{ENIs: 6, V4: 9}, Subnet: "subnet-a"})
				unseen := false
				n.over = func(inner driver.Driver) driver.Driver { return blind{inner, &unseen} }
				n.start(-1, false)
				defer n.stop()
				sleep(time.Minute)
				for range 8 {
					_ = n.add()
				}
				n.all(t, time.Minute)
				sleep(time.Minute) // what it has begun is there
				x := n.pods[n.keys()[0]].addrs[0]
				w.taken[x], unseen = true, true
				if err := w.account.TakeAway(x); err != nil {
					t.Fatal(err)
				}
				for range 16 {
					_ = n.add()
				}
				sleep(20 * time.Second)
				if !slices.ContainsFunc(n.attached(), func(nic cloud.Interface) bool { return nic.V4.Primary.Addr() == x }) {
					t.Fatalf("%s is no ENI's primary address: the test shows nothing", x)
				}
				if torn {
					n.mu.Lock()
					n.tear(slices.IndexFunc(n.cached.Addresses, func(line eni.Address) bool { return line.Addr != x }))
					n.mu.Unlock()
				}
				sleep(20 * time.Second)
				if left := n.retry(); left > 0 {
					t.Errorf("%d pods wait, problem %q", left, n.status().Problem)
				}
				n.mu.Lock()
				defer n.mu.Unlock()
				if err := n.cached.Check(); err != nil || len(n.cached.Damaged) > 0 {
					t.Errorf("the cache: %v, %d records are torn", err, len(n.cached.Damaged))
				}
				if at := slices.IndexFunc(n.cached.Addresses, func(line eni.Address) bool { return line.Addr == x }); at < 0 || !n.cached.Addresses[at].Lost {
					t.Errorf("%s is not lost", x)
				}
			})
		})
	}
}
