package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/page/pagetest"
	"github.com/enipool/enipool/pkg/status"
)

// asked is a request of a browser on the node.
func asked(method string) *http.Request {
	r := httptest.NewRequest(method, "http://127.0.0.1:9809/", nil)
	r.RemoteAddr = "127.0.0.1:40000"
	r.Header.Set("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
	return r
}

func answered(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// onePod is a pool in which a pod has an address.
func onePod(context.Context) (*ipam.State, time.Duration, error) {
	return &ipam.State{ENIs: []eni.Interface{{ID: "eni-a", Device: "eth0"}}, Addresses: []eni.Address{
		{Addr: netip.MustParseAddr("10.0.0.21"), State: eni.Used, Since: time.Minute, Owner: &eni.Owner{Namespace: "shop", Pod: "web-1"}}}}, 3 * time.Minute, nil
}

func TestOnlyABrowserOnTheNodeGetsThePage(t *testing.T) {
	m := New("v1")
	m.Observe(status.Status{Node: "n1", Ready: true})
	h := m.Handler(onePod, false)
	for _, tt := range []struct {
		name string
		edit func(*http.Request)
		page bool
	}{
		{"a browser", func(*http.Request) {}, true},
		{"by IPv6", func(r *http.Request) { r.RemoteAddr, r.Host = "[::1]:40000", "[::1]:9809" }, true},
		{"by kubectl port-forward", func(r *http.Request) { r.Host = "localhost:9809" }, true},
		{"a program", func(r *http.Request) { r.Header.Set("Accept", "*/*") }, false},
		{"from another machine", func(r *http.Request) { r.RemoteAddr = "10.0.0.9:40000" }, false},
		{"a web site whose name leads here", func(r *http.Request) { r.Host = "evil.example:9809" }, false},
	} {
		r := asked(http.MethodGet)
		tt.edit(r)
		w := answered(h, r)
		if page := strings.Contains(w.Body.String(), "shop/web-1"); w.Code != http.StatusOK || page != tt.page || page == strings.Contains(w.Body.String(), "/metrics  for") {
			t.Errorf("%s: %d, page %v", tt.name, w.Code, page)
		}
		if got := w.Header().Get("Vary"); got != "Accept" {
			t.Errorf("%s: Vary %q", tt.name, got)
		}
	}
}

func TestThePageIsReadOnlyAndForbidsTheBrowserAllElse(t *testing.T) {
	m := New("v1")
	h := m.Handler(onePod, false)
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch} {
		if w := answered(h, asked(method)); w.Code != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d", method, w.Code)
		}
	}
	head := answered(h, asked(http.MethodHead)).Header()
	for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer",
		"Content-Type": "text/html; charset=utf-8", "Cross-Origin-Resource-Policy": "same-origin"} {
		if got := head.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	policy := head.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'; ", "connect-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("the policy %s lacks %s", policy, want)
		}
	}
	if strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") {
		t.Errorf("the policy is %s", policy)
	}
}

func TestTheBannerSaysWhatCountsFirst(t *testing.T) {
	refused := []status.Cause{{What: "the cloud refuses; run cloud check", Next: noon.Add(20 * time.Second)}, {What: "the subnet is full"}}
	for _, tt := range []struct {
		name    string
		newest  *status.Status
		unready string
		want    banner
	}{
		{"all is well", &status.Status{Ready: true}, "", banner{"good", "Ready", "Pods can get addresses, and nothing is wrong.", "", nil}},
		{"no tick yet", nil, "no tick yet", banner{"warn", "Starting", "no tick yet", "", nil}},
		{"ready with causes", &status.Status{Ready: true, Problem: refused[0].What, Causes: refused}, "", banner{"warn", "Ready, with a cause to look into", refused[0].What, "in 20s", []string{"the subnet is full"}}},
		{"not ready", &status.Status{Problem: refused[0].What, Causes: refused[:1]}, refused[0].What, banner{"bad", "Not ready", refused[0].What, "in 20s", nil}},
		{"nobody says why", &status.Status{}, "not ready", banner{"bad", "Not ready", "not ready", "", nil}},
		{"it hangs", &status.Status{Ready: true, Problem: "x"}, "the loop hangs: no tick for 4m0s", banner{"bad", "Not ready", "the loop hangs: no tick for 4m0s; before that: x", "", nil}},
	} {
		got := bannerOf(facts{newest: tt.newest, unready: tt.unready}, noon)
		if fmt.Sprint(got) != fmt.Sprint(tt.want) {
			t.Errorf("%s:\n%+v, want\n%+v", tt.name, got, tt.want)
		}
	}
}

