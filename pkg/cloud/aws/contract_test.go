package aws

// The contract of cloud.Cloud over HTTP: against the endpoint of test/fakecloud/ec2
// in this process and, with make test-cloud, against any other that is named:
//
//	EC2_ENDPOINT   URL of EC2: https, or http on this machine
//	IMDS_ENDPOINT  URL of the instance metadata of the node to be; not needed with
//	               EC2_INSTANCE, the ID of an instance, and AWS_REGION
//	EC2_OTHER      ID of a second instance, of which nothing is changed; without it
//	               the sentence about two nodes is skipped
//	EC2_SUBNETS    IDs, split by commas, of subnets for new ENIs in the instance's
//	               zone; without it the instance's own
//	EC2_IPV6       1: ENIs get IPv6 addresses too; the first subnet must have a range
//	EC2_PREFIXES   1: addresses come as prefixes; the instance's type must be able to
//	CLOUD_LACKS    what the endpoint does not do as EC2 does, split by commas: tokens,
//	               quotas, guard of unmanaged ENIs, refusal of what is attached, a fault
//	               injection hook, a hook to detach ENIs. Sentences that need it are
//	               skipped
//	CLOUD_LAG      how long its describes lag behind, like 2s; without it 5s
//
// Credentials and certificates come from the SDK's usual places. The instance must have
// its primary ENI alone: all that the suite makes there, and what earlier runs left, is deleted. It asks for up to some ten
// addresses. Faults are made on this side, by cloudtest.Transport, so every sentence
// about failures runs; the ENI that another client detaches is one that the suite made.
//
// What stays skipped elsewhere needs a hand inside of the endpoint: subnets that are
// full or in pieces, half of a single request. An emulator of moto's kind, for example,
// which has an instance but neither limits nor metadata, and attaches what is attached:
//
//	EC2_ENDPOINT=http://127.0.0.1:5000 EC2_INSTANCE=i-... EC2_OTHER=i-... AWS_REGION=us-east-1 \
//	  CLOUD_LACKS=quotas,"refusal of what is attached" CLOUD_LAG=0s make test-cloud

import (
	"cmp"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/cloudtest"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/test/fakecloud"
	"github.com/enipool/enipool/test/fakecloud/ec2"
)

func TestContract(t *testing.T) {
	contract(t, kind{}, engine.Options{})
}

func TestContractWithEmulatorQuirks(t *testing.T) {
	contract(t, kind{endpoint: ec2.Options{Quirks: ec2.AllQuirks(), MetadataLag: time.Hour}}, engine.Options{}, cloudtest.Quotas)
}

func TestContractWithPrefixes(t *testing.T) {
	contract(t, kind{}, engine.Options{Prefixes: true})
}

func TestContractWithDualStackLagAndSlowAttach(t *testing.T) {
	contract(t, kind{v6: true, account: sim.Options{Seed: 1, Lag: 20 * time.Millisecond,
		CreateTime: 2 * time.Millisecond, AttachTime: 5 * time.Millisecond, DetachTime: 5 * time.Millisecond}}, engine.Options{IPv6: true})
}

// A type of before Nitro takes no prefixes: IPv6 addresses come one by one, beside the
// ENI's own.
func TestContractWithDualStackOneByOne(t *testing.T) {
	contract(t, kind{v6: true, typ: sim.Type{Name: "old.large", ENIs: 4, V4: 10, V6: 10, NoPrefix: true}}, engine.Options{IPv6: true})
}

func TestContractWithDualStackAndPrefixes(t *testing.T) {
	contract(t, kind{v6: true}, engine.Options{IPv6: true, Prefixes: true})
}

// A type that the built-in table knows: its limits come although EC2 refuses to tell.
func TestContractWithATypeOfTheTable(t *testing.T) {
	typ := sim.Type{Name: "m5.large", ENIs: 3, V4: 10, V6: 10}
	contract(t, kind{typ: typ, v6: true}, engine.Options{IPv6: true, Prefixes: true})
}

// An instance with one ENI besides its own.
func TestContractWithTwoENIs(t *testing.T) {
	contract(t, kind{typ: sim.Type{Name: "test.nano", ENIs: 2, V4: 8, V6: 8}}, engine.Options{})
}

// Answers break in other ways than by a connection that ends before them.
func TestContractWithAnswersThatBreakOff(t *testing.T) {
	for name, breaks := range map[string]cloudtest.Break{"in the middle": cloudtest.Cut, "as an internal error": cloudtest.Replaced} {
		t.Run(name, func(t *testing.T) {
			cloudtest.Contract(t, func(t *testing.T) cloudtest.Subject {
				return subject(t, kind{}, engine.Options{}, breaks)
			})
		})
	}
}

