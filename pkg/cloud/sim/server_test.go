package sim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// calls makes one call of each method and returns the kinds of their errors.
func calls(ctx context.Context, c cloud.Cloud) map[string]error {
	kinds := map[string]error{}
	note := func(method string, err error) {
		if err != nil {
			err = cloud.Kind(err)
		}
		kinds[method] = err
	}
	_, err := c.Limits(ctx)
	note("Limits", err)
	_, err = c.Interfaces(ctx)
	note("Interfaces", err)
	_, err = c.Subnets(ctx)
	note("Subnets", err)
	_, err = c.CreateInterface(ctx, cloud.Create{Token: "t", Subnet: "a", V4: 1})
	note("CreateInterface", err)
	_, err = c.AssignAddresses(ctx, "eni-00000001", eni.IPv4, 1)
	note("AssignAddresses", err)
	note("UnassignAddresses", c.UnassignAddresses(ctx, "eni-00000001", addrs("10.0.0.4")))
	note("DeleteInterface", c.DeleteInterface(ctx, "eni-00000003"))
	return kinds
}

// want is what calls returns when those that change something fail with one kind
// and the others with another.
func want(reads, changes error) map[string]error {
	return map[string]error{"Limits": reads, "Interfaces": reads, "Subnets": reads,
		"CreateInterface": changes, "AssignAddresses": changes, "UnassignAddresses": changes, "DeleteInterface": changes}
}

func sameKinds(t *testing.T, want, got map[string]error) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateErrors()); diff != "" {
		t.Errorf("kinds of errors (-want +got):\n%s", diff)
	}
}

func TestASocketIsItsOwnersAlone(t *testing.T) {
	path := serve(t, newAccount(t, Options{}))
	info, err := os.Stat(path)
	must(t, err)
	if info.Mode() != os.ModeSocket|0o600 {
		t.Errorf("the socket has mode %v", info.Mode())
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
		t.Errorf("beside the socket is something else: %v", entries)
	}
	sameKinds(t, want(nil, nil), calls(t.Context(), dial(t, "unix://"+path, "n1")))
}

func TestASocketThatIsServedIsNotTaken(t *testing.T) {
	path := serve(t, newAccount(t, Options{}))
	err := newAccount(t, Options{}).Serve(t.Context(), path)
	if err == nil || !strings.Contains(err.Error(), "another process serves it") {
		t.Errorf("Serve = %v", err)
	}
	sameKinds(t, want(nil, nil), calls(t.Context(), dial(t, "unix://"+path, "n1")))
}

func TestASocketThatWasLeftIsTaken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	left, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: path})
	must(t, err)
	left.SetUnlinkOnClose(false)
	left.Close()
	l, err := Listen(path)
	must(t, err)
	must(t, l.Close())
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a closed socket is left: %v", err)
	}
}

func TestServeSaysWhyItCannot(t *testing.T) {
	err := newAccount(t, Options{}).Serve(t.Context(), "/nowhere/s")
	if err == nil || !strings.HasPrefix(err.Error(), "listen on /nowhere/s: ") {
		t.Errorf("Serve = %v", err)
	}
	l, err := Listen(filepath.Join(t.TempDir(), "s"))
	must(t, err)
	l.Close()
	if err := newAccount(t, Options{}).ServeOn(t.Context(), l); err == nil {
		t.Error("a closed listener was served")
	}
}

func TestAnEndpointMayBeALoopbackPort(t *testing.T) {
	srv := httptest.NewServer(newAccount(t, Options{}).Handler())
	defer srv.Close()
	sameKinds(t, want(nil, nil), calls(t.Context(), dial(t, srv.URL, "n1")))
}

func TestAWrongEndpointIsRefused(t *testing.T) {
	for _, endpoint := range []string{"", "unix://relative/path", "/run/sim", "https://127.0.0.1:1", "http://", "http://h/path", "http://h:x"} {
		if _, err := Dial(endpoint, "n1"); err == nil {
			t.Errorf("Dial(%q) = nil", endpoint)
		}
	}
}

func TestACallThatDidNotReachIsUnavailable(t *testing.T) {
	dir := t.TempDir()
	sameKinds(t, want(cloud.ErrUnavailable, cloud.ErrUnavailable), calls(t.Context(), dial(t, "unix://"+dir+"/none", "n1")))

	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	l.Close()
	sameKinds(t, want(cloud.ErrUnavailable, cloud.ErrUnavailable), calls(t.Context(), dial(t, "http://"+l.Addr().String(), "n1")))

	path := serve(t, newAccount(t, Options{}))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	sameKinds(t, want(cloud.ErrUnavailable, cloud.ErrUnavailable), calls(ended, dial(t, "unix://"+path, "n1")))
}

