package web

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

var silent = slog.New(slog.DiscardHandler)

// logged is a log of which a test waits for the address that is served.
type logged struct {
	slog.Handler
	listen chan string
}

func (l logged) Enabled(context.Context, slog.Level) bool { return true }

func (l logged) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "listen" {
			l.listen <- a.Value.String()
		}
		return true
	})
	return nil
}

// start serves h at a free port until the test ends or stop is called, which
// returns what Serve did.
func start(t *testing.T, h http.Handler) (address string, stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	log := logged{slog.DiscardHandler, make(chan string, 1)}
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, "127.0.0.1:0", h, slog.New(log)) }()
	select {
	case address = <-log.listen:
	case err := <-done:
		t.Fatal(err)
	}
	return address, func() error { cancel(); return <-done }
}

func TestItServesUntilItIsStopped(t *testing.T) {
	address, stop := start(t, New("v1").Handler(nil, false))
	answer, err := http.Get("http://" + address + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	if string(text) != "ok\n" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if err := stop(); err != nil {
		t.Errorf("a stop is no error: %v", err)
	}
	if c, err := net.Dial("tcp", address); err == nil {
		c.Close()
		t.Error("it still listens")
	}
}

// pipe is a listener in memory with one client, whose end is net.Pipe's other one.
type pipe struct {
	client chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipe) Accept() (net.Conn, error) {
	select {
	case c := <-p.client:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipe) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipe) Addr() net.Addr { return &net.TCPAddr{} }

// ask serves h to one request, ends the service while h works on it, and returns
// what the client got and what serve did.
func ask(h http.Handler) (answer <-chan string, done <-chan error) {
	l := &pipe{client: make(chan net.Conn, 1), closed: make(chan struct{})}
	ours, theirs := net.Pipe()
	l.client <- theirs
	ctx, cancel := context.WithCancel(context.Background())
	ended, got := make(chan error, 1), make(chan string, 1)
	go func() { ended <- serveUntil(ctx, l, h, silent) }()
	go func() {
		defer ours.Close()
		_, _ = io.WriteString(ours, "GET / HTTP/1.1\r\nHost: n1\r\n\r\n")
		text, _ := io.ReadAll(ours)
		got <- string(text)
	}()
	synctest.Wait() // h is at work
	cancel()
	synctest.Wait()
	return got, ended
}

func TestAnAnswerUnderWayIsGivenToTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer, done := ask(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(time.Second)
			_, _ = io.WriteString(w, "all of it")
		}))
		select {
		case err := <-done:
			t.Errorf("it did not wait for the answer: %v", err)
		default:
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if got := <-answer; !strings.HasSuffix(got, "all of it") {
			t.Errorf("the answer was %q", got)
		}
	})
}

func TestAnAnswerThatDoesNotEndIsBrokenOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		_, done := ask(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
		if err := <-done; err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took != stopTime {
			t.Errorf("it waited %s", took)
		}
	})
}

func TestAnAddressThatCantBeServedIsExplainedWithItsKey(t *testing.T) {
	for _, tt := range []struct{ name, listen, want string }{
		{"not of this node", "192.0.2.1:9809", "listen: the node does not have the address of 192.0.2.1:9809; set the key listen to one that it has"},
		{"not an address", "127.0.0.1:port", `listen: "127.0.0.1:port": listen tcp: lookup tcp/port: unknown port; set the key listen to a host and a port`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := Serve(t.Context(), tt.listen, http.NotFoundHandler(), silent)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// The agent before this one has it until it ends, or something has that must not cost pods their agent.
func TestAnAddressThatAnotherProgramHasIsWaitedFor(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := other.Addr().String()
	read, write := io.Pipe()
	ended := make(chan error)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { ended <- Serve(ctx, at, http.NotFoundHandler(), slog.New(slog.NewTextHandler(write, nil))) }()
	log := bufio.NewReader(read)
	for _, want := range []string{"listen: " + at + " is in use by another program; end it, or set the key listen to another port", "serving metrics and health"} {
		if line, err := log.ReadString('\n'); err != nil || !strings.Contains(line, want) {
			t.Errorf("the log says %q, %v, want %q", line, err, want)
		}
		other.Close()
	}
	go io.Copy(io.Discard, read)
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestAnAddressThatIsWaitedForHoldsUpNoEnd(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Serve(ctx, other.Addr().String(), http.NotFoundHandler(), silent); err != nil {
		t.Error(err)
	}
}

// Whether it happens depends on who runs the test.
func TestAPortThatNeedsAPrivilegeIsExplainedWithItsKey(t *testing.T) {
	err := explainListen("127.0.0.1:80", &net.OpError{Op: "listen", Err: os.NewSyscallError("bind", unix.EACCES)})
	if want := "listen: 127.0.0.1:80 needs a privilege; set the key listen to a port above 1023"; err.Error() != want {
		t.Errorf("got %v", err)
	}
}

func TestNowhereIsServedUntilTheEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Serve(ctx, "", http.NotFoundHandler(), silent); err != nil {
		t.Error(err)
	}
}

// broken is a listener that fails.
type broken struct{ net.Listener }

var errBroken = errors.New("broken")

func (broken) Accept() (net.Conn, error) { return nil, errBroken }

func TestAServerThatFailsByItselfSaysSo(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := serveUntil(t.Context(), broken{l}, http.NotFoundHandler(), silent); !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
}

// A client that sends nothing, or too much, holds neither a connection nor memory
// for ever.
func TestTheServerBoundsItsClients(t *testing.T) {
	s := newServer(http.NotFoundHandler(), silent)
	for name, d := range map[string]time.Duration{"header": s.ReadHeaderTimeout, "read": s.ReadTimeout, "write": s.WriteTimeout, "idle": s.IdleTimeout} {
		if d <= 0 || d > 5*time.Minute {
			t.Errorf("%s: %s", name, d)
		}
	}
	if s.MaxHeaderBytes <= 0 || s.MaxHeaderBytes > 1<<20 {
		t.Errorf("headers of %d bytes", s.MaxHeaderBytes)
	}
}
