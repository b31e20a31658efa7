package bce

// The contract of driver.Driver over HTTP, against the endpoint of test/fakecloud/bce.

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/drivertest"
	"github.com/enipool/enipool/pkg/cloud/sim"
	endpoint "github.com/enipool/enipool/test/fakecloud/bce"
)

// requests are those that methods make, of an instance that is no bare metal.
var requests = map[string]string{
	"Shape": "GetInstanceDetail", "Alive": "GetInstanceDetail", "Subnets": "ListSubnets", "Interfaces": "ListEni",
	"Create": "CreateEni", "Attach": "AttachEniInstance", "Detach": "DetachEniInstance", "Delete": "DeleteEni",
	"Assign": "BatchAddPrivateIp", "Unassign": "BatchDeletePrivateIp", "Rewrite": "UpdateEni", "SetGroups": "UpdateEniSecurityGroup",
	"Reserve": "CreateIpreserve", "Unreserve": "DeleteIpreserve",
}

func TestDriverContract(t *testing.T) {
	for name, k := range map[string]setup{
		"a virtual machine":      {v6: true},
		"on the white list":      {v6: true, cross: true},
		"short pages":            {endpoint: endpoint.Options{Keys: map[string]string{accessKey: secretKey}, MaxPage: 3}},
		"bare metal by its role": {typ: "ebc.l5", endpoint: endpoint.Options{Role: true}},
	} {
		t.Run(name, func(t *testing.T) {
			withKeys(t)
			if k.endpoint.Role {
				t.Setenv("BCE_ACCESS_KEY_ID", "")
				t.Setenv("BCE_SECRET_ACCESS_KEY", "")
			}
			drivertest.Contract(t, func(t *testing.T) drivertest.Subject {
				s := newSite(t, k).half(t)
				s.Page = k.endpoint.MaxPage
				if k.typ == "ebc.l5" { // whose requests have other names, as rates.go says
					s.Calls = nil
				}
				return s
			})
		})
	}
}

// hasty is a driver whose states are looked at more often: nothing here is far away.
type hasty struct{ *Driver }

func (h hasty) Traits() driver.Traits {
	t := h.Driver.Traits()
	t.Times.Poll = 200 * time.Millisecond
	return t
}

// half is the site's first instance through a driver.
func (s *site) half(t *testing.T) drivertest.Subject {
	s.AddGroup(sim.Group{ID: "g-2", Name: "pods"})
	tags := map[string]string{"role": "pods"}
	tagged := simSubnet("sbn-t", "10.0.8.0/22")
	tagged.Zone, tagged.Reserve, tagged.Tags = "cn-bj-d", endpoint.Reserve, tags
	if s.v6 {
		tagged.V6 = netip.MustParsePrefix("2001:db8:0:c::/64")
	}
	must(t, s.AddSubnet(tagged))
	d, w := s.driver(t, "i-n1")
	return drivertest.Subject{
		Driver: hasty{d}, Subnets: []string{"sbn-t", "sbn-b"}, Lag: s.Options().Lag, Other: "i-n2", Groups: []string{"g-2"},
		Tags: tags, Check: s.Check, Calls: s.Calls,
		Lacks:  []drivertest.Capability{drivertest.Telling},
		Inject: func(method string, f drivertest.Failure) { s.fail(w, requests[method], f) },
		Changes: func() (n int) {
			for action, calls := range s.Calls() {
				if !reads(action) {
					n += calls
				}
			}
			return n
		},
		Leave:     func(subnet string, free int) { must(t, s.LeaveFree(subnet, free)) },
		Stop:      func(instance string, stopped bool) { must(t, s.Stop(instance, stopped)) },
		Terminate: func(instance string) { must(t, s.Terminate(instance)) },
	}
}

// reads tells whether a request changes nothing.
func reads(action string) bool {
	return strings.HasPrefix(action, "Get") || strings.HasPrefix(action, "List")
}

// fail lets the next request fail. A read is made again where there were too many, and
// net/http repeats one whose connection broke before any answer.
func (s *site) fail(w *faulty, action string, f drivertest.Failure) {
	fault, times := sim.Fault{}, 1
	switch f {
	case drivertest.Throttled:
		fault.Err = &sim.Error{Reason: sim.Throttled}
		if reads(action) {
			times = readTries
		}
	case drivertest.Unavailable:
		w.refuse(1)
		return
	case drivertest.Forbidden:
		fault.Err = &sim.Error{Reason: sim.Forbidden}
	case drivertest.Hang:
		fault.Delay = time.Hour
	case drivertest.Lost:
		fault.Answer = sim.Lost
	case drivertest.Late:
		fault.Answer, fault.Later = sim.Lost, 5*time.Millisecond
	}
	if reads(action) && fault.Answer == sim.Lost {
		fault = sim.Fault{Answer: sim.Cut}
	}
	s.Endpoint.FailNext(action, slices.Repeat([]sim.Fault{fault}, times)...)
}
