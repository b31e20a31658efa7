package cloudtest_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/cloudtest"
)

// listener is an endpoint that notes the bodies of its requests. It refuses those that
// say so.
type listener struct {
	mu    sync.Mutex
	heard []string
}

func (l *listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	l.mu.Lock()
	l.heard = append(l.heard, string(body))
	l.mu.Unlock()
	if strings.Contains(string(body), "wrong") {
		w.WriteHeader(http.StatusBadRequest)
	}
	fmt.Fprintf(w, "done: %s", body)
}

func (l *listener) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.heard)
}

// testWire is an API whose action is the first word of the body.
var testWire = cloudtest.Wire{
	Action: func(_ *http.Request, body []byte) string { word, _, _ := strings.Cut(string(body), " "); return word },
	Steps: map[string]cloudtest.Steps{
		"Limits":          {First: []string{"look"}},
		"AssignAddresses": {First: []string{"add4", "add6"}},
		"DeleteInterface": {First: []string{"detach"}, Last: []string{"delete"}},
		"CreateInterface": {First: []string{"create"}, Attach: []string{"attach"}, Last: []string{"fill"}, Before: 1, Late: []string{"attach"}},
	},
	Refusals: map[cloudtest.Failure]cloudtest.Answer{
		cloudtest.Throttled:   {Status: http.StatusTooManyRequests, Body: "too many"},
		cloudtest.Forbidden:   {Status: http.StatusForbidden, Body: "you may not", Header: http.Header{"X-Why": {"policy"}}},
		cloudtest.Unavailable: {Status: http.StatusInternalServerError, Body: "oh"},
	},
	Tries: func(action string, f cloudtest.Failure) int {
		if action == "look" && f == cloudtest.Throttled {
			return 2
		}
		return 1
	},
}

// over returns a client whose way to a listener is a Transport.
func over(t testing.TB) (*cloudtest.Transport, *listener, func(body string) string) {
	l := &listener{}
	s := httptest.NewServer(l)
	t.Cleanup(s.Close)
	tr := cloudtest.NewTransport(t, s.Client().Transport, testWire)
	client := &http.Client{Transport: tr}
	return tr, l, func(body string) string {
		resp, err := client.Post(s.URL, "text/plain", strings.NewReader(body))
		if err != nil {
			return "failed: " + err.Error()
		}
		defer func() { _ = resp.Body.Close() }()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			return fmt.Sprintf("%d %s, and then %v", resp.StatusCode, text, err)
		}
		return fmt.Sprintf("%d %s%s", resp.StatusCode, resp.Header.Get("X-Why"), text)
	}
}

// What each failure lets through, and what the caller gets: this is the suite's word on
// which its sentences rely.
func TestTransportDoesWhatItSays(t *testing.T) {
	type exchange struct{ ask, answer string }
	const whole = "200 done: "
	for name, c := range map[string]struct {
		method    string
		failure   cloudtest.Failure
		breaks    cloudtest.Break
		exchanges []exchange
		heard     []string
	}{
		"throttled, as often as it is tried": {"Limits", cloudtest.Throttled, 0,
			[]exchange{{"look", "429 too many"}, {"look", "429 too many"}, {"look", whole + "look"}}, []string{"look"}},
		"forbidden, in the cloud's words": {"AssignAddresses", cloudtest.Forbidden, 0,
			[]exchange{{"add6 2", "403 policyyou may not"}, {"add6 2", whole + "add6 2"}}, []string{"add6 2"}},
		"unavailable to a read": {"Limits", cloudtest.Unavailable, 0, []exchange{{"look", "500 oh"}}, nil},
		"unavailable to a change": {"AssignAddresses", cloudtest.Unavailable, 0,
			[]exchange{{"add4 1", "failed: *connection refused"}, {"add4 1", whole + "add4 1"}}, []string{"add4 1"}},
		"lost after create": {"CreateInterface", cloudtest.LostAfterCreate, 0,
			[]exchange{{"look", whole + "look"}, {"create", "failed: *connection reset"}, {"attach", whole + "attach"}}, []string{"look", "create", "attach"}},
		"lost after attach": {"CreateInterface", cloudtest.LostAfterAttach, 0,
			[]exchange{{"create", whole + "create"}, {"attach", "failed: *connection reset"}}, []string{"create", "attach"}},
		"lost after the second fill": {"CreateInterface", cloudtest.LostAfterEffect, 0,
			[]exchange{{"fill 4", whole + "fill 4"}, {"fill 6", "failed: *connection reset"}}, []string{"fill 4", "fill 6"}},
		"lost in the middle": {"DeleteInterface", cloudtest.LostAfterEffect, cloudtest.Cut,
			[]exchange{{"detach", whole + "detach"}, {"delete", "200 done: *unexpected EOF"}}, []string{"detach", "delete"}},
		"lost behind an internal error": {"DeleteInterface", cloudtest.LostAfterEffect, cloudtest.Replaced,
			[]exchange{{"delete", "500 oh"}}, []string{"delete"}},
		"nothing to lose of what is refused": {"DeleteInterface", cloudtest.LostAfterEffect, 0,
			[]exchange{{"delete wrong", "400 done: delete wrong"}, {"delete", "failed: *connection reset"}}, []string{"delete wrong", "delete"}},
		"partial": {"AssignAddresses", cloudtest.Partial, 0,
			[]exchange{{"add4 10", whole + "add4 10"}, {"add4 2", "429 too many"}, {"add4 2", whole + "add4 2"}}, []string{"add4 10", "add4 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			tr, l, post := over(t)
			tr.Breaks = c.breaks
			tr.Inject(c.method, c.failure)
			for _, e := range c.exchanges {
				before, after, _ := strings.Cut(e.answer, "*")
				if got := post(e.ask); !strings.HasPrefix(got, before) || !strings.Contains(got, after) {
					t.Errorf("%s: %s, want %s", e.ask, got, e.answer)
				}
			}
			if got := l.all(); !slices.Equal(got, c.heard) {
				t.Errorf("the endpoint heard %q, want %q", got, c.heard)
			}
		})
	}
}

