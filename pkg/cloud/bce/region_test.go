package bce

import (
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/cloudtest"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
	endpoint "github.com/enipool/enipool/test/fakecloud/bce"
)

// One caller, which runs on one of them, acts for two instances.
func TestContractOfARegion(t *testing.T) {
	for name, v := range map[string]struct {
		setup
		o engine.Options
	}{
		"short pages":        {setup{endpoint: endpoint.Options{Keys: map[string]string{accessKey: secretKey}, MaxPage: 2}}, engine.Options{}},
		"dual stack and lag": {setup{v6: true, account: sim.Options{Seed: 1, Lag: 20 * time.Millisecond, AttachTime: 5 * time.Millisecond}}, engine.Options{IPv6: true}},
		"on the white list for addresses of other subnets, dual stack": {setup{v6: true, cross: true}, engine.Options{IPv6: true}},
	} {
		t.Run(name, func(t *testing.T) {
			cloudtest.RegionContract(t, func(t *testing.T) cloudtest.RegionSubject {
				withKeys(t)
				s := newSite(t, v.setup)
				d, _ := s.driver(t, "i-n1")
				v.o.Subnets, v.o.Cluster = []string{"sbn-a", "sbn-b"}, "blue"
				return cloudtest.RegionSubject{Region: engine.NewRegion(d, quick(v.o)), Instances: []string{"i-n1", "i-n2"}, Nobody: "i-nobody",
					Subnets: v.o.Subnets, Lag: v.account.Lag, Looks: func() int { return s.Calls()["ListEni"] }, Check: s.Check, Stop: s.Stop}
			})
		})
	}
}
