package agent

import (
	"context"
	"errors"
	"net/netip"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// noCloud is the cloud of a node whose operator calls it: it knows nothing and refuses everything.
type noCloud struct{}

var errOperated = errors.New("the operator calls the cloud for this node")

func (noCloud) Limits(context.Context) (eni.Limits, error)                    { return eni.Limits{}, errOperated }
func (noCloud) Interfaces(context.Context) ([]cloud.Interface, error)         { return nil, errOperated }
func (noCloud) Known() []cloud.Interface                                      { return nil }
func (noCloud) Notes() cloud.Notes                                            { return cloud.Notes{} }
func (noCloud) Recall(cloud.Notes)                                            {}
func (noCloud) Subnets(context.Context) ([]cloud.Subnet, error)               { return nil, errOperated }
func (noCloud) DeleteInterface(context.Context, string) error                 { return errOperated }
func (noCloud) UnassignAddresses(context.Context, string, []netip.Addr) error { return errOperated }

func (noCloud) CreateInterface(context.Context, cloud.Create) (cloud.Interface, error) {
	return cloud.Interface{}, errOperated
}

func (noCloud) AssignAddresses(context.Context, string, eni.Family, int) ([]netip.Addr, error) {
	return nil, errOperated
}
