package aws

import (
	"maps"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/drivertest"
	"github.com/enipool/enipool/pkg/cloud/sim"
)

// The contract of driver.Driver over HTTP.
func TestTheDriverKeepsTheContract(t *testing.T) {
	for name, k := range map[string]kind{
		"plain":             {v6: true},
		"IPv4 alone":        {},
		"lag":               {v6: true, account: sim.Options{Seed: 1, Lag: 20 * time.Millisecond, CreateTime: 2 * time.Millisecond, AttachTime: 5 * time.Millisecond, DetachTime: 5 * time.Millisecond}},
		"two network cards": {v6: true, typ: sim.Type{Name: "cards.large", ENIs: 6, V4: 8, V6: 8, Cards: []int{3, 3}}},
		"before Nitro":      {v6: true, typ: sim.Type{Name: "old.large", ENIs: 4, V4: 10, V6: 10, NoPrefix: true}},
	} {
		t.Run(name, func(t *testing.T) {
			drivertest.Contract(t, func(t *testing.T) drivertest.Subject { return newSite(t, k).subject(t, k) })
		})
	}
}

// quick is a driver of which the suite believes that its cloud is fast.
type quick struct{ *Driver }

func (q quick) Traits() driver.Traits {
	t := q.Driver.Traits()
	t.Times = driver.Times{Poll: 20 * time.Millisecond, Slow: 100 * time.Millisecond, Usual: 20 * time.Millisecond, Settle: 300 * time.Millisecond, Wait: 10 * time.Second}
	return t
}

// actions are the requests that methods make.
var actions = map[string]string{
	"Shape": "DescribeInstanceTypes", "Alive": "DescribeInstances", "Subnets": "DescribeSubnets", "Interfaces": describeENIs,
	"Create": "CreateNetworkInterface", "Attach": "AttachNetworkInterface", "Bind": "ModifyNetworkInterfaceAttribute",
	"SetGroups": "ModifyNetworkInterfaceAttribute", "Detach": "DetachNetworkInterface", "Delete": "DeleteNetworkInterface",
	"Assign": "AssignPrivateIpAddresses", "Unassign": "UnassignPrivateIpAddresses",
	"Reserve": "CreateSubnetCidrReservation", "Unreserve": "DeleteSubnetCidrReservation",
}

// subject is the driver of instance i-1.
func (s *site) subject(t *testing.T, k kind) drivertest.Subject {
	d := New(Options{Endpoint: s.url, Metadata: serve(t, s.Metadata("i-1"))})
	ear := quicken(d)
	d.page = 5 // the least that EC2 takes
	s.AddGroup(sim.Group{ID: "sg-2", Name: "pods"})
	for id, sub := range map[string]sim.Subnet{
		"subnet-0aaaaaaaaaaaaaaa1": {V4: netip.MustParsePrefix("10.0.8.0/23"), V6: netip.MustParsePrefix("2001:db8:0:c::/64")},
		"subnet-0bbbbbbbbbbbbbbb2": {V4: netip.MustParsePrefix("10.0.10.0/24"), V6: netip.MustParsePrefix("2001:db8:0:d::/64")},
	} {
		sub.ID, sub.GatewayV6 = id, routerV6
		if !k.v6 {
			sub.V6, sub.GatewayV6 = netip.Prefix{}, netip.Addr{}
		}
		sub.Tags = map[string]string{"role": "pods-" + id[len(id)-1:], "team": "net"}
		must(t, s.AddSubnet(sub))
	}
	return drivertest.Subject{
		Driver: quick{d}, Subnets: []string{"subnet-0aaaaaaaaaaaaaaa1", "subnet-0bbbbbbbbbbbbbbb2"}, Lag: k.account.Lag,
		Other: "i-2", Groups: []string{"sg-2"}, Tags: map[string]string{"role": "pods-1", "team": "net"}, Page: 5,
		Inject: func(method string, f drivertest.Failure) { s.refuse(ear, actions[method], f) },
		Changes: func() (n int) {
			for action, calls := range s.Calls() {
				if action != "Metadata" && !strings.HasPrefix(action, "Describe") && !strings.HasPrefix(action, "Get") {
					n += calls
				}
			}
			return n
		},
		Calls: func() map[string]int {
			n := maps.Clone(s.Calls())
			delete(n, "Metadata")
			return n
		},
		Check: s.Check,
		Leave: func(subnet string, free int) { must(t, s.LeaveFree(subnet, free)) }, Break: func(subnet string) { must(t, s.Fragment(subnet, true)) },
		Stop:      func(instance string, stopped bool) { must(t, s.Stop(instance, stopped)) },
		Terminate: func(instance string) { must(t, s.Terminate(instance)) },
	}
}

// refuse lets the next call of an action fail, each time that the SDK makes it.
func (s *site) refuse(ear *deaf, action string, f drivertest.Failure) {
	times := 1
	if strings.HasPrefix(action, "Describe") && f != drivertest.Forbidden {
		times = readTries
	}
	for range times {
		switch f {
		case drivertest.Throttled:
			s.Endpoint.FailNext(action, sim.Fault{Err: &sim.Error{Reason: sim.Throttled}})
		case drivertest.Unavailable:
			ear.refuse(action)
		case drivertest.Forbidden:
			s.Endpoint.FailNext(action, sim.Fault{Err: &sim.Error{Reason: sim.Forbidden}})
		case drivertest.Lost:
			s.Endpoint.FailNext(action, sim.Fault{Answer: sim.Lost})
		case drivertest.Late:
			s.Endpoint.FailNext(action, sim.Fault{Answer: sim.Lost, Later: 5 * time.Millisecond})
		case drivertest.Hang:
			s.Endpoint.FailNext(action, sim.Fault{Delay: time.Hour})
			return
		}
	}
}
