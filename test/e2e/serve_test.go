package e2e

import (
	"encoding/binary"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/nettest"
)

// serveTCP lets answer talk to each one that connects to the port in ns, until stop.
func serveTCP(t *testing.T, ns nettest.Netns, port string, answer func(net.Conn)) (stop func()) {
	t.Helper()
	return serveAt(t, ns, "tcp", ":"+port, answer)
}

// serveAt is serveTCP at an address.
func serveAt(t *testing.T, ns nettest.Netns, network, addr string, answer func(net.Conn)) (stop func()) {
	t.Helper()
	var l net.Listener
	if err := ns.Do(func() (err error) { l, err = net.Listen(network, addr); return err }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { answer(c); c.Close() }()
		}
	}()
	return func() { l.Close() }
}

// echo serves TCP in ns: each connection is told the address it comes from.
func echo(t *testing.T, ns nettest.Netns, port string) {
	t.Helper()
	serveTCP(t, ns, port, func(c net.Conn) {
		host, _, _ := net.SplitHostPort(c.RemoteAddr().String())
		_, _ = io.WriteString(c, host)
	})
}

// pingPong serves TCP in ns: what a connection sends comes back.
func pingPong(t *testing.T, ns nettest.Netns, port string) {
	t.Helper()
	serveTCP(t, ns, port, func(c net.Conn) { _, _ = io.Copy(c, c) })
}

// answerTime is how long tests wait for an answer that should come at once.
const answerTime = 5 * time.Second

// connectTCP connects from ns.
func connectTCP(ns nettest.Netns, to string) (c net.Conn, err error) {
	err = ns.Do(func() error { c, err = net.DialTimeout("tcp4", to, answerTime); return err })
	return c, err
}

// ask connects from ns and returns the source address that the other side saw.
func ask(ns nettest.Netns, to string) (seen string, err error) {
	c, err := connectTCP(ns, to)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(answerTime)); err != nil {
		return "", err
	}
	text, err := io.ReadAll(c)
	return string(text), err
}

// dial connects from ns until the test ends.
func dial(t *testing.T, ns nettest.Netns, to string) net.Conn {
	t.Helper()
	c, err := connectTCP(ns, to)
	if err != nil {
		t.Fatalf("%s -> %s: %v", ns.Name, to, err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// exchange sends n messages and waits for each to come back.
func exchange(t *testing.T, c net.Conn, n int) {
	t.Helper()
	message, answer := []byte("0123456789abcdef"), make([]byte, 16)
	for i := range n {
		_ = c.SetDeadline(time.Now().Add(answerTime))
		if _, err := c.Write(message); err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
		if _, err := io.ReadFull(c, answer); err != nil {
			t.Fatalf("answer %d: %v", i, err)
		}
	}
}

// closes ends the connection in the ordinary way and fails if the other side does
// not follow.
func closes(t *testing.T, c net.Conn) {
	t.Helper()
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	_ = c.SetDeadline(time.Now().Add(answerTime))
	if _, err := c.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("end of the connection: %v", err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// steady sends a numbered datagram from ns to the address every millisecond until stop
// is called, which returns how many were sent and how many came back.
func steady(t *testing.T, ns nettest.Netns, to string) (stop func() (sent, back int)) {
	t.Helper()
	c := udpSocket(t, ns, "0.0.0.0:0", to)
	end, done := make(chan struct{}), make(chan int)
	var back atomic.Int64
	go func() {
		seen := map[uint32]bool{}
		b := make([]byte, 100)
		for {
			n, err := c.Read(b)
			if err != nil {
				return
			}
			if n >= 8 {
				seen[binary.NativeEndian.Uint32(b[4:])] = true
				back.Store(int64(len(seen)))
			}
		}
	}()
	go func() {
		sent := 0
		for {
			select {
			case <-end:
				done <- sent
				return
			case <-time.After(time.Millisecond):
			}
			b := make([]byte, 8) // the first is for the time to live
			binary.NativeEndian.PutUint32(b[4:], uint32(sent))
			if _, err := c.Write(b); err == nil {
				sent++
			}
		}
	}()
	return func() (int, int) {
		close(end)
		sent := <-done
		for until := time.Now().Add(answerTime); int(back.Load()) < sent && time.Now().Before(until); {
			time.Sleep(time.Millisecond)
		}
		return sent, int(back.Load())
	}
}
