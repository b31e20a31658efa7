package aws

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"sync"
	"syscall"
	"testing"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/test/fakecloud/ec2"
)

// site is an account behind an endpoint that speaks EC2's format, with two subnets
// and two instances.
type site struct {
	*sim.Account
	*ec2.Endpoint
	url string
}

// testType is an instance type that the built-in table does not know.
var testType = sim.Type{Name: "test.large", ENIs: 4, V4: 8, V6: 8, CPUs: 2, Memory: 4096}

// kind is what a site is like.
type kind struct {
	account  sim.Options
	endpoint ec2.Options
	typ      sim.Type
	v6       bool
	rights   *rights           // what the callers may do, nil for all that endpoint allows
	tags     map[string]string // of instances and their own ENIs
}

func newSite(t *testing.T, k kind) *site {
	t.Helper()
	bare(t)
	k.account.Region, k.account.Reserve, k.account.NewID = "eu-test-1", sim.EC2Reserve, sim.EC2ID
	k.endpoint.Role = "node" // its credentials come from the metadata
	a := sim.NewAccount(k.account)
	a.AddGroup(sim.Group{ID: "sg-1", Name: "nodes"})
	if k.typ.Name == "" {
		k.typ = testType
	}
	a.AddType(k.typ)
	for i, id := range []string{"subnet-a", "subnet-b"} {
		s := sim.Subnet{ID: id, V4: netip.MustParsePrefix([]string{"10.0.0.0/22", "10.0.4.0/24"}[i]), Tags: map[string]string{"pods": "yes"}}
		if k.v6 {
			s.V6 = netip.MustParsePrefix([]string{"2001:db8:0:a::/64", "2001:db8:0:b::/64"}[i])
			s.GatewayV6 = routerV6
		}
		must(t, a.AddSubnet(s))
	}
	for _, id := range []string{"i-1", "i-2"} {
		i := sim.Instance{ID: id, Type: k.typ.Name, Subnet: "subnet-a", Groups: []string{"sg-1"}}
		if k.v6 {
			i.V6 = 1
		}
		if _, err := a.AddInstance(i); err != nil {
			t.Fatal(err)
		}
	}
	must(t, a.Update(func(tx *sim.Tx) error {
		for _, n := range tx.Interfaces() {
			if err := tx.Tag([]string{n.ID, n.Attachment.Instance}, k.tags); err != nil {
				return err
			}
		}
		return nil
	}))
	e := ec2.New(a, k.endpoint)
	h := e.Handler()
	if k.rights != nil {
		k.rights.account = a
		h = k.rights.before(h)
	}
	return &site{a, e, serve(t, h)}
}

// bare takes what a developer's machine has of AWS out of the test's way.
func bare(t *testing.T) {
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_SESSION_TOKEN": "", "AWS_PROFILE": "", "AWS_REGION": "",
		"AWS_CA_BUNDLE": "", "AWS_WEB_IDENTITY_TOKEN_FILE": "", "AWS_ROLE_ARN": "",
		"AWS_DEFAULT_REGION": "", "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
		// Nobody is there: that they are not used is the whole suite's proof.
		"AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_ENDPOINT_URL_EC2": "http://127.0.0.1:1",
		"AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://127.0.0.1:1",
	} {
		t.Setenv(name, value)
	}
}

func serve(t *testing.T, h http.Handler) (url string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// readTries is how often the SDK makes a read.
const readTries = 3

// deaf is an HTTP client to which some actions find no connection.
type deaf struct {
	client *http.Client
	mu     sync.Mutex
	to     map[string]int
}

func (d *deaf) refuse(action string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.to[action]++
}

func (d *deaf) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		form, _ := url.ParseQuery(string(body))
		d.mu.Lock()
		refused := d.to[form.Get("Action")] > 0
		if refused {
			d.to[form.Get("Action")]--
		}
		d.mu.Unlock()
		if refused {
			return nil, &url.Error{Op: "Post", URL: r.URL.String(), Err: &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}}
		}
	}
	return d.client.Do(r)
}
