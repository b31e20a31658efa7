package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/enipool/enipool/pkg/page"
	"github.com/enipool/enipool/pkg/status"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const index = `enipool-agent

A browser on the node, or by kubectl port-forward, gets a page of the node here.

/metrics  for Prometheus
/healthz  200 while the loop ticks, whatever cloud and API server do
/readyz   200 while pods can get addresses, else 503 and why
/status   what the last tick found, as JSON
`

// scrapes is how many scrapes are answered at once. Each holds all metrics in
// memory.
const scrapes = 2

// Handler serves the pages, to GET and HEAD alone: there is nothing here that
// changes anything. pool is for the page that browsers get. profile adds pprof below /debug/pprof/.
func (m *Metrics) Handler(pool ReadPool, profile bool) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", m.servePage(pool))
	// Compression would take more memory than all the rest.
	mux.Handle("/metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{DisableCompression: true, MaxRequestsInFlight: scrapes}))
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { writeAnswer(w, m.stalled(m.seen.Load()), "ok\n") })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) { writeAnswer(w, m.unready(m.seen.Load()), "ok\n") })
	mux.HandleFunc("/status", page.RefuseRebound(m.writeStatus))
	if profile {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	return readOnly(mux)
}

func readOnly(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "nothing here can be changed", http.StatusMethodNotAllowed)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// writeAnswer answers 200 and text, or 503 and what is wrong.
func writeAnswer(w http.ResponseWriter, wrong, text string) {
	if wrong != "" {
		http.Error(w, wrong, http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte(text)) // who does not get it asks again
}

// stalled says since when the loop hangs, "" while it lives. newest is the last status,
// nil before the first. Only its own ticks
// count, so that a cloud or an API server that is down does not end the agent. A
// loop that has not ticked yet has as long as between two ticks.
func (m *Metrics) stalled(newest *observed) string {
	last, most := m.begun, status.Status{}.Late()
	if newest != nil {
		last, most = newest.at, newest.Late()
	}
	if age := time.Since(last); age > most {
		return fmt.Sprintf("the loop hangs: no tick for %s", age.Truncate(time.Second))
	}
	return ""
}

// unready says why the agent is not ready, "" if it is.
func (m *Metrics) unready(newest *observed) string {
	hangs := m.stalled(newest)
	switch {
	case hangs != "":
		return hangs
	case newest == nil:
		return "no tick yet"
	case newest.Ready:
		return ""
	case newest.Problem == "":
		return "not ready"
	default:
		return newest.Problem
	}
}

func (m *Metrics) writeStatus(w http.ResponseWriter, _ *http.Request) {
	newest := m.seen.Load()
	if newest == nil {
		writeAnswer(w, "no tick yet", "")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	_ = e.Encode(struct {
		Format int `json:"format"` // as with what enipoolctl prints for programs: within one version no name goes
		*status.Status
	}{1, &newest.Status})
}
