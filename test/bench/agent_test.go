package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/agent"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/pkg/status"
	"github.com/enipool/enipool/pkg/status/web"
	"golang.org/x/sys/unix"
)

// BenchmarkIdleTick is a tick that finds nothing to do: the real loop over a real
// node cache, status file and metrics, on a node with 250 pods and 320 addresses
// on 7 ENIs. cpu-µs/tick is the time of all of the process's threads, the garbage
// collector's among them.
func BenchmarkIdleTick(b *testing.B) {
	a, _ := idleAgent(b)
	b.ReportAllocs()
	start := ownCPU(b)
	for b.Loop() {
		a.Tick(b.Context())
	}
	b.ReportMetric(float64((ownCPU(b)-start).Nanoseconds())/1000/float64(b.N), "cpu-µs/tick")
}

func TestAnIdleTickAsksNeitherCloudNorKernel(t *testing.T) {
	a, asked := idleAgent(t)
	before := asked()
	for range 3 {
		a.Tick(t.Context())
	}
	if after := asked(); after != before {
		t.Errorf("3 ticks asked %d times", after-before)
	}
	s := a.Status()
	if s.Addresses.Used != agentPods || s.Addresses.Attached != idlePool || s.Target != idlePool || !s.Ready || s.Problem != "" {
		t.Errorf("the node is not what it should be: %+v", s)
	}
}

func TestCPUTimeOfAProcessIsThatOfItsThreads(t *testing.T) {
	before := ownCPU(t)
	got, err := cpuTime(os.Getpid())
	if after := ownCPU(t); err != nil || got < before || got > after {
		t.Errorf("CPU time %s, %v; want one from %s to %s", got, err, before, after)
	}
}

func TestValuesAreFoundByTheirWholeNames(t *testing.T) {
	metrics := "# TYPE a counter\na_total{op=\"b\"} 7\na_total{op=\"bc\"} 9\na_total 1.5e+06\n"
	for name, want := range map[string]float64{`a_total{op="b"}`: 7, "a_total": 1.5e6} {
		if got, err := valueOf(metrics, name); err != nil || got != want {
			t.Errorf("%s is %g, %v; want %g", name, got, err, want)
		}
	}
	if got, err := valueOf(metrics, "a"); err == nil {
		t.Errorf("a is %g, want an error", got)
	}
	status := "VmHWM:\t   20756 kB\nVmRSS:\t   18112 kB\n"
	if got, err := kibOf(status, "VmRSS"); err != nil || got != 18112 {
		t.Errorf("VmRSS is %g, %v; want 18112", got, err)
	}
	if got, err := kibOf(status, "RSS"); err == nil {
		t.Errorf("RSS is %g, want an error", got)
	}
	line := "BenchmarkIdleTick-2   \t    2000\t   1045884 ns/op\t       956.2 cpu-µs/tick\t  516982 B/op\t    2547 allocs/op\n"
	if found := idleTickLine.FindStringSubmatch("goos: linux\n" + line); found == nil || found[1] != "956.2" {
		t.Errorf("found %q, want 956.2", found)
	}
}

// ownCPU is what this process has used of the CPUs.
func ownCPU(t testing.TB) time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts); err != nil {
		t.Fatal(err)
	}
	return time.Duration(ts.Nano())
}

// idlePool is how many addresses the idle agent's node has.
const idlePool = 320

// idleAgent returns the agent of a node that has all it needs, and how often cloud
// and kernel were asked for something so far. It compares once an hour.
func idleAgent(t testing.TB) (a *agent.Agent, asked func() int) {
	t.Helper()
	kernel := &paperKernel{account: sim.NewAccount(sim.Options{MaxAddresses: slotsPerENI + 1})}
	subnet := sim.Subnet{ID: "subnet-a", V4: netip.MustParsePrefix("10.0.0.0/20")}
	if err := kernel.account.AddSubnet(subnet); err != nil {
		t.Fatal(err)
	}
	node, err := kernel.account.AddNode(sim.NodeSpec{Name: "n1", Subnet: subnet.ID, Limits: eni.Limits{ENIs: enisPerNode, V4: slotsPerENI + 1}})
	if err != nil {
		t.Fatal(err)
	}
	cache := nodecache.Cache{Path: filepath.Join(t.TempDir(), "node.cache")}
	page := status.Beside(cache.Path)
	a = agent.New(idleConfig(), agent.Parts{
		Cache: cache, Unusable: nodecache.Unusable, Cloud: node, Memory: agent.File{Path: filepath.Join(t.TempDir(), "agent.json")},
		Kernel: kernel, Stale: kernel, Events: web.New("benchmark"), Log: slog.New(slog.DiscardHandler),
		PendingADDs: cache.PendingADDs,
		Publish:     func(s status.Status, why string) error { return errors.Join(page.Write(s), cache.SetWhy(why)) },
		MaxPods:     func() (int, string) { return idlePool, "benchmark" },
		Clock:       agent.NewRealClock(nodecache.SinceBoot, agent.Signals{}), Rand: rand.New(rand.NewPCG(1, 1)),
	})
	if err := a.Once(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := cache.Update(t.Context(), attachOnPaper); err != nil {
		t.Fatal(err)
	}
	a.Tick(t.Context())
	return a, func() int {
		sum := int(kernel.asked.Load())
		for _, n := range kernel.account.Calls() {
			sum += n
		}
		return sum
	}
}

func idleConfig() agentconf.Config {
	conf := agentconf.Default()
	conf.Node, conf.Resync = "n1", time.Hour
	conf.Settings.VPC, conf.Pool.Scale.MinPool = []netip.Prefix{vpc}, idlePool
	return conf
}

func attachOnPaper(s *ipam.State) error {
	for i := range agentPods {
		if _, err := s.AssignPod(*paperOwner(i), "", nodecache.SinceBoot()); err != nil {
			return err
		}
	}
	return nil
}

// paperKernel is a kernel that has all it should have, and pods that all live.
type paperKernel struct {
	account *sim.Account
	asked   atomic.Int64
}

func (k *paperKernel) Grow(context.Context, *ipam.State) ([]string, error) {
	k.asked.Add(1)
	return nil, nil
}

func (k *paperKernel) Sync(context.Context, []string, *ipam.State) ([]string, error) {
	k.asked.Add(1)
	return nil, nil
}

func (k *paperKernel) Links(context.Context) (map[string]eni.Interface, error) {
	k.asked.Add(1)
	links := map[string]eni.Interface{}
	for _, nic := range k.account.Snapshot().Nodes["n1"] {
		links[nic.MAC] = eni.Interface{Device: fmt.Sprintf("eth%d", nic.Index), MTU: 1500}
	}
	return links, nil
}

func (k *paperKernel) Occupancy(context.Context) (netconf.Occupancy, error) {
	k.asked.Add(1)
	return netconf.Occupancy{}, nil
}

func (k *paperKernel) Reclaim(context.Context, func(eni.Owner) bool) ([]eni.Address, error) {
	k.asked.Add(1)
	return nil, nil
}
