package bce

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
)

// region is one caller over the site's first instance.
func (s *site) region(t *testing.T) *engine.Region {
	d, _ := s.driver(t, "i-n1")
	return engine.NewRegion(d, quick(engine.Options{Subnets: []string{"sbn-a", "sbn-b"}, Cluster: "blue"}))
}

// Nobody knows the code by which the cloud refuses an account that is not on the white list.
func TestWhatIsRefusedForTheWhiteListSaysSo(t *testing.T) {
	for name, said := range map[string]struct {
		err  error // in place of the endpoint's own
		kind error
	}{
		"a code in no list":    {nil, cloud.ErrForbidden},
		"no right":             {&sim.Error{Reason: sim.Forbidden}, cloud.ErrForbidden},
		"a limit of addresses": {&sim.Error{Reason: sim.AddressLimit}, cloud.ErrLimit},
	} {
		t.Run(name, func(t *testing.T) {
			withKeys(t)
			s := newSite(t, setup{cross: true, unlisted: said.err == nil})
			r := s.region(t)
			made, err := r.Node(cloud.Instance{ID: "i-n1"}).CreateInterface(t.Context(), cloud.Create{Token: "t", Subnet: "sbn-a"})
			must(t, err)
			if said.err != nil {
				s.Endpoint.FailNext("BatchAddPrivateIpCrossSubnet", sim.Fault{Err: said.err})
			}
			got, err := r.AssignExactly(t.Context(), "i-n1", made.ID, []netip.Addr{netip.MustParseAddr("10.0.4.9")}, cloud.Origin{Subnet: "sbn-b"})
			if !errors.Is(err, said.kind) || len(got) > 0 || !strings.Contains(err.Error(), "white list") || !strings.Contains(err.Error(), "cloud.crossSubnet") {
				t.Errorf("AssignExactly = %v, %v", got, err)
			}
		})
	}
}

// Bare metal that has its primary ENI alone has a request of its own.
func TestThePrimaryENIOfBareMetalHasAddressesOfAnotherSubnet(t *testing.T) {
	withKeys(t)
	s := newSite(t, setup{cross: true, typ: "bbc.s3"})
	d, _ := s.driver(t, "i-n1")
	self, err := d.Self(t.Context())
	must(t, err)
	list, err := d.Interfaces(t.Context(), driver.Filter{Attached: self})
	must(t, err)
	theirs := []netip.Addr{netip.MustParseAddr("10.0.4.9")}
	got, err := d.Assign(t.Context(), driver.Assign{On: list[0], Family: eni.IPv4, Addresses: theirs, Subnet: "sbn-b", Token: "t"})
	if err != nil || !slices.Equal(got.Addresses, theirs) {
		t.Fatalf("Assign = %+v, %v", got, err)
	}
	if list, err = d.Interfaces(t.Context(), driver.Filter{Attached: self}); err != nil || !slices.Equal(list[0].Singles, theirs) {
		t.Errorf("shown are %+v, %v", list, err)
	}
	must(t, d.Unassign(t.Context(), driver.Unassign{On: list[0], Family: eni.IPv4, Addresses: theirs, Token: "u"}))
	must(t, s.Check())
}
