package bce

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
	endpoint "github.com/enipool/enipool/test/fakecloud/bce"
)

// The keys of test accounts.
const (
	accessKey = "0123456789accesskey"
	secretKey = "0123456789verysecret"
)

// twoENIs is a type with one ENI besides its own.
const twoENIs = "bcc.g5.c1m8"

// site is an account behind an endpoint that speaks the API's format, with two
// subnets and two instances.
type site struct {
	*sim.Account
	*endpoint.Endpoint
	url string
	v6  bool

	cross bool
}

// setup is what a site is like.
type setup struct {
	account  sim.Options
	endpoint endpoint.Options
	typ      string // of the instances, "" is bcc.g5.c4m8
	v6       bool
	cross    bool // people say that the account is on the white list for addresses of other subnets
	unlisted bool // and it is not
}

func newSite(t testing.TB, k setup) *site {
	t.Helper()
	k.account.Region, k.account.NewID = "bj", endpoint.NewID
	a := sim.NewAccount(k.account)
	a.AddGroup(sim.Group{ID: "g-1", Name: "nodes"})
	a.AddType(endpoint.Types()...)
	a.AddType(sim.Type{Name: twoENIs, ENIs: 2, V4: 8, V6: 8, CPUs: 1, Memory: 8 << 10})
	for i, id := range []string{"sbn-a", "sbn-b"} {
		s := sim.Subnet{ID: id, V4: netip.MustParsePrefix([]string{"10.0.0.0/22", "10.0.4.0/24"}[i]),
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
		if _, err := a.AddInstance(sim.Instance{ID: id, Type: k.typ, Subnet: "sbn-a", Groups: []string{"g-1"}}); err != nil {
			t.Fatal(err)
		}
	}
	if k.endpoint.Keys == nil && !k.endpoint.Role {
		k.endpoint.Keys = map[string]string{accessKey: secretKey}
	}
	time.Sleep(k.account.Lag) // until describes show the instances
	k.endpoint.CrossSubnet = k.cross && !k.unlisted
	e := endpoint.New(a, k.endpoint)
	return &site{a, e, serve(t, e.Handler()), k.v6, k.cross}
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

// open returns the cloud of an instance, which waits less than for a real one, and the
// wire to it.
func (s *site) open(t testing.TB, instance string, o engine.Options) (*engine.Node, *faulty) {
	t.Helper()
	d, w := s.driver(t, instance)
	return engine.New(d, quick(o)), w
}

// driver returns the driver on an instance.
func (s *site) driver(t testing.TB, instance string) (*Driver, *faulty) {
	t.Helper()
	d, err := New(Options{Endpoint: s.url, Metadata: serve(t, s.Metadata(instance)), CrossSubnet: s.cross})
	must(t, err)
	return d, quicken(d)
}

// withKeys puts the test account's keys where the client looks for them.
func withKeys(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("BCE_ACCESS_KEY_ID", accessKey)
	t.Setenv("BCE_SECRET_ACCESS_KEY", secretKey)
	t.Setenv("BCE_SESSION_TOKEN", "")
}

// quick are the options with times for an account in this process.
func quick(o engine.Options) engine.Options {
	o.Times.Poll, o.Times.Slow = time.Millisecond, 50*time.Millisecond
	o.Times.Settle = cmp.Or(o.Times.Settle, 300*time.Millisecond)
	return o
}

func quicken(d *Driver) *faulty {
	d.pause = time.Millisecond
	w := &faulty{base: d.base}
	d.base = w
	return w
}

// faulty is a client's way to the API, on which connections can be refused and answers
// altered.
type faulty struct {
	base http.RoundTripper
	mu   sync.Mutex
	down int
	swap []string // path, what is put in place of what, in threes
}

// refuse lets so many of the next exchanges find nobody.
func (w *faulty) refuse(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down += n
}

// alter puts one text for another in all answers from paths that begin so; without
// texts answers are what they are again.
func (w *faulty) alter(path string, fromTo ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.swap = nil
	for i := 0; i+1 < len(fromTo); i += 2 {
		w.swap = append(w.swap, path, fromTo[i], fromTo[i+1])
	}
}

func (w *faulty) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	down, swap := w.down > 0, w.swap
	if down {
		w.down--
	}
	w.mu.Unlock()
	if down {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.Join(syscall.ECONNREFUSED)}
	}
	resp, err := w.base.RoundTrip(r)
	if err != nil || len(swap) == 0 || !strings.HasPrefix(r.URL.Path, swap[0]) {
		return resp, err
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	_ = resp.Body.Close()
	for i := 0; i < len(swap); i += 3 {
		body = bytes.ReplaceAll(body, []byte(swap[i+1]), []byte(swap[i+2]))
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}