// contract runs the suite twice: with faults on the client's side, as over any endpoint,
// and with those of the endpoint itself, which also does half of a request and really
// closes connections.
func contract(t *testing.T, k kind, o engine.Options, lacks ...cloudtest.Capability) {
	t.Run("faults of the client", func(t *testing.T) {
		cloudtest.Contract(t, func(t *testing.T) cloudtest.Subject { return subject(t, k, o, cloudtest.Dropped, lacks...) })
	})
	t.Run("faults of the endpoint", func(t *testing.T) {
		cloudtest.Contract(t, func(t *testing.T) cloudtest.Subject {
			s, c, subject := inside(t, k, o, lacks)
			subject.Inject = func(method string, f cloudtest.Failure) { s.inject(t, c.ear, method, f) }
			return subject
		})
	})
}

// subject is a node of our own endpoint with faults on the client's side.
func subject(t *testing.T, k kind, o engine.Options, breaks cloudtest.Break, lacks ...cloudtest.Capability) cloudtest.Subject {
	_, c, subject := inside(t, k, o, lacks)
	tr := withFaults(t, c.d, connection(t))
	tr.Breaks = breaks
	subject.Inject, subject.Chunk = tr.Inject, apiWire().Chunk
	return subject
}

// inside is a node of our own endpoint, into which the suite may reach.
func inside(t *testing.T, k kind, o engine.Options, lacks []cloudtest.Capability) (*site, *node, cloudtest.Subject) {
	s := newSite(t, k)
	o.Subnets = []string{"subnet-a", "subnet-b"}
	c, _ := s.open(t, "i-1", o)
	other, _ := s.open(t, "i-2", o)
	subject := cloudtest.Subject{
		Cloud: c, Other: other, Subnets: o.Subnets, Lag: k.account.Lag, Lacks: lacks,
		Leave:  func(subnet string, free int) { must(t, s.LeaveFree(subnet, free)) },
		Break:  func(subnet string) { must(t, s.Fragment(subnet, true)) },
		Detach: func(id string) { must(t, s.detach(id)) },
		Move:   func(id string) { must(t, s.Move(id, "i-2")) },
		Use:    func(t *testing.T, ready cloud.Interface) { fakecloud.Serves(t, s.Account, "i-1", ready) },
		Check:  s.Check,
	}
	if k.endpoint.Quirks.NoLimits {
		subject.Check = nil
	}
	return s, c, subject
}

// steps are the requests that a method is made of: the one that is refused, and the
// ones of which the answer gets lost.
var steps = map[string]map[cloudtest.Failure]string{
	"Limits":            {cloudtest.Throttled: "DescribeInstanceTypes"},
	"Interfaces":        {cloudtest.Throttled: "DescribeNetworkInterfaces"},
	"Subnets":           {cloudtest.Throttled: "DescribeSubnets"},
	"AssignAddresses":   {cloudtest.Throttled: "AssignPrivateIpAddresses"},
	"UnassignAddresses": {cloudtest.Throttled: "UnassignPrivateIpAddresses"},
	"DeleteInterface":   {cloudtest.Throttled: "DetachNetworkInterface", cloudtest.LostAfterEffect: "DeleteNetworkInterface", cloudtest.Late: "DeleteNetworkInterface"},
	"CreateInterface": {cloudtest.Throttled: "CreateNetworkInterface", cloudtest.LostAfterAttach: "AttachNetworkInterface",
		cloudtest.LostAfterEffect: "ModifyNetworkInterfaceAttribute", cloudtest.Late: "AttachNetworkInterface"},
}

func (s *site) inject(t *testing.T, ear *deaf, method string, f cloudtest.Failure) {
	action := cmp.Or(steps[method][f], steps[method][cloudtest.Throttled])
	if action == "" {
		t.Fatalf("no request of %s is known", method)
	}
	times := 1
	if strings.HasPrefix(action, "Describe") && f != cloudtest.Forbidden {
		times = readTries
	}
	for range times {
		switch f {
		case cloudtest.Throttled:
			s.Endpoint.FailNext(action, sim.Fault{Err: &sim.Error{Reason: sim.Throttled}})
		case cloudtest.Unavailable:
			ear.refuse(action)
		case cloudtest.Forbidden:
			s.Endpoint.FailNext(action, sim.Fault{Err: &sim.Error{Reason: sim.Forbidden}})
		case cloudtest.LostAfterCreate, cloudtest.LostAfterAttach, cloudtest.LostAfterEffect:
			s.Endpoint.FailNext(action, sim.Fault{Answer: sim.Lost})
		case cloudtest.Late:
			s.Endpoint.FailNext(action, sim.Fault{Answer: sim.Lost, Later: 5 * time.Millisecond})
		case cloudtest.Partial:
			s.Endpoint.FailNext(action, sim.Fault{Partial: true, Answer: sim.Lost})
		}
	}
}

