package kube

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"
)

// link sees every request and says in the log, once, when the API server goes away,
// when it comes back, what it refuses, and what it fails to do.
type link struct {
	log *slog.Logger

	mu   sync.Mutex
	away time.Time          // since when, zero while it answers
	bad  map[string]outcome // what is not done, by request
}

// outcome is what becomes of requests of a kind.
type outcome uint8

const (
	worked outcome = iota
	refused
	failed // by the server itself: a webhook or its storage does not answer
)

func outcomeOf(code int) outcome {
	switch code {
	case http.StatusUnauthorized, http.StatusForbidden:
		return refused
	case http.StatusInternalServerError:
		return failed
	}
	return worked
}

// wrapTransport puts the link around what sends requests. It sees tokens and certificates no
// more than their headers pass by: nothing of a request is logged but its method and
// the kind it is about.
func (l *link) wrapTransport(next http.RoundTripper) http.RoundTripper { return watched{next, l} }

type watched struct {
	http.RoundTripper
	link *link
}

// WrappedRoundTripper lets client-go close idle connections below.
func (w watched) WrappedRoundTripper() http.RoundTripper { return w.RoundTripper }

// RoundTrip sends a request and notes what became of it.
func (w watched) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := w.RoundTripper.RoundTrip(r)
	switch {
	case err != nil && errors.Is(context.Cause(r.Context()), context.Canceled):
		// it was not wanted any more
	case err != nil:
		w.link.noteAway(err.Error())
	case answer.StatusCode > http.StatusInternalServerError: // of what stands before it, or it is about to start or end
		w.link.noteAway(answer.Status)
	default:
		w.link.noteAnswer(r, answer)
	}
	return answer, err
}

func (l *link) noteAway(why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.away.IsZero() {
		l.away = time.Now()
		l.log.Warn("the API server does not answer; the node goes on with what it knows", "error", why)
	}
}

func (l *link) noteAnswer(r *http.Request, answer *http.Response) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.away.IsZero() {
		l.log.Info("the API server answers again", "away", time.Since(l.away).Round(time.Second))
		l.away = time.Time{}
	}
	what, is := r.Method+" "+kindOf(r.URL.Path), outcomeOf(answer.StatusCode)
	was := l.bad[what]
	if is == was {
		return
	}
	if l.bad == nil {
		l.bad = map[string]outcome{}
	}
	l.bad[what] = is
	switch {
	case is == refused:
		l.log.Warn("the API server refuses a request; look at the agent's service account and its roles", "request", what, "answer", answer.Status)
	case is == failed:
		l.log.Warn("the API server fails to do a request; look at the webhooks for it and at the server's log", "request", what, "answer", answer.Status)
	case was == refused:
		l.log.Info("the API server allows a request that it refused before", "request", what)
	default:
		l.log.Info("the API server does a request that it failed to do before", "request", what)
	}
}

// kindOf returns what a path is about, like "pods" or "nodes/status".
func kindOf(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if parts[0] == "apis" { // and a group
		parts = parts[1:]
	}
	if len(parts) > 4 && parts[2] == "namespaces" {
		parts = append(parts[:2], parts[4:]...)
	}
	switch {
	case len(parts) < 3:
		return path
	case len(parts) < 5:
		return parts[2]
	}
	return parts[2] + "/" + parts[4]
}
