package web

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/enipool/enipool/pkg/operator"
	"github.com/enipool/enipool/pkg/page"
)

const index = `enipool-operator

A browser gets a page of the cluster here.

/metrics        for Prometheus
/healthz        200 while the operator gets on with what it has to do, or waits for the lease
/readyz         the same
/budget         what waits and what may be sent, and what subnets have left, as JSON
/why?node=NAME  what a node wants, has and waits for, and why; with &output=json as JSON
/nodes          the same of all nodes in short, as JSON
/check          what the operator may do in the cloud, as JSON, asked once a minute at most
`

// scrapes is how many scrapes are answered at once.
const scrapes = 2

// Handler serves the pages of an operator, to GET and HEAD alone: there is nothing here that changes anything. profile adds
// pprof below /debug/pprof/.
func (m *Metrics) Handler(o Source, profile bool) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", page.RefuseRebound(m.servePage(o)))
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{DisableCompression: true, MaxRequestsInFlight: scrapes}))
	// One that waits for the lease is as ready as the one that leads.
	healthy := func(w http.ResponseWriter, _ *http.Request) {
		if err := o.Healthy(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		writeText(w, "ok\n")
	}
	mux.HandleFunc("GET /healthz", healthy)
	mux.HandleFunc("GET /readyz", healthy)
	mux.HandleFunc("GET /budget", page.RefuseRebound(answerWith(patience, o.Report)))
	mux.HandleFunc("GET /nodes", page.RefuseRebound(answerWith(patience, o.All)))
	mux.HandleFunc("GET /check", page.RefuseRebound(answerWith(checkTime, o.Check)))
	mux.HandleFunc("GET /why", page.RefuseRebound(func(w http.ResponseWriter, r *http.Request) { showWhy(w, r, o) }))
	if profile {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	return mux
}

// checkTime is how long a check of the cloud may take.
const checkTime = time.Minute

// answerWith answers with what a question is answered, as JSON.
func answerWith[T any](within time.Duration, question func(context.Context) (T, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), within)
		defer cancel()
		answer, err := question(ctx)
		if err != nil {
			writeAway(w, err)
			return
		}
		writeJSON(w, answer)
	}
}

// showWhy answers what the operator knows of one node.
func showWhy(w http.ResponseWriter, r *http.Request, o Source) {
	name := r.URL.Query().Get("node")
	if name == "" {
		http.Error(w, "name a node: /why?node=NAME", http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	why, err := o.Why(ctx, name)
	switch {
	case err != nil:
		writeAway(w, err)
	case r.URL.Query().Get("output") == "json":
		writeJSON(w, why)
	case why.Unknown:
		http.Error(w, "the cluster has no node "+strings.ToValidUTF8(name, "?"), http.StatusNotFound)
	default:
		writeText(w, strings.Join(why.Lines(time.Now()), "\n")+"\n")
	}
}

// writeAway answers that another operator has to be asked, or why this one does not answer.
func writeAway(w http.ResponseWriter, err error) {
	if errors.Is(err, operator.ErrNotLeading) {
		http.Error(w, err.Error()+"; the Lease enipool-operator names the one that does", http.StatusServiceUnavailable)
		return
	}
	http.Error(w, "the operator does not answer: "+err.Error(), http.StatusGatewayTimeout)
}

func writeText(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write([]byte(text)) // who does not get it asks again
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	_ = e.Encode(v)
}