// detach takes an ENI off its instance behind the client's back.
func (s *site) detach(id string) error {
	return s.Update(func(tx *sim.Tx) error {
		i, err := tx.Interface(id)
		if err != nil {
			return err
		}
		_, err = tx.Detach(i.Attachment.ID, true)
		return err
	})
}

func TestContractOfTheEndpointThatTheEnvironmentNames(t *testing.T) {
	if os.Getenv("EC2_ENDPOINT") == "" {
		t.Skip("EC2_ENDPOINT is not set: no other endpoint than our own to try")
	}
	cloudtest.Contract(t, func(t *testing.T) cloudtest.Subject {
		return fromEnvironment(t, func(d *Driver, o engine.Options) cloud.Cloud { return engine.New(d, o) })
	})
}

// Our own endpoint, named by the environment, shows that the names do what they say: it
// is as far away as a stranger's.
func TestContractThroughTheEnvironment(t *testing.T) {
	for name, flags := range map[string]map[string]string{
		"plain": {}, "over TLS": {"AWS_CA_BUNDLE": "yes"}, "both families and prefixes": {"EC2_IPV6": "1", "EC2_PREFIXES": "1"}, "both families": {"EC2_IPV6": "true"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, kind{v6: flags["EC2_IPV6"] != ""})
			if flags["AWS_CA_BUNDLE"] != "" {
				s.url = overTLS(t, s.Endpoint.Handler())
			}
			t.Setenv("EC2_ENDPOINT", s.url)
			t.Setenv("IMDS_ENDPOINT", serve(t, s.Metadata("i-1")))
			t.Setenv("EC2_INSTANCE", "")
			t.Setenv("EC2_OTHER", "i-2")
			t.Setenv("EC2_SUBNETS", "subnet-a,subnet-b")
			for _, name := range []string{"EC2_IPV6", "EC2_PREFIXES", "CLOUD_LACKS"} {
				t.Setenv(name, flags[name])
			}
			t.Setenv("CLOUD_LAG", "0s")
			cloudtest.Contract(t, func(t *testing.T) cloudtest.Subject {
				return fromEnvironment(t, func(d *Driver, o engine.Options) cloud.Cloud { return newNode(d, o) })
			})
		})
	}
}

// overTLS serves with a certificate that AWS_CA_BUNDLE names.
func overTLS(t *testing.T, h http.Handler) (url string) {
	t.Helper()
	s := httptest.NewTLSServer(h)
	t.Cleanup(s.Close)
	file := filepath.Join(t.TempDir(), "bundle.pem")
	must(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600))
	t.Setenv("AWS_CA_BUNDLE", file)
	return s.URL
}

// fromEnvironment is a node of the endpoint that the environment names.
func fromEnvironment(t *testing.T, over func(*Driver, engine.Options) cloud.Cloud) cloudtest.Subject {
	at := Options{Endpoint: os.Getenv("EC2_ENDPOINT"), Metadata: os.Getenv("IMDS_ENDPOINT"), Instance: os.Getenv("EC2_INSTANCE")}
	o := engine.Options{Subnets: cloudtest.List("EC2_SUBNETS"), IPv6: cloudtest.Flag(t, "EC2_IPV6"), Prefixes: cloudtest.Flag(t, "EC2_PREFIXES")}
	base := connection(t)
	open := func() (*Driver, cloud.Cloud) {
		d := New(at)
		c := over(d, o)
		d.http = &http.Client{Transport: base}
		return d, c
	}
	d, c := open()
	another, _ := open()
	s := cloudtest.Subject{Cloud: c, Subnets: o.Subnets, Chunk: apiWire().Chunk, Inject: withFaults(t, d, base).Inject,
		Detach: func(id string) { detachBy(t, another, id) }}
	if o.IPv6 {
		s.Must = append(s.Must, cloudtest.DualStack)
	}
	if o.Prefixes {
		s.Must = append(s.Must, cloudtest.Blocks)
	}
	if at.Instance = os.Getenv("EC2_OTHER"); at.Instance != "" {
		_, s.Other = open()
		s.Move = func(id string) { moveBy(t, another, id, at.Instance) }
	}
	return cloudtest.FromEnvironment(t, s)
}
