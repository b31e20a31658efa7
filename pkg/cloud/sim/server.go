package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/enipool/enipool/pkg/cloud/driver"
)

// maxBody is more than any request of a node has, in bytes.
const maxBody = 1 << 20

// Handler serves the account to other processes: POST /v1/calls with a half-operation as
// JSON. Dial is its other end.
func (a *Account) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/calls", func(to http.ResponseWriter, req *http.Request) {
		var call wireCall
		if err := json.NewDecoder(http.MaxBytesReader(to, req.Body, maxBody)).Decode(&call); err != nil {
			http.Error(to, err.Error(), http.StatusBadRequest)
			return
		}
		do, known := methods[call.Method]
		if !known {
			http.Error(to, "no such method", http.StatusBadRequest)
			return
		}
		var out wireReply
		d := a.NodeDriver(call.Node)
		d.traits.CrossSubnet = true // who asks for it knows
		value, err := do(req.Context(), d, call.Args)
		if out.Error = toWire(err); err == nil {
			out.Value, err = json.Marshal(value)
		}
		if err != nil && out.Error == nil {
			http.Error(to, err.Error(), http.StatusInternalServerError)
			return
		}
		to.Header().Set("Content-Type", "application/json")
		// Who does not get the answer knows it.
		_ = json.NewEncoder(to).Encode(out)
	})
	return mux
}

func toWire(err error) *wireError {
	e, ok := errors.AsType[*driver.Error](err)
	if !ok {
		return nil
	}
	return &wireError{Kind: e.Kind.Error(), Why: e.Why, Detail: e.Detail, RetryAfter: e.RetryAfter}
}

// Serve serves the account until ctx ends, by h, which is its Handler or stands before that.
// It returns when every call under way has its answer: the end of ctx ends them too.
func (a *Account) Serve(ctx context.Context, listener net.Listener, h http.Handler) error {
	if a.o.Lag >= RemoteSettle {
		return fmt.Errorf("serve account: describes lag up to %s, and those who call wait %s for what they made to show", a.o.Lag, RemoteSettle)
	}
	srv := &http.Server{
		Handler:           h,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: 10 * time.Second,
	}
	down := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() { down <- srv.Shutdown(context.WithoutCancel(ctx)) })
	err := srv.Serve(listener)
	if stop() || !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve account: %w", err)
	}
	return <-down
}

// Listen makes a unix socket of mode 0600 for Serve, in place of one that nobody serves any
// more.
func Listen(path string) (net.Listener, error) {
	if c, err := net.Dial("unix", path); err == nil {
		c.Close()
		return nil, fmt.Errorf("listen on %s: another process serves it", path)
	}
	// Nobody may enter the folder, so nobody is faster than Chmod.
	dir, err := os.MkdirTemp(filepath.Dir(path), ".s")
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	defer os.RemoveAll(dir)
	fresh := filepath.Join(dir, "s")
	l, err := net.Listen("unix", fresh)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	if err := errors.Join(os.Chmod(fresh, 0o600), os.Rename(fresh, path)); err != nil {
		return nil, errors.Join(fmt.Errorf("listen on %s: %w", path, err), l.Close())
	}
	return socket{l, path}, nil
}

// socket is a listener that takes its file along when it goes.
type socket struct {
	net.Listener
	path string
}

func (s socket) Close() error {
	if err := os.Remove(s.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return errors.Join(err, s.Listener.Close())
	}
	return s.Listener.Close()
}
