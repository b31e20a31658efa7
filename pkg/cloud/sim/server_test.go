package sim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// calls makes some calls that look and some that change, and returns the kinds of their
// errors.
func calls(ctx context.Context, c driver.Driver) map[string]error {
	kinds := map[string]error{}
	note := func(method string, err error) {
		if err != nil {
			err = cloud.Kind(err)
		}
		kinds[method] = err
	}
	own := driver.Interface{ID: "eni-00000001"}
	_, err := c.Shape(ctx, driver.Self{Instance: "n1"})
	note("Shape", err)
	_, err = c.Interfaces(ctx, driver.Filter{Attached: driver.Self{Instance: "n1"}})
	note("Interfaces", err)
	_, err = c.Subnets(ctx, driver.SubnetFilter{IDs: []string{"a"}})
	note("Subnets", err)
	_, err = c.Create(ctx, driver.Create{Subnet: "a", Token: "t"})
	note("Create", err)
	_, err = c.Attach(ctx, driver.Attach{ID: "eni-00000003", Instance: "n1", Index: 1})
	note("Attach", err)
	_, err = c.Assign(ctx, driver.Assign{On: own, Family: eni.IPv4, Count: driver.Count{Singles: 1}})
	note("Assign", err)
	note("Unassign", c.Unassign(ctx, driver.Unassign{On: own, Family: eni.IPv4, Addresses: addrs("10.0.0.5")}))
	note("SetGroups", c.SetGroups(ctx, "eni-00000001", []string{}, ""))
	return kinds
}

// want is what calls returns when those that change something fail with one kind
// and the others with another.
func want(reads, changes error) map[string]error {
	return map[string]error{"Shape": reads, "Interfaces": reads, "Subnets": reads,
		"Create": changes, "Attach": changes, "Assign": changes, "Unassign": changes, "SetGroups": changes}
}

// assignOne puts an address on the node's own ENI.
func assignOne(ctx context.Context, c driver.Driver) error {
	_, err := c.Assign(ctx, driver.Assign{On: driver.Interface{ID: "eni-00000001"}, Family: eni.IPv4, Count: driver.Count{Singles: 1}})
	return err
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
	_, err := Listen(path)
	if err == nil || !strings.Contains(err.Error(), "another process serves it") {
		t.Errorf("Listen = %v", err)
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
	_, err := Listen("/nowhere/s")
	if err == nil || !strings.HasPrefix(err.Error(), "listen on /nowhere/s: ") {
		t.Errorf("Listen = %v", err)
	}
	l, err := Listen(filepath.Join(t.TempDir(), "s"))
	must(t, err)
	l.Close()
	a := newAccount(t, Options{})
	if err := a.Serve(t.Context(), l, a.Handler()); err == nil {
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
		"half":        func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"value":["10.`) },
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
			if got := a.Calls()[ActAssign]; got != 1 {
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
	wantKind(t, assignOne(ctx, dial(t, srv.URL, "n1")), cloud.ErrUnknown)
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
	wantKind(t, assignOne(ctx, dial(t, srv.URL, "n1")), cloud.ErrUnknown)
	<-ended
	if got := a.Snapshot().Nodes["n1"][0].Addresses; len(got) > 0 {
		t.Errorf("the ENI got %v", got)
	}
}

func TestAServerThatStopsAnswersWhatIsUnderWay(t *testing.T) {
	a := newAccount(t, Options{Latency: map[string]Latency{ActAssign: {Base: time.Hour}}})
	path := filepath.Join(t.TempDir(), "s")
	l, err := Listen(path)
	must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error)
	go func() { served <- a.Serve(ctx, l, a.Handler()) }()
	failed := make(chan error)
	c := dial(t, "unix://"+path, "n1")
	go func() { failed <- assignOne(t.Context(), c) }()
	for a.Calls()[ActAssign] == 0 {
		time.Sleep(time.Millisecond)
	}
	stop()
	wantKind(t, <-failed, cloud.ErrUnknown)
	must(t, <-served)
}

func TestAnErrorTravelsWhole(t *testing.T) {
	a := newAccount(t, Options{})
	c, here := dial(t, "unix://"+serve(t, a), "n1"), a.NodeDriver("n1")
	faults := []error{&Error{Reason: Throttled, RetryAfter: 1500 * time.Millisecond}, &Error{Reason: NoSuchAddress}, &Error{Reason: InterfaceInUse}}
	faults = append(faults, cloud.Kinds()...)
	for _, fault := range faults {
		a.FailNext(ActDelete, Fault{Err: fault}, Fault{Err: fault})
		near, far := here.Delete(t.Context(), "eni-7", ""), c.Delete(t.Context(), "eni-7", "")
		var one, two *driver.Error
		if !errors.As(near, &one) || !errors.As(far, &two) || *one != *two {
			t.Errorf("the error of another process is %#v, want %#v", far, near)
		}
	}
}

// What a driver says is the same here and over a socket.
func TestAValueTravelsWhole(t *testing.T) {
	a := newAccount(t, Options{})
	c, here := dial(t, "unix://"+serve(t, a), "n1"), a.NodeDriver("n1")
	must(t, assignOne(t.Context(), c))
	_, err := a.Node("n1").CreateInterface(t.Context(), cloud.Create{Token: "t1", Subnet: "b", V4: 2, V6: 1})
	must(t, err)
	same := func(near, far any, errs ...error) {
		t.Helper()
		if diff := cmp.Diff(near, far, cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})); diff != "" || errors.Join(errs...) != nil {
			t.Errorf("%v, over a socket (-here +there):\n%s", errs, diff)
		}
	}
	for _, f := range []driver.Filter{{Attached: driver.Self{Instance: "n1"}}, {Made: "n1"}, {IDs: []string{"eni-00000003"}}} {
		near, one := here.Interfaces(t.Context(), f)
		far, two := c.Interfaces(t.Context(), f)
		same(near, far, one, two)
	}
	near, one := here.Subnets(t.Context(), driver.SubnetFilter{Tags: AnySubnet()})
	far, two := c.Subnets(t.Context(), driver.SubnetFilter{Tags: AnySubnet()})
	same(near, far, one, two)
	shape, one := here.Shape(t.Context(), driver.Self{Instance: "n1"})
	shape2, two := c.Shape(t.Context(), driver.Self{Instance: "n1"})
	same(shape, shape2, one, two)
}

func TestWhatIsNoCallIsRefused(t *testing.T) {
	h := newAccount(t, Options{}).Handler()
	for _, tt := range []struct {
		method, path, body string
		status             int
		answer             string
	}{
		{"POST", "/v1/calls", `{"method":"Alive","node":"n1","args":["n1","n7"]}`, 200, `{"value":{"n1":"running","n7":"gone"}}`},
		{"POST", "/v1/calls", `{"method":"Alive","node":"n1","args":7}`, 200, `{"error":{"kind":"forbidden","detail":"bad arguments: json: cannot unmarshal number into Go value of type []string"}}`},
		{"POST", "/v1/calls", `{"method":"Reboot","node":"n1"}`, 400, "no such method"},
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
