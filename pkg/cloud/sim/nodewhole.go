package sim

import (
	"context"
	"net/netip"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// Old is the cloud as one node of an account sees it, its methods whole.
type Old struct {
	stub
	a    *Account
	name string
}

// Old returns the cloud as the node of that name sees it. The calls of one that
// is not in the account fail with ErrNotFound.
func (a *Account) Old(name string) *Old {
	return &Old{a: a, name: name, stub: func(ctx context.Context, r request) (reply, error) {
		r.Node = name
		return a.call(ctx, r)
	}}
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
