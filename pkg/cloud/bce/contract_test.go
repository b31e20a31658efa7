package bce

// The contract of cloud.Cloud over HTTP: against the endpoint of test/fakecloud/bce
// in this process and, with make test-cloud, against any other that is named:
//
//	BCE_ENDPOINT   URL of the API: https, or http on this machine
//	BCE_METADATA   URL of the metadata service of the instance; without it, and not
//	               on the instance itself, needed are
//	BCE_INSTANCE, BCE_VPC, BCE_ZONE and BCE_KIND (bcc, bbc, ebc)
//	BCE_OTHER      ID of a second instance of the same VPC, zone and kind, of which
//	               nothing is changed; without it the sentence about two nodes is
//	               skipped
//	BCE_SUBNETS    IDs, split by commas, of subnets for new ENIs in the instance's
//	               zone; without it the instance's own
//	BCE_GROUPS     security groups of new ENIs; without it those of its own ENI
//	BCE_IPV6       1: ENIs get IPv6 addresses too; the first subnet must have a range
//	CLOUD_LACKS    what the endpoint does not do as the cloud does, split by commas:
//	               tokens, quotas, guard of unmanaged ENIs, refusal of what is attached, a
//	               fault injection hook, a hook to detach ENIs. Sentences that need it
//	               are skipped
//	CLOUD_LAG      how long its describes lag behind, like 2s; without it 5s
//
// Credentials come from BCE_ACCESS_KEY_ID and BCE_SECRET_ACCESS_KEY or the other
// usual places. The instance must have its own ENI alone: all that the suite makes
// there, and what earlier runs left, is deleted. Faults are made on this side, by
// cloudtest.Transport, so every sentence about failures runs; the ENI that another
// client detaches is one that the suite made. An instance that can have no other ENI
// runs what its own one can do. For example on a real instance with a role:
//
//	BCE_ENDPOINT=https://bcc.bj.baidubce.com make test-cloud

import (
	"cmp"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/cloudtest"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/test/fakecloud"
	endpoint "github.com/enipool/enipool/test/fakecloud/bce"
)

func TestContract(t *testing.T) {
	contract(t, setup{}, engine.Options{})
}

func TestContractWithDualStack(t *testing.T) {
	contract(t, setup{v6: true}, engine.Options{IPv6: true})
}

func TestContractWithDualStackLagAndSlowAttach(t *testing.T) {
	contract(t, setup{v6: true, account: sim.Options{Seed: 2, Lag: 20 * time.Millisecond,
		AttachTime: 10 * time.Millisecond, DetachTime: 10 * time.Millisecond}}, engine.Options{IPv6: true})
}

func TestContractOfBareMetalWithENIs(t *testing.T) {
	contract(t, setup{typ: "ebc.l5"}, engine.Options{})
}

func TestContractWithShortPages(t *testing.T) {
	contract(t, setup{endpoint: endpoint.Options{Keys: map[string]string{accessKey: secretKey}, MaxPage: 1}}, engine.Options{})
}

func TestContractWithTheRoleOfTheInstance(t *testing.T) {
	contract(t, setup{endpoint: endpoint.Options{Role: true}}, engine.Options{})
}

// Bare metal whose own ENI is its only one. The endpoint's own faults are of calls that
// it does not make.
func TestContractOfBareMetalWithoutENIs(t *testing.T) {
	for _, typ := range []string{"bbc.s3", "ebc.l5.own"} {
		t.Run(typ, func(t *testing.T) { overTheWire(t, setup{typ: typ}, engine.Options{}, cloudtest.Dropped) })
	}
}

func TestContractWithTwoENIs(t *testing.T) {
	contract(t, setup{typ: twoENIs}, engine.Options{})
}

// Answers break in other ways than by a connection that ends before them.
func TestContractWithAnswersThatBreakOff(t *testing.T) {
	for name, breaks := range map[string]cloudtest.Break{"in the middle": cloudtest.Cut, "as an internal error": cloudtest.Replaced} {
		t.Run(name, func(t *testing.T) { overTheWire(t, setup{typ: "bcc.g5.c4m16"}, engine.Options{}, breaks) })
	}
}

