package wire

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// odd answers each path in a way of its own.
func odd(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Date", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat))
	switch r.URL.Path {
	case "/busy":
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
	case "/away":
		http.Redirect(w, r, "/fine", http.StatusFound)
	case "/long":
		_, _ = w.Write([]byte(strings.Repeat("x", 100)))
	case "/cut":
		w.Header().Set("Content-Length", "50")
		_, _ = w.Write([]byte("half"))
	default:
		_, _ = w.Write([]byte("fine"))
	}
}

func TestAnExchangeTellsWhatCameOfARequest(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(odd))
	defer server.Close()
	for path, is := range map[string]func(Answer) bool{
		"/fine": func(a Answer) bool { return a.Status == 200 && string(a.Body) == "fine" && a.Err == nil },
		"/busy": func(a Answer) bool {
			return a.After == 7*time.Second && a.HTTPStatus() == "HTTP 429 Too Many Requests" && a.Err == nil
		},
		"/away": func(a Answer) bool { return a.Status == 302 && errors.Is(a.Err, ErrElsewhere) },
		"/long": func(a Answer) bool { return errors.Is(a.Err, ErrLong) },
		"/cut":  func(a Answer) bool { return a.Status == 200 && a.Err != nil && string(a.Body) == "half" },
	} {
		var clock Clock
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if a := Exchange(Transport(), r, 99, &clock); !a.Sent || !is(a) {
			t.Errorf("%s: %+v", path, a)
		}
		if ahead, known := clock.Skew(); !known || ahead.Round(time.Minute) != time.Hour {
			t.Errorf("%s: the clock is ahead by %s, %v", path, ahead, known)
		}
	}
}

func TestARequestThatIsNotSentTellsTheReasonWithoutItsURL(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	why := errors.New("the agent ends")
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	for ctx, want := range map[context.Context]string{t.Context(): "refused", ended: why.Error()} {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/secret-path", nil)
		if err != nil {
			t.Fatal(err)
		}
		a := Exchange(Transport(), r, 99, nil)
		if a.Sent || a.Status != 0 || a.Err == nil || !strings.Contains(a.Err.Error(), want) || strings.Contains(a.Err.Error(), "secret-path") {
			t.Errorf("%+v, want %q", a, want)
		}
	}
}
