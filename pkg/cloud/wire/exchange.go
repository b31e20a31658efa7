package wire

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Answer is the outcome of an Exchange.
type Answer struct {
	Sent   bool   // the request may have reached the other side
	Status int    // of HTTP, 0 if there is no answer
	Line   string // the status as it was written: "404 Not Found"
	Header http.Header
	After  time.Duration // Retry-After of the header, at most an hour, 0 if there is none
	Body   []byte
	Err    error // why there is no answer, or why it does not count
}

// HTTPStatus names the answer's status: "HTTP 404 Not Found".
func (a Answer) HTTPStatus() string {
	return strings.TrimSpace("HTTP " + cmp.Or(a.Line, strconv.Itoa(a.Status)))
}

// Why an answer with a status does not count.
var (
	ErrLong      = errors.New("the answer is too long")
	ErrElsewhere = errors.New("the endpoint redirects to elsewhere")
)

// Exchange sends the request once and reads an answer of at most most bytes. It follows no redirect,
// because a signature is for one host. The clock, unless nil, is told the answer's date. If the
// context has ended, its cause is the error, whatever failed.
func Exchange(by http.RoundTripper, req *http.Request, most int64, clock *Clock) (a Answer) {
	var sent Sent
	client := &http.Client{Transport: by, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req.WithContext(sent.Trace(req.Context())))
	a.Sent = sent.Load()
	if err != nil {
		a.Err = cmp.Or(context.Cause(req.Context()), errors.Unwrap(err)) // unwrapped, because a *url.Error quotes the URL
		return a
	}
	defer func() { _ = resp.Body.Close() }()
	a.Status, a.Line, a.Header, a.After = resp.StatusCode, resp.Status, resp.Header, retryAfter(resp.Header.Get("Retry-After"))
	if theirs, wrong := http.ParseTime(resp.Header.Get("Date")); wrong == nil && clock != nil {
		clock.Note(time.Now(), theirs)
	}
	// One byte more than may come tells an answer that is too long from one that fits exactly.
	a.Body, a.Err = io.ReadAll(io.LimitReader(resp.Body, most+1))
	switch ended := context.Cause(req.Context()); {
	case a.Status >= 300 && a.Status < 400:
		a.Err = ErrElsewhere
	case int64(len(a.Body)) > most:
		a.Err = ErrLong
	case a.Err != nil && ended != nil:
		a.Err = ended
	}
	return a
}

// retryAfter reads the header if it is in seconds; as a date it does not count.
func retryAfter(header string) time.Duration {
	seconds, err := strconv.Atoi(header)
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(min(seconds, 3600)) * time.Second
}

// Transport returns a new transport for one client. It uses the proxies of the environment, verifies
// TLS, and waits no more than a minute for the header of an answer.
func Transport() *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		OnProxyConnectResponse: HearProxy,
		DialContext:            (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
		TLSHandshakeTimeout:    10 * time.Second,
		ResponseHeaderTimeout:  time.Minute,
		IdleConnTimeout:        time.Minute,
		MaxIdleConnsPerHost:    4,
	}
}