// contract runs the suite twice: with faults on the client's side, as over any endpoint,
// and with those of the endpoint itself, which also does half of a request and really
// closes connections.
func contract(t *testing.T, k setup, o engine.Options, lacks ...cloudtest.Capability) {
	t.Run("faults of the client", func(t *testing.T) { overTheWire(t, k, o, cloudtest.Dropped, lacks...) })
	t.Run("faults of the endpoint", func(t *testing.T) {
		cloudtest.Contract(t, func(t *testing.T) cloudtest.Subject {
			s, _, w, subject := inside(t, k, o, lacks)
			subject.Inject = func(method string, f cloudtest.Failure) { s.inject(t, w, o.IPv6, method, f) }
			return subject
		})
	})
}

// overTheWire runs the suite on our own endpoint with faults on the client's side.
func overTheWire(t *testing.T, k setup, o engine.Options, breaks cloudtest.Break, lacks ...cloudtest.Capability) {
	cloudtest.Contract(t, func(t *testing.T) cloudtest.Subject {
		_, d, _, subject := inside(t, k, o, lacks)
		tr := withFaults(t, d, o.IPv6)
		tr.Breaks = breaks
		subject.Inject, subject.Chunk = tr.Inject, perCall
		return subject
	})
}

// inside is a node of our own endpoint, into which the suite may reach.
func inside(t *testing.T, k setup, o engine.Options, lacks []cloudtest.Capability) (*site, *Driver, *faulty, cloudtest.Subject) {
	withKeys(t)
	if k.endpoint.Role {
		t.Setenv("BCE_ACCESS_KEY_ID", "")
		t.Setenv("BCE_SECRET_ACCESS_KEY", "")
	}
	s := newSite(t, k)
	o.Subnets = []string{"sbn-a", "sbn-b"}
	d, w := s.driver(t, "i-n1")
	other, _ := s.open(t, "i-n2", o)
	return s, d, w, cloudtest.Subject{
		Cloud: engine.New(d, quick(o)), Other: other, Subnets: o.Subnets, Lag: k.account.Lag, Lacks: lacks,
		Leave:  func(subnet string, free int) { must(t, s.LeaveFree(subnet, free)) },
		Detach: func(id string) { must(t, s.Detach(id)) },
		Move:   func(id string) { must(t, s.Move(id, "i-n2")) },
		Use:    func(t *testing.T, ready cloud.Interface) { fakecloud.Serves(t, s.Account, "i-n1", ready) },
		Check:  s.Check,
	}
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

func (s *site) inject(t *testing.T, w *faulty, v6 bool, method string, f cloudtest.Failure) {
	action := cmp.Or(steps[method][f], steps[method][cloudtest.Throttled])
	if action == "" {
		t.Fatalf("no call of %s is known", method)
	}
	fail := func(faults ...sim.Fault) { s.Endpoint.FailNext(action, faults...) }
	if v6 && method == "CreateInterface" && action == "BatchAddPrivateIp" {
		fail(sim.Fault{}) // the addresses of one family come, then the others
	}
	switch f {
	case cloudtest.Throttled:
		times := 1
		if strings.HasPrefix(action, "Get") || strings.HasPrefix(action, "List") {
			times = readTries
		}
		fail(slices.Repeat([]sim.Fault{{Err: &sim.Error{Reason: sim.Throttled}}}, times)...)
	case cloudtest.Unavailable:
		w.refuse(1)
	case cloudtest.Forbidden:
		fail(sim.Fault{Err: &sim.Error{Reason: sim.Forbidden}})
	case cloudtest.LostAfterCreate, cloudtest.LostAfterAttach, cloudtest.LostAfterEffect:
		fail(sim.Fault{Answer: sim.Lost})
	case cloudtest.Late:
		fail(sim.Fault{Answer: sim.Lost, Later: 5 * time.Millisecond})
	case cloudtest.Partial:
		if method == "AssignAddresses" {
			fail(sim.Fault{Partial: true}, sim.Fault{Err: &sim.Error{Reason: sim.Throttled}})
		} else {
			fail(sim.Fault{Partial: true, Err: &sim.Error{Reason: sim.Unavailable}, After: true})
		}
	}
}

func TestContractOfTheEndpointThatTheEnvironmentNames(t *testing.T) {
	if os.Getenv("BCE_ENDPOINT") == "" {
		t.Skip("BCE_ENDPOINT is not set: no other endpoint than our own to try")
	}
	cloudtest.Contract(t, func(t *testing.T) cloudtest.Subject { return fromEnvironment(t, nil) })
}

// Our own endpoint, named by the environment, shows that the names do what they say: it
// is as far away as a stranger's.
func TestContractThroughTheEnvironment(t *testing.T) {
	for name, k := range map[string]struct{ typ, kind, v6 string }{
		"plain": {"", "bcc", ""}, "both families": {"", "bcc", "1"}, "larger": {"bcc.g5.c4m16", "bcc", ""}, "one ENI": {"bbc.s3", "bbc", ""},
	} {
		t.Run(name, func(t *testing.T) {
			withKeys(t)
			s := newSite(t, setup{typ: k.typ, v6: k.v6 != ""})
			t.Setenv("BCE_ENDPOINT", s.url)
			t.Setenv("BCE_METADATA", "")
			for name, value := range map[string]string{"BCE_INSTANCE": "i-n1", "BCE_OTHER": "i-n2", "BCE_VPC": s.vpc(), "BCE_ZONE": "cn-bj-d",
				"BCE_KIND": k.kind, "BCE_SUBNETS": "sbn-a,sbn-b", "BCE_GROUPS": "g-1", "BCE_IPV6": k.v6, "CLOUD_LAG": "0s", "CLOUD_LACKS": ""} {
				t.Setenv(name, value)
			}
			cloudtest.Contract(t, func(t *testing.T) cloudtest.Subject { return fromEnvironment(t, quick) })
		})
	}
}

func (s *site) vpc() (id string) {
	s.View(0, func(tx *sim.Tx) { id = tx.VPC().ID })
	return id
}

// fromEnvironment is a node of the endpoint that the environment names. What is near, so
// that less has to be waited for, has other times.
func fromEnvironment(t *testing.T, near func(engine.Options) engine.Options) cloudtest.Subject {
	o := engine.Options{Subnets: cloudtest.List("BCE_SUBNETS"), SecurityGroups: cloudtest.List("BCE_GROUPS"), IPv6: cloudtest.Flag(t, "BCE_IPV6")}
	if near != nil {
		o = near(o)
	}
	open := func(instance string) *Driver {
		d, err := New(Options{Endpoint: os.Getenv("BCE_ENDPOINT"), Metadata: os.Getenv("BCE_METADATA"),
			Instance: os.Getenv(instance), VPC: os.Getenv("BCE_VPC"), Zone: os.Getenv("BCE_ZONE"), Kind: Kind(os.Getenv("BCE_KIND"))})
		must(t, err)
		if near != nil {
			quicken(d)
		}
		return d
	}
	d, another := open("BCE_INSTANCE"), open("BCE_INSTANCE")
	tr := withFaults(t, d, o.IPv6)
	s := cloudtest.Subject{Cloud: engine.New(d, o), Subnets: o.Subnets, Inject: tr.Inject, Chunk: perCall,
		Detach: func(id string) { detachBy(t, another, id) }}
	if o.IPv6 {
		s.Must = append(s.Must, cloudtest.DualStack)
	}
	if os.Getenv("BCE_OTHER") != "" {
		s.Other = engine.New(open("BCE_OTHER"), o)
		s.Move = func(id string) { moveBy(t, another, id, os.Getenv("BCE_OTHER")) }
	}
	return cloudtest.FromEnvironment(t, s)
}