// Whoever reloads all the time costs one reading a second.
func TestManyReadersCostOneReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, read := New("v1"), 0
		h := m.Handler(func(context.Context) (*ipam.State, time.Duration, error) { read++; return nil, 0, errors.New("busy") }, false)
		for range 50 {
			if w := answered(h, asked(http.MethodGet)); !strings.Contains(w.Body.String(), "busy") {
				t.Fatal(w.Body)
			}
		}
		if read != 1 {
			t.Errorf("%d readings", read)
		}
		time.Sleep(time.Second)
		answered(h, asked(http.MethodGet))
		if read != 2 {
			t.Errorf("%d readings a second later", read)
		}
	})
}

// large is a node of that many addresses.
func large(addresses int) ReadPool {
	s := &ipam.State{}
	for i := range addresses {
		if i%50 == 0 {
			s.ENIs = append(s.ENIs, eni.Interface{ID: fmt.Sprintf("eni-0f3a91c2d4e5b%04d", i/50), Index: i / 50, Device: fmt.Sprintf("eth%d", i/50)})
		}
		s.Addresses = append(s.Addresses, eni.Address{Addr: netip.AddrFrom4([4]byte{10, 0, byte(i / 250), byte(i % 250)}), ENI: i / 50, State: eni.Used,
			Owner: &eni.Owner{Namespace: "production", Pod: fmt.Sprintf("checkout-6d5f8c7b9-%05d", i)}})
	}
	return func(context.Context) (*ipam.State, time.Duration, error) { return s, time.Hour, nil }
}

func TestThePageOfALargeNodeIsBounded(t *testing.T) {
	for _, tt := range []struct{ addresses, most, cells int }{{250, 110_000, 250}, {4096, 350_000, mostCells}} {
		w := answered(New("v1").Handler(large(tt.addresses), false), asked(http.MethodGet))
		cells := strings.Count(w.Body.String(), `<i class="u" title=`)
		t.Logf("%d addresses: %d bytes", tt.addresses, w.Body.Len())
		if w.Body.Len() > tt.most || cells != tt.cells {
			t.Errorf("%d addresses: %d bytes, %d cells", tt.addresses, w.Body.Len(), cells)
		}
	}
}

func BenchmarkThePageOfANode(b *testing.B) {
	m := New("v1")
	m.Observe(status.Status{Node: "n1", Ready: true})
	pool := large(250)
	for b.Loop() {
		var out strings.Builder
		if err := nodeTemplate.Execute(&out, nodePageOf(m.facts(b.Context(), pool), noon)); err != nil {
			b.Fatal(err)
		}
	}
}

// What the agent did when its loop hung is no longer what it does; a loop that has nothing to do does not hang.
func TestWhatIsInFlightIsToldAsThePastWhereTheLoopHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New("v1")
		now := time.Now()
		m.Observe(status.Status{Node: "n1", Ready: true, Written: now, Due: now.Add(time.Minute), Beat: status.BeatEvery, InFlight: []string{"delete eni-b"}})
		told := func() string {
			p := nodePageOf(m.facts(t.Context(), nil), time.Now())
			return fmt.Sprint(p.Now, p.Facts)
		}
		time.Sleep(50 * time.Second)
		if got := told(); !strings.HasPrefix(got, "[{in flight delete eni-b}]") || strings.Contains(got, "{was ") {
			t.Errorf("between two ticks: %s", got)
		}
		time.Sleep(time.Hour)
		if got := told(); !strings.HasPrefix(got, "[{was in flight delete eni-b}]") {
			t.Errorf("of a loop that hangs: %s", got)
		}
	})
}

func TestTheNodesPageIsAsHTMLTemplateMakesIt(t *testing.T) { pagetest.Compare[nodePage](t, nodeHTML) }
