package bce

// The contract of cloud.Cloud over HTTP: against the endpoint of pkg/cloud/sim/api/bce
// in this process and, with make test-cloud, against any other that is named:
//
//	BCE_ENDPOINT   URL of the API: https, or http on this machine
//	BCE_METADATA   URL of the metadata service of the instance; without it, and not
//	               on the instance itself, needed are
//	BCE_INSTANCE, BCE_VPC, BCE_ZONE and BCE_KIND (bcc, ebc)
//	BCE_SUBNETS    IDs, split by commas, of subnets for new ENIs in the instance's
//	               zone; without it the instance's own
//	BCE_GROUPS     security groups of new ENIs; without it those of its own ENI
//	CLOUD_LACKS    what the endpoint does not do as the cloud does, split by commas:
//	               tokens, quotas, guard of foreign ENIs. Sentences that need it are
//	               skipped
//	CLOUD_LAG      how long its describes lag behind, like 2s; without it 5s
//
// Credentials come from BCE_ACCESS_KEY_ID and BCE_SECRET_ACCESS_KEY or the other
// usual places. The instance must have its own ENI alone: all that the suite makes
// there, and what earlier runs left, is deleted. For example on a real instance
// with a role:
//
//	BCE_ENDPOINT=https://bcc.bj.baidubce.com make test-cloud

import (
	"cmp"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/cloudtest"
	"github.com/enipool/enipool/pkg/cloud/sim/api"
	endpoint "github.com/enipool/enipool/pkg/cloud/sim/api/bce"
)

func TestContract(t *testing.T) {
	contract(t, setup{}, Options{})
}

func TestContractWithDualStack(t *testing.T) {
	contract(t, setup{v6: true}, Options{IPv6: true})
}

func TestContractWithDualStackLagAndSlowAttach(t *testing.T) {
	contract(t, setup{v6: true, account: api.Options{Seed: 2, Lag: 20 * time.Millisecond,
		AttachTime: 10 * time.Millisecond, DetachTime: 10 * time.Millisecond}}, Options{IPv6: true})
}

func TestContractOfBareMetalWithENIs(t *testing.T) {
	contract(t, setup{typ: "ebc.l5"}, Options{})
}

func TestContractWithShortPages(t *testing.T) {
	contract(t, setup{endpoint: endpoint.Options{Keys: map[string]string{accessKey: secretKey}, MaxPage: 1}}, Options{})
}

func TestContractWithTheRoleOfTheInstance(t *testing.T) {
	contract(t, setup{endpoint: endpoint.Options{Role: true}}, Options{})
}

func contract(t *testing.T, k setup, o Options, lacks ...cloudtest.Capability) {
	withKeys(t)
	if k.endpoint.Role {
		t.Setenv("BCE_ACCESS_KEY_ID", "")
		t.Setenv("BCE_SECRET_ACCESS_KEY", "")
	}
	cloudtest.Contract(t, func(t *testing.T) cloudtest.Subject {
		s := newSite(t, k)
		o.Subnets = []string{"sbn-a", "sbn-b"}
		c, w := s.open(t, "i-n1", o)
		other, _ := s.open(t, "i-n2", o)
		return cloudtest.Subject{
			Cloud: c, Other: other, Subnets: o.Subnets, Lag: k.account.Lag, Lacks: lacks,
			Inject: func(method string, f cloudtest.Failure) { s.inject(t, w, o.IPv6, method, f) },
			Leave:  func(subnet string, free int) { must(t, s.LeaveFree(subnet, free)) },
			Detach: func(id string) { must(t, s.Detach(id)) },
			Check:  s.Check,
		}
	})
}

// steps are the calls that a method is made of: the one that is refused, and the
// ones of which the answer gets lost.
var steps = map[string]map[cloudtest.Failure]string{
	"Limits":            {cloudtest.Throttled: "GetInstanceDetail"},
	"Interfaces":        {cloudtest.Throttled: "ListEni"},
	"Subnets":           {cloudtest.Throttled: "ListSubnets"},
	"AssignAddresses":   {cloudtest.Throttled: "BatchAddPrivateIp"},
	"UnassignAddresses": {cloudtest.Throttled: "BatchDeletePrivateIp"},
	"DeleteInterface": {cloudtest.Throttled: "DetachEniInstance", cloudtest.LostAfterEffect: "DeleteEni",
		cloudtest.Late: "DeleteEni"},
	"CreateInterface": {cloudtest.Throttled: "CreateEni", cloudtest.LostAfterAttach: "AttachEniInstance",
		cloudtest.LostAfterEffect: "BatchAddPrivateIp", cloudtest.Late: "BatchAddPrivateIp"},
}

