package cri

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/nettest"
	"github.com/enipool/enipool/test/kube"
)

// region is a simulated VPC with the cloud that its nodes' agents call.
type region struct {
	t       testing.TB
	dir     string // of the cloud's socket
	net     *sim.Network
	account *sim.Account
}

// internet is where the VPC ends: only packets that leave through the ENI of their
// source get there.
const internet = "203.0.113.2"

const subnet = "subnet-a"

// newRegion makes a VPC without nodes; its name is one word, a test's own. The test
// is skipped where there can be no nodes.
func newRegion(t testing.TB, name string) *region {
	t.Helper()
	nettest.Need(t)
	kube.NeedNodes(t)
	r := &region{t: t}
	var err error
	r.dir, err = os.MkdirTemp("", "cri") // a socket's path has to be short
	r.must(err)
	t.Cleanup(func() { os.RemoveAll(r.dir) })
	r.net, err = sim.NewNetwork(name, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")})
	r.must(err)
	t.Cleanup(func() { r.must(r.net.Close()) })
	r.account = sim.NewAccount(sim.Options{Network: r.net})
	r.must(r.account.AddSubnet(sim.Subnet{ID: subnet, V4: netip.MustParsePrefix("10.0.1.0/24")}))
	r.serve()
	return r
}

func (r *region) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// socket is where the cloud answers.
func (r *region) socket() string { return filepath.Join(r.dir, "vpc.sock") }

// serve lets agents reach the cloud until the test ends.
func (r *region) serve() {
	r.t.Helper()
	l, err := sim.Listen(r.socket())
	r.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- r.account.ServeOn(ctx, l) }()
	r.t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			r.t.Error(err)
		}
		if err := r.account.Check(); err != nil {
			r.t.Errorf("the cloud contradicts itself: %v", err)
		}
	})
}

// addNode makes a node whose own ENI is attached and set up, and returns the path of
// its network namespace.
func (r *region) addNode(name string, limits eni.Limits) string {
	r.t.Helper()
	n, err := r.account.AddNode(sim.Machine{Name: name, Limits: limits, Subnet: subnet})
	r.must(err)
	return n.Namespace().Path()
}

// internet runs a function where the VPC ends.
func (r *region) internet(fn func() error) error { return r.net.Internet().Do(fn) }
