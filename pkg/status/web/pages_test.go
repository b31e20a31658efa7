package web

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/status"
	"github.com/google/go-cmp/cmp"
)

// answers is what the two health pages say.
func answers(m *Metrics) (health, ready string) {
	page := func(path string) string {
		w := get(m, path)
		if w.Code == http.StatusOK {
			return strings.TrimSpace(w.Body.String())
		}
		return http.StatusText(w.Code) + ": " + strings.TrimSpace(w.Body.String())
	}
	return page("/healthz"), page("/readyz")
}

func TestHealthIsAboutTheLoopAndReadinessAboutThePods(t *testing.T) {
	const hangs = "Service Unavailable: the loop hangs: no tick for "
	minute := func(s status.Status) status.Status {
		s.Written = time.Now()
		s.Due = s.Written.Add(time.Minute)
		return s
	}
	for _, tt := range []struct {
		name          string
		last          *status.Status // nil: none yet
		wait          time.Duration  // after it
		health, ready string
	}{
		{"it starts", nil, 0, "ok", "Service Unavailable: no tick yet"},
		{"it starts slowly", nil, 3 * time.Minute, "ok", "Service Unavailable: no tick yet"},
		{"it does not start", nil, 3*time.Minute + time.Second, hangs + "3m1s", hangs + "3m1s"},
		{"all is well", &status.Status{Ready: true}, 0, "ok", "ok"},
		{"all is well with a problem", &status.Status{Ready: true, Problem: "subnet full"}, 0, "ok", "ok"},
		{"the cloud is away", &status.Status{Problem: "cloud has not answered yet"}, 0, "ok", "Service Unavailable: cloud has not answered yet"},
		{"nobody says why", &status.Status{}, 0, "ok", "Service Unavailable: not ready"},
		{"a tick takes long", &status.Status{Ready: true}, 3 * time.Minute, "ok", "ok"},
		{"a tick does not end", &status.Status{Ready: true}, 3*time.Minute + time.Second, hangs + "3m1s", hangs + "3m1s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := New("v1")
				if tt.last != nil {
					time.Sleep(time.Hour) // long ago does not matter
					m.Observe(minute(*tt.last))
				}
				time.Sleep(tt.wait)
				health, ready := answers(m)
				if health != tt.health || ready != tt.ready {
					t.Errorf("health: %s\nready: %s", health, ready)
				}
				if told := scrape(t, m)["enipool_ready"] == 1; told != (tt.ready == "ok") {
					t.Errorf("enipool_ready says %v", told)
				}
			})
		})
	}
}

// A loop that ticks rarely, because it is told to, is not restarted for it.
func TestHealthKnowsWhenTheNextTickIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New("v1")
		m.Observe(status.Status{Ready: true, Written: time.Now(), Due: time.Now().Add(time.Hour)})
		time.Sleep(62 * time.Minute)
		if health, _ := answers(m); health != "ok" {
			t.Errorf("after 62 minutes of 60: %s", health)
		}
		time.Sleep(time.Minute)
		if health, _ := answers(m); health == "ok" {
			t.Error("after 63 minutes of 60 it is still healthy")
		}
	})
}

func TestTheStatusIsServedAsItIs(t *testing.T) {
	m := New("v1")
	if w := get(m, "/status"); w.Code != http.StatusServiceUnavailable {
		t.Errorf("before the first tick: %d %s", w.Code, w.Body)
	}
	want := status.Status{Node: "n1", Demand: 36, TargetCauses: []string{"no room"}, Addresses: status.Addresses{Attached: 48}}
	m.Observe(want)
	w := get(m, "/status")
	if !strings.HasPrefix(w.Body.String(), "{\n  \"format\": 1,\n  \"node\": \"n1\",") {
		t.Errorf("it does not begin with the version of its format: %s", w.Body)
	}
	var got status.Status
	err := json.Unmarshal(w.Body.Bytes(), &got)
	if diff := cmp.Diff(want, got); diff != "" || err != nil || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%v %v\n%s", err, w.Header(), diff)
	}
}

func TestPagesAreForReadingAlone(t *testing.T) {
	m := New("v1")
	m.Observe(status.Status{Ready: true})
	for _, path := range []string{"/", "/metrics", "/healthz", "/readyz", "/status", "/debug/pprof/", "/none"} {
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, "PURGE"} {
			w := httptest.NewRecorder()
			m.Handler(nil, true).ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader("x")))
			if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
				t.Errorf("%s %s: %d, Allow %q", method, path, w.Code, w.Header().Get("Allow"))
			}
		}
		w := httptest.NewRecorder()
		m.Handler(nil, true).ServeHTTP(w, httptest.NewRequest(http.MethodHead, path, nil))
		if want := path != "/none"; (w.Code == http.StatusOK) != want {
			t.Errorf("HEAD %s: %d", path, w.Code)
		}
	}
}

func TestTheIndexNamesThePages(t *testing.T) {
	m := New("v1")
	m.Observe(status.Status{Ready: true})
	text := get(m, "/").Body.String()
	pages := 0
	for line := range strings.Lines(text) {
		if path, _, _ := strings.Cut(line, " "); strings.HasPrefix(path, "/") {
			pages++
			if w := get(m, path); w.Code != http.StatusOK {
				t.Errorf("%s: %d", path, w.Code)
			}
		}
	}
	if pages != 4 {
		t.Errorf("%d pages in the index:\n%s", pages, text)
	}
}

func TestProfilesAreServedOnlyWhenAskedFor(t *testing.T) {
	m := New("v1")
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/cmdline", "/debug/pprof/heap", "/debug/pprof/symbol"} {
		for _, profile := range []bool{false, true} {
			w := httptest.NewRecorder()
			m.Handler(nil, profile).ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
			if (w.Code == http.StatusOK) != profile {
				t.Errorf("profile %v: %s: %d", profile, path, w.Code)
			}
		}
	}
}

func TestAWebSiteWhoseNameLeadsHereIsNotToldTheStatus(t *testing.T) {
	m := New("v1")
	m.Observe(status.Status{Node: "n1", Ready: true})
	for host, want := range map[string]int{"evil.example:9809": http.StatusMisdirectedRequest, "localhost:9809": http.StatusOK, "127.0.0.1:9809": http.StatusOK} {
		r, w := httptest.NewRequest(http.MethodGet, "/status", nil), httptest.NewRecorder()
		r.RemoteAddr, r.Host = "127.0.0.1:40000", host
		if m.Handler(nil, false).ServeHTTP(w, r); w.Code != want {
			t.Errorf("as %s: %d", host, w.Code)
		}
	}
}