func (s *site) inject(t *testing.T, w *wire, v6 bool, method string, f cloudtest.Failure) {
	action := cmp.Or(steps[method][f], steps[method][cloudtest.Throttled])
	if action == "" {
		t.Fatalf("no call of %s is known", method)
	}
	fail := func(faults ...api.Fault) { s.Endpoint.FailNext(action, faults...) }
	if v6 && method == "CreateInterface" && action == "BatchAddPrivateIp" {
		fail(api.Fault{}) // the addresses of one family come, then the others
	}
	switch f {
	case cloudtest.Throttled:
		times := 1
		if strings.HasPrefix(action, "Get") || strings.HasPrefix(action, "List") {
			times = readTries
		}
		fail(slices.Repeat([]api.Fault{{Err: &api.Error{Reason: api.Throttled}}}, times)...)
	case cloudtest.Unavailable:
		w.refuse(1)
	case cloudtest.Forbidden:
		fail(api.Fault{Err: &api.Error{Reason: api.Forbidden}})
	case cloudtest.LostAfterCreate, cloudtest.LostAfterAttach, cloudtest.LostAfterEffect:
		fail(api.Fault{Answer: api.Lost})
	case cloudtest.Late:
		fail(api.Fault{Answer: api.Lost, Later: 5 * time.Millisecond})
	case cloudtest.Partial:
		if method == "AssignAddresses" {
			fail(api.Fault{Partial: true}, api.Fault{Err: &api.Error{Reason: api.Throttled}})
		} else {
			fail(api.Fault{Partial: true, Err: &api.Error{Reason: api.Unavailable}, After: true})
		}
	}
}

func TestContractOfTheEndpointThatTheEnvironmentNames(t *testing.T) {
	if os.Getenv("BCE_ENDPOINT") == "" {
		t.Skip("BCE_ENDPOINT is not set: no other endpoint than our own to try")
	}
	cloudtest.Contract(t, fromEnvironment)
}

// Our own endpoint, named by the environment, shows that the names do what they say.
func TestContractThroughTheEnvironment(t *testing.T) {
	withKeys(t)
	s := newSite(t, setup{})
	t.Setenv("BCE_ENDPOINT", s.url)
	t.Setenv("BCE_METADATA", "")
	for name, value := range map[string]string{"BCE_INSTANCE": "i-n1", "BCE_VPC": s.vpc(), "BCE_ZONE": "cn-bj-d", "BCE_KIND": "bcc",
		"BCE_SUBNETS": "sbn-a,sbn-b", "BCE_GROUPS": "g-1", "CLOUD_LAG": "0s", "CLOUD_LACKS": "quotas"} {
		t.Setenv(name, value)
	}
	cloudtest.Contract(t, func(t *testing.T) cloudtest.Subject {
		subject := fromEnvironment(t)
		quicken(subject.Cloud.(*Client))
		return subject
	})
}

func (s *site) vpc() (id string) {
	s.View(0, func(tx *api.Tx) { id = tx.VPC().ID })
	return id
}

func fromEnvironment(t *testing.T) cloudtest.Subject {
	subnets := cloudtest.List("BCE_SUBNETS")
	c, err := New(Options{Endpoint: os.Getenv("BCE_ENDPOINT"), Metadata: os.Getenv("BCE_METADATA"),
		Instance: os.Getenv("BCE_INSTANCE"), VPC: os.Getenv("BCE_VPC"), Zone: os.Getenv("BCE_ZONE"), Kind: Kind(os.Getenv("BCE_KIND")),
		Subnets: subnets, SecurityGroups: cloudtest.List("BCE_GROUPS")})
	must(t, err)
	return cloudtest.FromEnvironment(t, c, subnets)
}
