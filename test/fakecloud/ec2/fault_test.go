package ec2_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/smithy-go/transport/http"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/test/fakecloud/ec2"
)

func TestEveryFaultReachesTheClientAsItShould(t *testing.T) {
	const noAnswer, noContent = "no answer", "no content"
	for _, tt := range []struct {
		name   string
		f      sim.Fault
		want   string // the code, or how there is none
		status int
		done   int // addresses that are there afterwards
	}{
		{"throttled", sim.Fault{Err: &sim.Error{Reason: sim.Throttled}}, "RequestLimitExceeded", 503, 0},
		{"an error before the effect", sim.Fault{Err: &sim.Error{Reason: sim.Unavailable}}, "InternalError", 500, 0},
		{"an error after the effect", sim.Fault{Err: &sim.Error{Reason: sim.Unavailable}, After: true}, "InternalError", 500, 4},
		{"forbidden", sim.Fault{Err: &sim.Error{Reason: sim.Forbidden}}, "UnauthorizedOperation", 403, 0},
		{"another code", sim.Fault{Err: &sim.Error{Code: "InvalidParameterValue", Detail: "There aren't sufficient free Ipv4 addresses or prefixes"}},
			"InvalidParameterValue", 400, 0},
		{"another status", sim.Fault{Err: &sim.Error{Code: "Unavailable", Status: 502}}, "Unavailable", 502, 0},
		{"a lost answer", sim.Fault{Answer: sim.Lost}, noAnswer, 0, 4},
		{"a connection cut in the answer", sim.Fault{Answer: sim.Cut}, noContent, 0, 4},
		{"half an answer", sim.Fault{Answer: sim.Short}, noContent, 0, 4},
		{"an answer of something else", sim.Fault{Rewrite: func([]byte) []byte { return []byte("<html>") }}, noContent, 0, 4},
		{"half of the addresses", sim.Fault{Partial: true}, "", 0, 2},
		{"half of the addresses and an error", sim.Fault{Partial: true, Err: &sim.Error{Reason: sim.Unavailable}, After: true}, "InternalError", 500, 2},
		{"a late effect", sim.Fault{Later: time.Hour}, noAnswer, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, sim.Options{}, ec2.Options{})
			id := *w.create(0).NetworkInterfaceId
			w.e.FailNext("AssignPrivateIpAddresses", tt.f)
			_, err := w.c.AssignPrivateIpAddresses(t.Context(), &sdk.AssignPrivateIpAddressesInput{NetworkInterfaceId: &id, SecondaryPrivateIpAddressCount: aws.Int32(4)})
			switch tt.want {
			case noAnswer, noContent:
				if got := code(err); err == nil || got == "InternalError" || len(got) < 20 {
					t.Errorf("error %v, code %q", err, got)
				}
			default:
				w.fails(err, tt.want)
			}
			if e, ok := asResponse(err); tt.status != 0 && (!ok || e.HTTPStatusCode() != tt.status) {
				t.Errorf("error %v, want status %d", err, tt.status)
			}
			if got := len(addresses(w.see(id))) - 1; got != tt.done {
				t.Errorf("there are %d addresses, want %d", got, tt.done)
			}
		})
	}
}

func asResponse(err error) (e *http.ResponseError, ok bool) {
	ok = as(err, &e)
	return e, ok
}

func TestAFaultOfALateEffectComesLater(t *testing.T) {
	clock := &handClock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	w := newWorld(t, sim.Options{Clock: clock}, ec2.Options{Keys: map[string]string{}})
	w.e.FailNext("CreateNetworkInterface", sim.Fault{Later: time.Second})
	_, err := w.c.CreateNetworkInterface(t.Context(), &sdk.CreateNetworkInterfaceInput{SubnetId: aws.String(subnetA), ClientToken: aws.String("t")})
	if err == nil || len(w.ids()) != 2 {
		t.Fatalf("error %v, %d ENIs", err, len(w.ids()))
	}
	clock.advance(time.Second)
	if got := len(w.ids()); got != 3 {
		t.Errorf("a second later there are %d ENIs", got)
	}
	_, err = w.c.CreateNetworkInterface(t.Context(), &sdk.CreateNetworkInterfaceInput{SubnetId: aws.String(subnetA), ClientToken: aws.String("t")})
	w.must(err)
	if got := len(w.ids()); got != 3 {
		t.Errorf("the token made another: %d", got)
	}
}

