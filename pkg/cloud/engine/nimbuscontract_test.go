package engine_test

import (
	"net/http"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud/cloudtest"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/drivertest"
	"github.com/enipool/enipool/pkg/cloud/engine"
)

func (c *nimbusCloud) driver(instance string) driver.Driver {
	return &nimbus{http.Client{Transport: c.as(instance)}}
}

// nimbusFaults are what the suites ask for, by what goes wrong.
var nimbusFaults = map[string]nimbusFault{
	"throttled": {status: 429, code: "RATE_LIMITED"}, "unavailable": {status: 503, code: "OVERLOADED"}, "forbidden": {status: 403, code: "PERMISSION_DENIED"},
	"lost": {lost: true}, "late": {later: 5 * time.Millisecond}, "half": {half: true, lost: true}, "hang": {hang: true},
}

func TestADriverOfACloudWithOneNICKeepsItsContract(t *testing.T) {
	requests := map[string]string{"Shape": "GET /types", "Alive": "GET /instances", "Subnets": "GET /subnets", "Interfaces": "GET /nics",
		"Assign": "PATCH /nics", "Unassign": "PATCH /nics", "SetGroups": "PATCH /nics"}
	faults := map[drivertest.Failure]string{drivertest.Throttled: "throttled", drivertest.Unavailable: "unavailable", drivertest.Forbidden: "forbidden",
		drivertest.Lost: "lost", drivertest.Late: "late", drivertest.Hang: "hang"}
	drivertest.ContractIn(t, synctest.Test, func(*testing.T) drivertest.Subject {
		c := newNimbusCloud()
		return drivertest.Subject{
			Driver: c.driver("i-1"), Subnets: []string{"sub-a", "sub-b"}, Other: "i-2", Groups: []string{"pods"},
			Tags:      map[string]string{"role": "sub-a", "team": "net"},
			Inject:    func(method string, f drivertest.Failure) { c.fail(requests[method], nimbusFaults[faults[f]]) },
			Changes:   func() int { c.mu.Lock(); defer c.mu.Unlock(); return c.changes },
			Leave:     c.leave,
			Terminate: func(instance string) { c.mu.Lock(); defer c.mu.Unlock(); c.ended[instance] = true },
		}
	})
}

// The engine over it needs to know nothing of it.
func TestTheEngineKeepsTheContractOverACloudWithOneNIC(t *testing.T) {
	requests := map[string]string{"Limits": "GET /types", "Interfaces": "GET /nics", "Subnets": "GET /subnets",
		"AssignAddresses": "PATCH /nics", "UnassignAddresses": "PATCH /nics"}
	faults := map[cloudtest.Failure]string{cloudtest.Throttled: "throttled", cloudtest.Unavailable: "unavailable", cloudtest.Forbidden: "forbidden",
		cloudtest.LostAfterEffect: "lost", cloudtest.Late: "late", cloudtest.Partial: "half"}
	cloudtest.ContractIn(t, synctest.Test, func(*testing.T) cloudtest.Subject {
		c := newNimbusCloud()
		return cloudtest.Subject{
			Cloud: engine.New(c.driver("i-1"), engine.Options{}), Other: engine.New(c.driver("i-2"), engine.Options{}),
			Pods:   []netip.Prefix{c.subnets[0].Pods},
			Inject: func(method string, f cloudtest.Failure) { c.fail(requests[method], nimbusFaults[faults[f]]) },
			Leave:  c.leave,
		}
	})
}
