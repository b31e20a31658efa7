package sim

import (
	"context"
	"net/netip"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// Node is the cloud as one node of an account sees it.
type Node struct {
	stub
	a    *Account
	name string
}

// Node returns the cloud as the node of that name sees it. The calls of one that
// is not in the account fail with ErrNotFound.
func (a *Account) Node(name string) *Node {
	return &Node{a: a, name: name, stub: func(ctx context.Context, r request) (reply, error) {
		r.Node = name
		return a.call(ctx, r)
	}}
}

// Name returns the node's name in the account.
func (n *Node) Name() string { return n.name }

// Namespace returns the node's namespace in the account's Network, and the zero
// one if there is none.
func (n *Node) Namespace() Namespace {
	if n.a.o.Network == nil {
		return Namespace{}
	}
	return named(n.a.o.Network.name + "-" + n.name)
}

// stub is a cloud.Cloud for whatever carries out a request, in this process or in
// another.
type stub func(context.Context, request) (reply, error)

var _ cloud.Cloud = stub(nil)

// Limits returns what the node was made with.
func (s stub) Limits(ctx context.Context) (eni.Limits, error) {
	out, err := s(ctx, request{Method: limits})
	return out.Limits, err
}

// Interfaces shows a state that is at most Lag old.
func (s stub) Interfaces(ctx context.Context) ([]cloud.Interface, error) {
	out, err := s(ctx, request{Method: interfaces})
	return out.Interfaces, err
}

// Subnets shows a state that is at most Lag old.
func (s stub) Subnets(ctx context.Context) ([]cloud.Subnet, error) {
	out, err := s(ctx, request{Method: subnetList})
	return out.Subnets, err
}

// CreateInterface makes the ENI in three effects: made, attached, filled. Its
// answer can be lost after each.
func (s stub) CreateInterface(ctx context.Context, c cloud.Create) (cloud.Interface, error) {
	out, err := s(ctx, request{Method: createInterface, Create: c})
	return out.Interface, err
}

// AssignAddresses puts what the ENI and the subnet have room for; if that is less
// than n, with the reason.
func (s stub) AssignAddresses(ctx context.Context, id string, f eni.Family, n int) ([]netip.Addr, error) {
	out, err := s(ctx, request{Method: assignAddresses, ENI: id, Family: f, Count: n})
	return out.Addresses, err
}

// UnassignAddresses leaves primary addresses alone.
func (s stub) UnassignAddresses(ctx context.Context, id string, addrs []netip.Addr) error {
	_, err := s(ctx, request{Method: unassignAddresses, ENI: id, Addresses: addrs})
	return err
}

// DeleteInterface refuses the node's own ENI and those of other nodes.
func (s stub) DeleteInterface(ctx context.Context, id string) error {
	_, err := s(ctx, request{Method: deleteInterface, ENI: id})
	return err
}
