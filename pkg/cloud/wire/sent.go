package wire

import (
	"context"
	"net/http/httptrace"
	"sync/atomic"
)

// Sent tells whether a request is on its way: the cloud may have heard it. Before that
// credentials, a connection or its certificate may fail.
type Sent struct{ atomic.Bool }

// Trace returns a context for one request, which notes when its head is written.
func (s *Sent) Trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { s.Store(true) }})
}
