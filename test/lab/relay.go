package lab

import (
	"io"
	"net"
	"sync"
)

// Relay passes on what clients and a server in different network namespaces say.
// The zero value is ready.
type Relay struct {
	running sync.WaitGroup

	mu        sync.Mutex
	closed    bool
	listeners []net.Listener
	conns     map[net.Conn]bool
}

// Reach brings a server that listens on a loopback address here, such as an API server, to where in
// runs functions, at the same address, until Close of the Relay. wrap, if it is not nil, is the
// connection to a client in the place of that.
func Reach(address string, in Do, wrap func(net.Conn) net.Conn) (*Relay, error) {
	var l net.Listener
	if err := in(func() (err error) { l, err = net.Listen("tcp", address); return err }); err != nil {
		return nil, err
	}
	r := &Relay{}
	r.Serve(l, func(client net.Conn) {
		if wrap != nil {
			client = wrap(client)
		}
		if server, err := net.Dial("tcp", address); err == nil {
			r.Splice(client, client, server)
		}
	})
	return r, nil
}

// BringOut passes the clients of a listener on to a server where in runs functions, until Close. While there is
// none they get no answer.
func (r *Relay) BringOut(l net.Listener, in Do, address string) {
	r.Serve(l, func(client net.Conn) {
		var server net.Conn
		if err := in(func() (err error) { server, err = net.Dial("tcp", address); return err }); err == nil {
			r.Splice(client, client, server)
		}
	})
}

// Serve handles each client of a listener in the background until Close.
func (r *Relay) Serve(l net.Listener, handle func(net.Conn)) {
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

// with runs a function that uses a connection, which Close ends.
func (r *Relay) with(conn net.Conn, use func()) {
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

// Splice passes on what both sides say until both have ended; said is what the
// client says.
func (r *Relay) Splice(client net.Conn, said io.Reader, server net.Conn) {
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

// Close ends listeners and connections and waits until nobody uses them.
func (r *Relay) Close() {
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
