package kube

import (
	"io"
	"net"
	"sync"
)

// relay passes on what clients and a server in different network namespaces say.
// The zero value is ready.
type relay struct {
	running sync.WaitGroup

	mu        sync.Mutex
	closed    bool
	listeners []net.Listener
	conns     map[net.Conn]bool
}

// serve handles each client of a listener in the background until close.
func (r *relay) serve(l net.Listener, handle func(net.Conn)) {
	r.mu.Lock()
	r.listeners = append(r.listeners, l)
	r.mu.Unlock()
	r.running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return // it is closed
			}
			r.running.Go(func() { r.with(conn, func() { handle(conn) }) })
		}
	})
}

// with runs a function that uses a connection, which close ends.
func (r *relay) with(conn net.Conn, use func()) {
	defer conn.Close()
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return
	}
	if r.conns == nil {
		r.conns = map[net.Conn]bool{}
	}
	r.conns[conn] = true
	r.mu.Unlock()
	use()
	r.mu.Lock()
	delete(r.conns, conn)
	r.mu.Unlock()
}

// splice passes on what both sides say until both have ended; said is what the
// client says.
func (r *relay) splice(client net.Conn, said io.Reader, server net.Conn) {
	pass := func(to net.Conn, from io.Reader) {
		_, _ = io.Copy(to, from)
		if half, ok := to.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
	}
	r.with(server, func() {
		var both sync.WaitGroup
		both.Go(func() { pass(server, said) })
		both.Go(func() { pass(client, server) })
		both.Wait()
	})
}

// close ends listeners and connections and waits until nobody uses them.
func (r *relay) close() {
	r.mu.Lock()
	r.closed = true
	for _, l := range r.listeners {
		_ = l.Close()
	}
	for conn := range r.conns {
		_ = conn.Close()
	}
	r.mu.Unlock()
	r.running.Wait()
}
