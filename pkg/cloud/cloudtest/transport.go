package cloudtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Transport makes faults on the client's side of an endpoint, so that the sentences
// about failures run over any: our own, somebody else's emulator, a real account. It
// changes no request, for clouds sign them. What it tells the client is what a network
// can do to it:
//
//	Throttled, Forbidden    the cloud's own refusal; the request never leaves
//	Unavailable             of a read the cloud's own 5xx, of a change nobody listens
//	Lost...                 the request is carried out, and its answer is broken
//	Late                    the client sees the connection break; then the request leaves
//	Partial                 one request of a change passes, the next is refused
//
// So Partial needs a change of several requests. Half of a single one, an ENI that
// attaches slowly or a subnet that is full only the endpoint itself can make.
type Transport struct {
	Breaks Break // of answers that are lost

	t    testing.TB
	base http.RoundTripper
	wire Wire

	mu    sync.Mutex
	queue []*fault // in the order of Inject
	late  sync.WaitGroup
}

// Break is how an answer is lost.
type Break uint8

// The ways an answer is lost. The client can't tell from any of them whether the
// request was carried out.
const (
	Dropped  Break = iota // the connection ends before the answer
	Cut                   // the connection ends in the middle of the body
	Replaced              // the answer is the cloud's 5xx
)

// lateBy is how long after its failure a Late request leaves.
const lateBy = 5 * time.Millisecond

// fault is what happens to the next requests of these actions.
type fault struct {
	method  string
	failure Failure
	actions []string
	before  int // how many requests pass first
	times   int // how many requests it happens to
}

// NewTransport returns a Transport over base. At the end of the test it waits for late requests, and
// fails the test if a fault has happened to no request: then the sentence has proved nothing.
func NewTransport(t testing.TB, base http.RoundTripper, w Wire) *Transport {
	tr := &Transport{t: t, base: base, wire: w}
	t.Cleanup(func() {
		tr.late.Wait()
		tr.mu.Lock()
		defer tr.mu.Unlock()
		for _, f := range tr.queue {
			if !t.Failed() {
				t.Errorf("%s of %s has befallen no request of %v", f.failure, f.method, f.actions)
			}
		}
	})
	return tr
}

// Inject is a Subject's.
func (tr *Transport) Inject(method string, failure Failure) {
	tr.t.Helper()
	actions, before := tr.wire.Steps[method].requestsFor(failure)
	if len(actions) == 0 {
		tr.t.Fatalf("no request of %s is known that %s could befall", method, failure)
	}
	times := 1
	if tr.wire.Tries != nil {
		times = tr.wire.Tries(actions[0], failure)
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.queue = append(tr.queue, &fault{method, failure, actions, before, times})
}

// nextFault returns the fault that happens to a request, nil if none does.
func (tr *Transport) nextFault(action string) *fault {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	at := slices.IndexFunc(tr.queue, func(f *fault) bool { return slices.Contains(f.actions, action) })
	if action == "" || at < 0 {
		return nil
	}
	f := tr.queue[at]
	if f.before > 0 {
		f.before--
		return nil
	}
	if f.times--; f.times <= 0 {
		tr.queue = slices.Delete(tr.queue, at, at+1)
	}
	return f
}

// requeue puts a fault back: its request had no effect, so no answer was lost.
func (tr *Transport) requeue(f *fault) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	f.times = 1
	tr.queue = slices.Insert(tr.queue, 0, f)
}

// RoundTrip implements http.RoundTripper.
func (tr *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		var err error
		body, err = io.ReadAll(req.Body)
		_ = req.Body.Close()
		if err != nil {
			return nil, err
		}
	}
	fault := tr.nextFault(tr.wire.Action(req, body))
	if fault == nil {
		return tr.base.RoundTrip(copyOf(req.Context(), req, body))
	}
	switch fault.failure {
	case Throttled, Forbidden:
		return tr.refusalFor(req, fault.failure), nil
	case Partial:
		return tr.refusalFor(req, Throttled), nil
	case Unavailable:
		if isRead(fault.method) {
			return tr.refusalFor(req, Unavailable), nil
		}
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	case Late:
		return nil, tr.sendLate(req, body)
	}
	return tr.loseAnswer(req, body, fault)
}

func isRead(method string) bool {
	return slices.Contains([]string{"Limits", "Interfaces", "Subnets"}, method)
}

// copyOf copies the request, because a RoundTripper must not change the one that it gets.
func copyOf(ctx context.Context, r *http.Request, body []byte) *http.Request {
	r = r.Clone(ctx)
	if r.Body != nil {
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	return r
}

// refusalFor makes the answer by which the cloud would refuse.
func (tr *Transport) refusalFor(req *http.Request, f Failure) *http.Response {
	answer, known := tr.wire.Refusals[f]
	if !known {
		tr.t.Errorf("the wire has no answer for %s", f)
	}
	header := answer.Header.Clone()
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{
		Status: fmt.Sprintf("%d %s", answer.Status, http.StatusText(answer.Status)), StatusCode: answer.Status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header, Request: req,
		Body: io.NopCloser(bytes.NewReader([]byte(answer.Body))), ContentLength: int64(len(answer.Body)),
	}
}

// errReset is what a client reads from a connection that breaks.
var errReset = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}

// loseAnswer sends the request and breaks its answer. A refusal passes, because it has no effect
// whose answer could be lost; the fault waits for the next request.
func (tr *Transport) loseAnswer(req *http.Request, body []byte, f *fault) (*http.Response, error) {
	resp, err := tr.base.RoundTrip(copyOf(req.Context(), req, body))
	if err != nil {
		tr.requeue(f)
		return nil, err
	}
	if resp.StatusCode >= 300 {
		tr.requeue(f)
		return resp, nil
	}
	text, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		return nil, err
	}
	switch {
	case tr.Breaks == Replaced:
		return tr.refusalFor(req, Unavailable), nil
	case tr.Breaks == Cut && len(text) > 1: // nothing can be cut of an answer without a body
		resp.Body = io.NopCloser(io.MultiReader(bytes.NewReader(text[:len(text)/2]), broken{}))
		return resp, nil
	}
	return nil, errReset
}

// broken is the rest of a body.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.Join(io.ErrUnexpectedEOF, errReset) }

// sendLate tells the client that the request is written and the connection broken, as a
// proxy on the way could, and lets the request leave after that.
func (tr *Transport) sendLate(r *http.Request, body []byte) error {
	if trace := httptrace.ContextClientTrace(r.Context()); trace != nil {
		if trace.WroteHeaders != nil {
			trace.WroteHeaders()
		}
		if trace.WroteRequest != nil {
			trace.WroteRequest(httptrace.WroteRequestInfo{})
		}
	}
	later := copyOf(context.Background(), r, body)
	tr.late.Go(func() {
		time.Sleep(lateBy)
		resp, err := tr.base.RoundTrip(later)
		if err != nil {
			tr.t.Errorf("what was to come late never left: %v", err)
			return
		}
		_, _ = io.Copy(io.Discard, resp.Body) // nobody is there to hear of it
		_ = resp.Body.Close()
	})
	return errReset
}
