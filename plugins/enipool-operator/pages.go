package main

import (
	"net/http"
	"net/http/pprof"

	"github.com/enipool/enipool/pkg/operator"
)

const index = `enipool-operator

/healthz  200 while the operator gets on with what it has to do, or waits for the lease
/readyz   the same
`

// newPages returns the handler of the operator's pages. There is nothing there that changes anything.
func newPages(o *operator.Operator, profile bool) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(index)) })
	healthy := func(w http.ResponseWriter, _ *http.Request) {
		if err := o.Healthy(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ok\n")) // who does not get it asks again
	}
	mux.HandleFunc("GET /healthz", healthy)
	mux.HandleFunc("GET /readyz", healthy)
	if profile {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	return mux
}
