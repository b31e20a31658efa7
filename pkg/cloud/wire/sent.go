package wire

import (
	"context"
	"net/http/httptrace"
	"sync/atomic"
)

// Sent tells whether a request has been written, so that the cloud may have got it. Until then the
// credentials, the connection or its certificate may fail, and the cloud has surely not got it.
type Sent struct{ atomic.Bool }

// Trace returns a context for one request, which sets s when the request's header is written.
func (s *Sent) Trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { s.Store(true) }})
}