// The caller has its failure, and takes the request for sent, before it leaves.
func TestTransportSendsLate(t *testing.T) {
	l, gate := &listener{}, make(chan struct{})
	tr := cloudtest.NewTransport(t, roundTripper(func(r *http.Request) (*http.Response, error) {
		<-gate
		w := httptest.NewRecorder()
		l.ServeHTTP(w, r)
		return w.Result(), nil
	}), testWire)
	tr.Inject("CreateInterface", cloudtest.Late)
	written := false
	r := httptest.NewRequest(http.MethodPost, "http://cloud/", strings.NewReader("attach"))
	r = r.WithContext(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{WroteHeaders: func() { written = true }}))
	_, err := tr.RoundTrip(r)
	var broken *net.OpError
	if !errors.As(err, &broken) || broken.Op == "dial" || !written {
		t.Errorf("the caller gets %v, and the request is written: %v", err, written)
	}
	if got := l.all(); len(got) != 0 {
		t.Errorf("the endpoint has heard %q already", got)
	}
	close(gate)
	for len(l.all()) == 0 {
		time.Sleep(time.Millisecond)
	}
	if got := l.all(); !slices.Equal(got, []string{"attach"}) {
		t.Errorf("the endpoint heard %q", got)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// witness is a test that fails in place of the real one.
type witness struct {
	testing.TB
	cleanups []func()
	errors   []string
}

func (w *witness) Cleanup(f func()) { w.cleanups = append(w.cleanups, f) }
func (w *witness) Failed() bool     { return len(w.errors) > 0 }
func (w *witness) Errorf(format string, args ...any) {
	w.errors = append(w.errors, fmt.Sprintf(format, args...))
}

// A fault that befell nobody would let a sentence pass that proved nothing.
func TestTransportTellsOfFaultsThatBefellNobody(t *testing.T) {
	for _, c := range []struct {
		ask  []string
		want string
	}{
		{nil, "LostAfterEffect of DeleteInterface has befallen no request of [delete]"},
		{[]string{"detach", "delete wrong"}, "LostAfterEffect of DeleteInterface has befallen no request of [delete]"},
		{[]string{"detach", "delete"}, ""},
	} {
		w := &witness{TB: t}
		tr, _, post := over(w)
		tr.Inject("DeleteInterface", cloudtest.LostAfterEffect)
		for _, ask := range c.ask {
			post(ask)
		}
		for _, f := range slices.Backward(w.cleanups) {
			f()
		}
		if got := strings.Join(w.errors, "\n"); got != c.want {
			t.Errorf("after %q the test is told %q, want %q", c.ask, got, c.want)
		}
	}
}