func TestTheSDKRetriesWhatIsThrottled(t *testing.T) {
	w := newWorld(t, sim.Options{}, ec2.Options{})
	w.e.FailNext("DescribeVpcs", sim.Fault{Err: &sim.Error{Reason: sim.Throttled}})
	w.e.FailNext("DescribeVpcs", sim.Fault{Answer: sim.Lost})
	_, err := w.c.DescribeVpcs(t.Context(), nil, func(o *sdk.Options) {
		o.RetryMaxAttempts = 0
		o.Retryer = nimble{}
	})
	w.must(err)
	if got := w.a.Calls()["DescribeVpcs"]; got != 3 {
		t.Errorf("it took %d calls", got)
	}
}

func TestALostAnswerMakesASecondAssignmentButNoSecondENI(t *testing.T) {
	w := newWorld(t, sim.Options{}, ec2.Options{})
	again := func(o *sdk.Options) { o.Retryer = nimble{} }
	w.e.FailNext("CreateNetworkInterface", sim.Fault{Answer: sim.Lost})
	made, err := w.c.CreateNetworkInterface(t.Context(), &sdk.CreateNetworkInterfaceInput{SubnetId: aws.String(subnetA)}, again)
	w.must(err) // the SDK sends a token of its own
	if got := len(w.ids()); got != 3 {
		t.Errorf("there are %d ENIs", got)
	}
	w.e.FailNext("AssignPrivateIpAddresses", sim.Fault{Answer: sim.Lost})
	out, err := w.c.AssignPrivateIpAddresses(t.Context(), &sdk.AssignPrivateIpAddressesInput{
		NetworkInterfaceId: made.NetworkInterface.NetworkInterfaceId, SecondaryPrivateIpAddressCount: aws.Int32(4)}, again)
	w.must(err)
	if got := w.see(*made.NetworkInterface.NetworkInterfaceId); len(got.PrivateIpAddresses) != 9 || len(out.AssignedPrivateIpAddresses) != 4 {
		t.Errorf("it has %d addresses, %d were told of", len(got.PrivateIpAddresses), len(out.AssignedPrivateIpAddresses))
	}
}

func TestBucketsThrottleAsEC2Documents(t *testing.T) {
	clock := &handClock{now: time.Now()}
	w := newWorld(t, ec2.Limited(sim.Options{Clock: clock}), ec2.Options{Keys: map[string]string{}})
	id := *w.create(0).NetworkInterfaceId
	assign := func() error {
		addr := "10.0.0.99"
		_, err := w.c.AssignPrivateIpAddresses(t.Context(), &sdk.AssignPrivateIpAddressesInput{NetworkInterfaceId: &id, PrivateIpAddresses: []string{addr}})
		return err
	}
	for range 100 {
		w.must(assign())
	}
	w.fails(assign(), "RequestLimitExceeded")
	clock.advance(199 * time.Millisecond)
	w.fails(assign(), "RequestLimitExceeded")
	clock.advance(time.Millisecond)
	w.must(assign())
	w.fails(assign(), "RequestLimitExceeded")
	for range 50 {
		w.ids()
	}
	_, err := w.c.DescribeNetworkInterfaces(t.Context(), nil)
	w.fails(err, "RequestLimitExceeded")
	w.ids(by("status", "in-use")) // with a filter it is another bucket
}

func TestADelayIsAsLongAsTheCallerWaits(t *testing.T) {
	clock := &handClock{now: time.Now()}
	w := newWorld(t, sim.Options{Clock: clock, Latency: map[string]sim.Latency{"": {Base: time.Second}}}, ec2.Options{Keys: map[string]string{}})
	before := clock.Now()
	w.e.FailNext("DescribeVpcs", sim.Fault{Delay: time.Minute})
	_, err := w.c.DescribeVpcs(t.Context(), nil)
	w.must(err)
	if got := clock.Now().Sub(before); got != time.Minute+time.Second {
		t.Errorf("it took %v", got)
	}
}

func TestUnknownElementsCanBePutIntoAnswers(t *testing.T) {
	w := newWorld(t, sim.Options{}, ec2.Options{})
	w.e.FailNext("DescribeVpcs", sim.Fault{Rewrite: func(b []byte) []byte {
		return bytes.Replace(b, []byte("<vpcId>"), []byte("<colour>red</colour><vpcId>"), 1)
	}})
	out, err := w.c.DescribeVpcs(t.Context(), nil)
	w.must(err)
	if *out.Vpcs[0].VpcId != "vpc-0aaaaaaaaaaaaaaaa" {
		t.Errorf("got %+v", out.Vpcs)
	}
}
