package bce

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/cloud/sim/api"
	endpoint "github.com/enipool/enipool/pkg/cloud/sim/api/bce"
)

// The keys of test accounts.
const (
	accessKey = "0123456789accesskey"
	secretKey = "0123456789verysecret"
)

// site is an account behind an endpoint that speaks the API's format, with two
// subnets and two instances.
type site struct {
	*api.Account
	*endpoint.Endpoint
	url string
}

// setup is what a site is like.
type setup struct {
	account  api.Options
	endpoint endpoint.Options
	typ      string // of the instances, "" is bcc.g5.c4m8
	v6       bool
}

func newSite(t testing.TB, k setup) *site {
	t.Helper()
	k.account.Region, k.account.NewID = "bj", endpoint.NewID
	a := api.NewAccount(k.account)
	a.AddGroup(api.Group{ID: "g-1", Name: "nodes"})
	a.AddType(endpoint.Types()...)
	for i, id := range []string{"sbn-a", "sbn-b"} {
		s := api.Subnet{Subnet: sim.Subnet{ID: id, V4: netip.MustParsePrefix([]string{"10.0.0.0/22", "10.0.4.0/24"}[i])},
			Zone: "cn-bj-d", Reserve: endpoint.Reserve, Tags: map[string]string{"pods": "yes"}}
		if k.v6 {
			s.V6 = netip.MustParsePrefix([]string{"2001:db8:0:a::/64", "2001:db8:0:b::/64"}[i])
		}
		must(t, a.AddSubnet(s))
	}
	if k.typ == "" {
		k.typ = "bcc.g5.c4m8"
	}
	for _, id := range []string{"i-n1", "i-n2"} {
		if _, err := a.AddInstance(api.Instance{ID: id, Type: k.typ, Subnet: "sbn-a", Groups: []string{"g-1"}}); err != nil {
			t.Fatal(err)
		}
	}
	if k.endpoint.Keys == nil && !k.endpoint.Role {
		k.endpoint.Keys = map[string]string{accessKey: secretKey}
	}
	time.Sleep(k.account.Lag) // until describes show the instances
	e := endpoint.New(a, k.endpoint)
	return &site{a, e, serve(t, e.Handler())}
}

func serve(t testing.TB, h http.Handler) (url string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// open returns the client of an instance, which waits less than for a real cloud,
// and the wire to it.
func (s *site) open(t testing.TB, instance string, o Options) (*Client, *wire) {
	t.Helper()
	o.Endpoint, o.Metadata = s.url, serve(t, s.Metadata(instance))
	c, err := New(o)
	must(t, err)
	return c, quicken(c)
}

// withKeys puts the test account's keys where the client looks for them.
func withKeys(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("BCE_ACCESS_KEY_ID", accessKey)
	t.Setenv("BCE_SECRET_ACCESS_KEY", secretKey)
	t.Setenv("BCE_SESSION_TOKEN", "")
}

func quicken(c *Client) *wire {
	c.poll, c.settle = time.Millisecond, 300*time.Millisecond
	w := &wire{base: c.base}
	c.base = w
	return w
}

// wire is a client's way to the API, on which connections can be refused.
type wire struct {
	base http.RoundTripper
	mu   sync.Mutex
	down int
}

// refuse lets so many of the next exchanges find nobody.
func (w *wire) refuse(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down += n
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	down := w.down > 0
	if down {
		w.down--
	}
	w.mu.Unlock()
	if down {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.Join(syscall.ECONNREFUSED)}
	}
	return w.base.RoundTrip(r)
}
