package aws

import (
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/cloudtest"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
)

// One caller, which runs on one of them, acts for two instances.
func TestContractOfARegion(t *testing.T) {
	for name, v := range map[string]struct {
		kind
		o engine.Options
	}{
		"one by one":              {},
		"dual stack and prefixes": {kind{v6: true}, engine.Options{IPv6: true, Prefixes: true}},
		"lag":                     {kind{account: sim.Options{Seed: 1, Lag: 20 * time.Millisecond, AttachTime: 5 * time.Millisecond}}, engine.Options{}},
	} {
		t.Run(name, func(t *testing.T) {
			cloudtest.RegionContract(t, func(t *testing.T) cloudtest.RegionSubject {
				s := newSite(t, v.kind)
				d := New(Options{Endpoint: s.url, Metadata: serve(t, s.Metadata("i-1"))})
				quicken(d)
				v.o.Cluster, v.o.Subnets = "blue", []string{"subnet-a", "subnet-b"}
				v.o.Times = driver.Times{Poll: time.Millisecond, Slow: 100 * time.Millisecond, Usual: 2 * time.Millisecond, Settle: 300 * time.Millisecond}
				return cloudtest.RegionSubject{Region: engine.NewRegion(d, v.o), Instances: []string{"i-1", "i-2"}, Nobody: "i-0123456789abcdef0",
					Type: testType.Name, Types: func() int { return s.Calls()["DescribeInstanceTypes"] }, Subnets: v.o.Subnets, Lag: v.account.Lag, Looks: func() int { return s.Calls()[describeENIs] }, Check: s.Check, Stop: s.Stop}
			})
		})
	}
}