func TestACallWhoseAnswerIsLostIsUnknown(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"cut":         func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"half":        func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"addresses":["10.`) },
		"not a cloud": http.NotFound,
	} {
		t.Run(name, func(t *testing.T) {
			a := newAccount(t, Options{})
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				a.Handler().ServeHTTP(httptest.NewRecorder(), r)
				answer(w, r)
			}))
			defer srv.Close()
			sameKinds(t, want(cloud.ErrUnavailable, cloud.ErrUnknown), calls(t.Context(), dial(t, srv.URL, "n1")))
			if got := a.Calls()["AssignAddresses"]; got != 1 {
				t.Errorf("the call was made %d times, want once", got)
			}
		})
	}
}

func TestACallThatIsGivenUpUnderWayIsUnknown(t *testing.T) {
	under := make(chan bool)
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		under <- true
		<-under
	}))
	defer srv.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-under; cancel() }()
	_, err := dial(t, srv.URL, "n1").AssignAddresses(ctx, "eni-00000001", eni.IPv4, 1)
	wantKind(t, err, cloud.ErrUnknown)
	under <- true
}

// The caller hangs up: what has not begun does not begin.
func TestAnAccountHearsThatItsCallerHasGone(t *testing.T) {
	a := newAccount(t, Options{Latency: map[string]Latency{"": {Base: time.Hour}}})
	reached := make(chan bool)
	ended := make(chan bool)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		go func() { reached <- true }()
		a.Handler().ServeHTTP(w, r)
		ended <- true
	}))
	defer srv.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-reached; cancel() }()
	_, err := dial(t, srv.URL, "n1").AssignAddresses(ctx, "eni-00000001", eni.IPv4, 1)
	wantKind(t, err, cloud.ErrUnknown)
	<-ended
	if got := a.Snapshot().Nodes["n1"][0].Addresses; len(got) > 0 {
		t.Errorf("the ENI got %v", got)
	}
}

func TestAServerThatStopsAnswersWhatIsUnderWay(t *testing.T) {
	a := newAccount(t, Options{Latency: map[string]Latency{"AssignAddresses": {Base: time.Hour}}})
	path := filepath.Join(t.TempDir(), "s")
	l, err := Listen(path)
	must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error)
	go func() { served <- a.ServeOn(ctx, l) }()
	failed := make(chan error)
	go func() {
		c, _ := Dial("unix://"+path, "n1")
		_, err := c.AssignAddresses(t.Context(), "eni-00000001", eni.IPv4, 1)
		failed <- err
	}()
	for a.Calls()["AssignAddresses"] == 0 {
		time.Sleep(time.Millisecond)
	}
	stop()
	wantKind(t, <-failed, cloud.ErrUnavailable)
	must(t, <-served)
}

func TestAnErrorTravelsWhole(t *testing.T) {
	a := newAccount(t, Options{})
	c := dial(t, "unix://"+serve(t, a), "n1")
	for _, kind := range cloud.Kinds() {
		f := Fault{Err: kind, RetryAfter: 1500 * time.Millisecond}
		a.FailNext("DeleteInterface", f, f)
		var near, far *cloud.Error
		if !errors.As(a.Old("n1").DeleteInterface(t.Context(), "eni-7"), &near) ||
			!errors.As(c.DeleteInterface(t.Context(), "eni-7"), &far) || *near != *far {
			t.Errorf("the error of another process is %#v, want %#v", far, near)
		}
		if !errors.Is(far, kind) || far.RetryAfter != f.RetryAfter {
			t.Errorf("error %#v, want %v again in %v", far, kind, f.RetryAfter)
		}
	}
	a.FailNext("AssignAddresses", Fault{Partial: true, Err: cloud.ErrThrottled})
	got, err := c.AssignAddresses(t.Context(), "eni-00000001", eni.IPv4, 4)
	wantKind(t, err, cloud.ErrThrottled)
	if len(got) != 2 {
		t.Errorf("with the error came %v, want 2 addresses", got)
	}
}

func TestWhatIsNoCallIsRefused(t *testing.T) {
	h := newAccount(t, Options{}).Handler()
	for _, tt := range []struct {
		method, path, body string
		status             int
		answer             string
	}{
		{"POST", "/v1/calls", `{"method":"Limits","node":"n1"}`, 200, `{"limits":{"ENIs":4,"V4":8,"V6":8,"V4Block":{"Bits":0,"Size":0},"V6Block":{"Bits":0,"Size":0}}}`},
		{"POST", "/v1/calls", `{"method":"Reboot","node":"n1"}`, 200, `{"error":{"kind":"forbidden","detail":"no such method"}}`},
		{"POST", "/v1/calls", `{"method":`, 400, "unexpected EOF"},
		{"POST", "/v1/calls", `"` + strings.Repeat("x", maxBody), 400, "http: request body too large"},
		{"GET", "/v1/calls", "", 405, "Method Not Allowed"},
		{"POST", "/", "", 404, "404 page not found"},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(tt.method, tt.path, strings.NewReader(tt.body)))
		if got := strings.TrimSpace(w.Body.String()); w.Code != tt.status || got != tt.answer {
			t.Errorf("%s %s %.20s: %d %s, want %d %s", tt.method, tt.path, tt.body, w.Code, got, tt.status, tt.answer)
		}
	}
}
