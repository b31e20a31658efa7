// Package region makes a simulated VPC for tests whose nodes run containers: real
// links, and the cloud's API at sockets that agents call.
package region

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

// Region is a simulated VPC with the cloud that its nodes' agents call. Its methods
// fail the test that made it.
type Region struct {
	Account *sim.Account
	T       testing.TB

	dir string // of the cloud's socket
	net *sim.Network
}

// Internet is where the VPC ends: only packets that leave through the ENI of their
// source get there.
const Internet = "203.0.113.2"

// Subnet is the ID of the only subnet; it has 250 addresses or so.
const Subnet = "subnet-a"

// New makes a VPC without nodes; its name is one word, a test's own. At the end of
// the test the cloud is looked at for contradictions. The test is skipped where there
// can be no nodes.
func New(t testing.TB, name string, o sim.Options) *Region {
	t.Helper()
	nettest.Need(t)
	kube.NeedNodes(t)
	r := &Region{T: t}
	var err error
	r.dir, err = os.MkdirTemp("", "region") // a socket's path has to be short
	r.Must(err)
	t.Cleanup(func() { os.RemoveAll(r.dir) })
	r.net, err = sim.NewNetwork(name, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")})
	r.Must(err)
	t.Cleanup(func() { r.Must(r.net.Close()) })
	o.Network = r.net
	r.Account = sim.NewAccount(o)
	r.Must(r.Account.AddSubnet(sim.Subnet{ID: Subnet, V4: netip.MustParsePrefix("10.0.1.0/24")}))
	t.Cleanup(func() {
		if err := r.Account.Check(); err != nil {
			t.Errorf("the cloud contradicts itself: %v", err)
		}
	})
	r.Serve(r.Socket())
	return r
}

// Must fails the test if there is an error.
func (r *Region) Must(err error) {
	r.T.Helper()
	if err != nil {
		r.T.Fatal(err)
	}
}

// Socket is where the cloud answers whoever sees the files of the test.
func (r *Region) Socket() string { return filepath.Join(r.dir, "vpc.sock") }

// Serve lets agents reach the cloud at a socket until the test ends.
func (r *Region) Serve(socket string) {
	r.T.Helper()
	l, err := sim.Listen(socket)
	r.Must(err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- r.Account.ServeOn(ctx, l) }()
	r.T.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			r.T.Error(err)
		}
	})
}

// AddNode makes a node whose own ENI is attached and set up, and returns the path of
// its network namespace.
func (r *Region) AddNode(name string, limits eni.Limits) string {
	r.T.Helper()
	n, err := r.Account.AddNode(sim.Machine{Name: name, Limits: limits, Subnet: Subnet})
	r.Must(err)
	return n.Namespace().Path()
}

// AtInternet runs a function where the VPC ends.
func (r *Region) AtInternet(fn func() error) error { return r.net.Internet().Do(fn) }
