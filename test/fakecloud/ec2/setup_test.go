package ec2_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/test/fakecloud/ec2"
)

// The account of the tests: two subnets in one zone, one in another, an instance
// of m5.large with its own ENI.
const (
	subnetA  = "subnet-0aaaaaaaaaaaaaaaa"
	subnetB  = "subnet-0bbbbbbbbbbbbbbbb"
	subnetZ  = "subnet-0cccccccccccccccc" // in another zone
	group    = "sg-0aaaaaaaaaaaaaaaa"
	instance = "i-0aaaaaaaaaaaaaaaa"
	other    = "i-0bbbbbbbbbbbbbbbb"

	keyID, secret = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
)

// world is an endpoint with a client of the SDK.
type world struct {
	*testing.T
	a   *sim.Account
	e   *ec2.Endpoint
	c   *sdk.Client
	url string
}

func subnet(id, v4, v6, zone string) sim.Subnet {
	s := sim.Subnet{ID: id, V4: netip.MustParsePrefix(v4), Zone: zone, Tags: map[string]string{"pool": id[7:9]}}
	if v6 != "" {
		s.V6 = netip.MustParsePrefix(v6)
	}
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newAccount(t *testing.T, o sim.Options) *sim.Account {
	t.Helper()
	o.Region, o.Reserve, o.NewID = "us-east-1", sim.EC2Reserve, sim.EC2ID
	o.VPC = sim.VPC{ID: "vpc-0aaaaaaaaaaaaaaaa", V4: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")},
		V6: []netip.Prefix{netip.MustParsePrefix("2600:1f14::/56")}}
	a := sim.NewAccount(o)
	a.AddType(ec2.Types()...)
	must(t, a.AddSubnet(subnet(subnetA, "10.0.0.0/24", "2600:1f14:0:1::/64", "us-east-1a")))
	must(t, a.AddSubnet(subnet(subnetB, "10.0.1.0/28", "", "us-east-1a")))
	must(t, a.AddSubnet(subnet(subnetZ, "10.0.2.0/24", "", "us-east-1b")))
	a.AddGroup(sim.Group{ID: group, Name: "default", Description: "all of them"})
	for _, id := range []string{instance, other} {
		_, err := a.AddInstance(sim.Instance{ID: id, Type: "m5.large", Subnet: subnetA, Tags: map[string]string{"Name": id}})
		must(t, err)
	}
	return a
}

func newWorld(t *testing.T, ao sim.Options, o ec2.Options) *world {
	t.Helper()
	w := &world{T: t, a: newAccount(t, ao)}
	if o.Keys == nil {
		o.Keys = map[string]string{keyID: secret}
	}
	w.e = ec2.New(w.a, o)
	server := httptest.NewServer(w.e.Handler())
	t.Cleanup(server.Close)
	t.Cleanup(func() {
		if err := w.a.Check(); err != nil && !t.Failed() {
			t.Errorf("at the end the account is wrong:\n%v", err)
		}
	})
	w.url = server.URL
	w.c = w.client(keyID, secret, "")
	return w
}

// client is one that tries once.
func (w *world) client(id, secret, token string) *sdk.Client {
	return sdk.New(sdk.Options{
		Region:           "us-east-1",
		BaseEndpoint:     aws.String(w.url),
		RetryMaxAttempts: 1,
		HTTPClient:       steady{},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: id, SecretAccessKey: secret, SessionToken: token}, nil
		}),
	})
}

// code is EC2's for the error, "" for nil.
func code(err error) string {
	var e smithy.APIError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e):
		return e.ErrorCode()
	}
	return "not an API error: " + err.Error()
}

func (w *world) fails(err error, want string) {
	w.Helper()
	if got := code(err); got != want {
		w.Errorf("code %q (%v), want %q", got, err, want)
	}
}

func (w *world) must(err error) { w.Helper(); must(w.T, err) }

// create makes an ENI in subnet A with n secondary addresses.
func (w *world) create(n int32) *types.NetworkInterface {
	w.Helper()
	out, err := w.c.CreateNetworkInterface(w.Context(), &sdk.CreateNetworkInterfaceInput{SubnetId: aws.String(subnetA),
		SecondaryPrivateIpAddressCount: count(n)})
	w.must(err)
	return out.NetworkInterface
}

func count(n int32) *int32 {
	if n == 0 {
		return nil
	}
	return &n
}

// attach attaches an ENI to the instance and returns the attachment's id.
func (w *world) attach(eni string, index int32) string {
	w.Helper()
	out, err := w.c.AttachNetworkInterface(w.Context(), &sdk.AttachNetworkInterfaceInput{NetworkInterfaceId: &eni,
		InstanceId: aws.String(instance), DeviceIndex: &index})
	w.must(err)
	return *out.AttachmentId
}

// see describes one ENI.
func (w *world) see(eni string) types.NetworkInterface {
	w.Helper()
	out, err := w.c.DescribeNetworkInterfaces(w.Context(), &sdk.DescribeNetworkInterfacesInput{NetworkInterfaceIds: []string{eni}})
	w.must(err)
	return out.NetworkInterfaces[0]
}

// addresses are the IPv4 addresses of an ENI, the primary first.
func addresses(i types.NetworkInterface) []string {
	var list []string
	for _, a := range i.PrivateIpAddresses {
		list = append(list, *a.PrivateIpAddress)
	}
	return list
}

// handClock moves when it is told to, or when somebody waits.
type handClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *handClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *handClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func (c *handClock) Wait(ctx context.Context, d time.Duration) error {
	c.advance(d)
	return ctx.Err()
}

// steady has requests and answers whole before the SDK goes on. On a machine that is
// very busy the SDK's own reading now and then finds its connection closed.
type steady struct{}

func (steady) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		sent, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(sent))
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	got, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(io.MultiReader(bytes.NewReader(got), broken{err}))
	return resp, nil
}

// broken is how reading an answer ended.
type broken struct{ err error }

func (b broken) Read([]byte) (int, error) {
	if b.err == nil {
		return 0, io.EOF
	}
	return 0, b.err
}

// nimble is a retryer that does not wait.
type nimble struct{}

func (nimble) IsErrorRetryable(error) bool                  { return true }
func (nimble) MaxAttempts() int                             { return 3 }
func (nimble) RetryDelay(int, error) (time.Duration, error) { return 0, nil }
func (nimble) GetInitialToken() func(error) error           { return func(error) error { return nil } }
func (nimble) GetRetryToken(context.Context, error) (func(error) error, error) {
	return func(error) error { return nil }, nil
}

func as[T any](err error, target *T) bool { return errors.As(err, target) }
