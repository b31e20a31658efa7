package lab

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"sync"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/isolate"
)

// Internet4 and Internet6 are where the VPC ends: only packets that leave through the ENI
// of their source get there.
const (
	Internet4 = "203.0.113.2"
	Internet6 = "2001:db8:ffff::2"
)

// V4 and V6 are the ranges of most VPCs.
var (
	V4 = netip.MustParsePrefix("10.0.0.0/16")
	V6 = netip.MustParsePrefix("2001:db8::/48")
)

// Subnet is the subnet of VPCs that need but one; it has 250 addresses or so.
var Subnet = sim.Subnet{ID: "subnet-a", V4: netip.MustParsePrefix("10.0.1.0/24")}

// VPC is a simulated VPC and the account that it belongs to.
type VPC struct {
	Network *sim.Network
	Account *sim.Account
	stops   []func() error // of all services
}

// Open makes a VPC of those ranges, without subnets and nodes. Its namespaces begin with
// the name, which is one word. Close must be called.
func Open(name string, o sim.Options, ranges ...netip.Prefix) (*VPC, error) {
	network, err := sim.NewNetwork(name, ranges)
	if err != nil {
		return nil, err
	}
	o.Network = network
	return &VPC{Network: network, Account: sim.NewAccount(o)}, nil
}

// AddNode makes a node whose own ENI is attached and set up, and the subnet for it where
// one is given.
func (v *VPC) AddNode(m sim.NodeSpec, own ...sim.Subnet) (isolate.Namespace, error) {
	for _, subnet := range own {
		if err := v.Account.AddSubnet(subnet); err != nil {
			return isolate.Namespace{}, err
		}
	}
	n, err := v.Account.AddNode(m)
	if err != nil {
		return isolate.Namespace{}, err
	}
	return n.Namespace().Namespace, nil
}

// Serve lets agents call the account at a socket. What they reach is h, or the account
// itself if that is nil. stop returns when every call under way has its answer; Close does
// it for whoever does not.
func (v *VPC) Serve(socket string, h http.Handler) (stop func() error, err error) {
	l, err := sim.Listen(socket)
	if err != nil {
		return nil, err
	}
	if h == nil {
		h = v.Account.Handler()
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- v.Account.Serve(ctx, l, h) }()
	stop = sync.OnceValue(func() error { cancel(); return <-served })
	v.stops = append(v.stops, stop)
	return stop, nil
}

// Close ends the services and removes the VPC with its nodes. Its error may also be that
// the account contradicts itself.
func (v *VPC) Close() error {
	var errs []error
	for _, stop := range v.stops {
		errs = append(errs, stop())
	}
	if err := v.Account.Check(); err != nil {
		errs = append(errs, fmt.Errorf("the cloud contradicts itself: %w", err))
	}
	return errors.Join(append(errs, v.Network.Close())...)
}

// TB is what a lab needs of a test: testing.TB is one.
type TB interface {
	Helper()
	Cleanup(end func())
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// NewVPC is Open for a test: it fails the test, and closes the VPC at its end.
func NewVPC(t TB, name string, o sim.Options, ranges ...netip.Prefix) *VPC {
	t.Helper()
	v, err := Open(name, o, ranges...)
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() {
		if err := v.Close(); err != nil {
			t.Errorf("%v", err)
		}
	})
	return v
}

// Dir makes a folder that goes with the test. Unlike that of t.TempDir its path is short,
// as a socket's has to be.
func Dir(t TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "lab")
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
