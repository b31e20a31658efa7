package aws

// The contract of cloud.Cloud over HTTP: against the endpoint of pkg/cloud/sim/api/ec2
// in this process and, with make test-cloud, against any other that is named:
//
//	EC2_ENDPOINT   URL of EC2: https, or http on this machine
//	IMDS_ENDPOINT  URL of the instance metadata of the node to be; not needed with
//	               EC2_INSTANCE, the ID of an instance, and AWS_REGION
//	EC2_SUBNETS    IDs, split by commas, of subnets for new ENIs in the instance's
//	               zone; without it the instance's own
//	CLOUD_LACKS    what the endpoint does not do as EC2 does, split by commas: tokens,
//	               quotas, guard of foreign ENIs. Sentences that need it are skipped
//	CLOUD_LAG      how long its describes lag behind, like 2s; without it 5s
//
// Credentials come from the SDK's usual places. The instance must have its own ENI
// alone: all that the suite makes there, and what earlier runs left, is deleted. It
// asks for up to some ten addresses. An emulator of moto's kind, for example, which
// has an instance but neither limits nor tokens nor metadata:
//
//	EC2_ENDPOINT=http://127.0.0.1:5000 EC2_INSTANCE=i-... AWS_REGION=us-east-1 \
//	  CLOUD_LACKS=tokens,quotas CLOUD_LAG=0s make test-cloud

import (
	"cmp"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/cloudtest"
	"github.com/enipool/enipool/pkg/cloud/sim/api"
	"github.com/enipool/enipool/pkg/cloud/sim/api/ec2"
)

func TestContract(t *testing.T) {
	contract(t, kind{}, Options{})
}

func TestContractWithEmulatorQuirks(t *testing.T) {
	contract(t, kind{endpoint: ec2.Options{Quirks: ec2.AllQuirks(), MetadataLag: time.Hour}}, Options{}, cloudtest.Quotas)
}

func TestContractWithPrefixes(t *testing.T) {
	contract(t, kind{}, Options{Prefixes: true})
}

func TestContractWithDualStackLagAndSlowAttach(t *testing.T) {
	contract(t, kind{v6: true, account: api.Options{Seed: 1, Lag: 20 * time.Millisecond,
		CreateTime: 2 * time.Millisecond, AttachTime: 5 * time.Millisecond, DetachTime: 5 * time.Millisecond}}, Options{IPv6: true})
}

// A type of before Nitro takes no prefixes: IPv6 addresses come one by one, beside the
// ENI's own.
func TestContractWithDualStackOneByOne(t *testing.T) {
	contract(t, kind{v6: true, typ: api.Type{Name: "old.large", ENIs: 4, V4: 10, V6: 10, NoPrefix: true}}, Options{IPv6: true})
}

func TestContractWithDualStackAndPrefixes(t *testing.T) {
	contract(t, kind{v6: true}, Options{IPv6: true, Prefixes: true})
}

func contract(t *testing.T, k kind, o Options, lacks ...cloudtest.Capability) {
	cloudtest.Contract(t, func(t *testing.T) cloudtest.Subject {
		s := newSite(t, k)
		o.Subnets = []string{"subnet-a", "subnet-b"}
		c, ear := s.open(t, "i-1", o)
		other, _ := s.open(t, "i-2", o)
		subject := cloudtest.Subject{
			Cloud: c, Other: other, Subnets: o.Subnets, Lag: k.account.Lag, Lacks: lacks,
			Inject: func(method string, f cloudtest.Failure) { s.inject(t, ear, method, f) },
			Leave:  func(subnet string, free int) { must(t, s.LeaveFree(subnet, free)) },
			Break:  func(subnet string) { must(t, s.Fragment(subnet)) },
			Detach: func(id string) { must(t, s.detach(id)) },
			Check:  s.Check,
		}
		if k.endpoint.Quirks.NoLimits {
			subject.Check = nil
		}
		return subject
	})
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
			s.Endpoint.FailNext(action, api.Fault{Err: &api.Error{Reason: api.Throttled}})
		case cloudtest.Unavailable:
			ear.refuse(action)
		case cloudtest.Forbidden:
			s.Endpoint.FailNext(action, api.Fault{Err: &api.Error{Reason: api.Forbidden}})
		case cloudtest.LostAfterCreate, cloudtest.LostAfterAttach, cloudtest.LostAfterEffect:
			s.Endpoint.FailNext(action, api.Fault{Answer: api.Lost})
		case cloudtest.Late:
			s.Endpoint.FailNext(action, api.Fault{Answer: api.Lost, Later: 5 * time.Millisecond})
		case cloudtest.Partial:
			s.Endpoint.FailNext(action, api.Fault{Partial: true, Answer: api.Lost})
		}
	}
}

// detach takes an ENI off its instance behind the client's back.
func (s *site) detach(id string) error {
	return s.Update(func(tx *api.Tx) error {
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
	cloudtest.Contract(t, fromEnvironment)
}

// Our own endpoint, named by the environment, shows that the names do what they say.
func TestContractThroughTheEnvironment(t *testing.T) {
	s := newSite(t, kind{})
	t.Setenv("EC2_ENDPOINT", s.url)
	t.Setenv("IMDS_ENDPOINT", serve(t, s.Metadata("i-1")))
	t.Setenv("EC2_SUBNETS", "subnet-a,subnet-b")
	t.Setenv("CLOUD_LAG", "0s")
	cloudtest.Contract(t, func(t *testing.T) cloudtest.Subject {
		subject := fromEnvironment(t)
		quicken(subject.Cloud.(*Client))
		return subject
	})
}

func fromEnvironment(t *testing.T) cloudtest.Subject {
	subnets := cloudtest.List("EC2_SUBNETS")
	c := New(Options{Endpoint: os.Getenv("EC2_ENDPOINT"), Metadata: os.Getenv("IMDS_ENDPOINT"), Instance: os.Getenv("EC2_INSTANCE"), Subnets: subnets})
	return cloudtest.FromEnvironment(t, c, subnets)
}
