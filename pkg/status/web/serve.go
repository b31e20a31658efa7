package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/sys/unix"
)

// A client that is slower than these is not served: it would hold memory. pprof
// has the time that it is asked to measure on top.
const (
	readTime  = 10 * time.Second
	writeTime = 30 * time.Second
	idleTime  = 2 * time.Minute
	stopTime  = 2 * time.Second // for what is under way at the end
	maxHeader = 16 << 10        // bytes
)

// Serve serves h at listen, a host and a port, until ctx ends. "" is nowhere: it
// only waits then. If it can't listen it returns at once and says what to change, but for an
// address that another program has, which it waits for.
func Serve(ctx context.Context, listen string, h http.Handler, log *slog.Logger) error {
	if listen == "" {
		<-ctx.Done()
		return nil
	}
	listener, err := listenOn(ctx, listen, log)
	if listener == nil {
		return err
	}
	log.Info("serving metrics and health", "listen", listener.Addr().String())
	return serveUntil(ctx, listener, h, log)
}

// taken is how often an address that another program has is tried again.
const taken = time.Second

// listenOn listens at an address, or returns nil when ctx has ended. It waits for one that another program
// has: pods need their agent more than its metrics, and the program may be the agent before it.
func listenOn(ctx context.Context, listen string, log *slog.Logger) (net.Listener, error) {
	for said := false; ; said = true {
		listener, err := net.Listen("tcp", listen)
		if err == nil {
			return listener, nil
		}
		if !errors.Is(err, unix.EADDRINUSE) {
			return nil, explainListen(listen, err)
		}
		if !said {
			log.Error("metrics and health can't be served until that ends", "error", explainListen(listen, err))
		}
		select {
		case <-ctx.Done():
			return nil, nil
		case <-time.After(taken):
		}
	}
}

// explainListen explains why listen can't be served.
func explainListen(listen string, err error) error {
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		return fmt.Errorf("listen: %s is in use by another program; end it, or set the key listen to another port", listen)
	case errors.Is(err, unix.EADDRNOTAVAIL):
		return fmt.Errorf("listen: the node does not have the address of %s; set the key listen to one that it has", listen)
	case errors.Is(err, unix.EACCES):
		return fmt.Errorf("listen: %s needs a privilege; set the key listen to a port above 1023", listen)
	}
	return fmt.Errorf("listen: %q: %w; set the key listen to a host and a port", listen, err)
}

func newServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: readTime, ReadTimeout: readTime, WriteTimeout: writeTime,
		IdleTimeout: idleTime, MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
}

// serveUntil ends when every answer under way is given, or stopTime after ctx.
func serveUntil(ctx context.Context, listener net.Listener, h http.Handler, log *slog.Logger) error {
	srv := newServer(h, log)
	down := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(down)
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
		defer cancel()
		if srv.Shutdown(last) != nil {
			_ = srv.Close() // it takes too long
		}
	})
	err := srv.Serve(listener)
	if stop() {
		return fmt.Errorf("serve %s: %w", listener.Addr(), err)
	}
	<-down
	return nil
}
