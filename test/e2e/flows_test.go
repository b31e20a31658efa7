package e2e

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"regexp"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/nettest"
)

// flows are connections and pings that go on while a test changes the node, and that
// nothing may interrupt.
type flows struct {
	t       *testing.T
	streams []*stream
	pings   []*probe
}

// stream is a connection on which numbers go there and back without a pause.
type stream struct {
	name   string
	conn   net.Conn
	count  atomic.Uint64
	broken chan error // why it ended, nil if it was closed
}

// probe is a ping that goes on.
type probe struct {
	name string
	cmd  *exec.Cmd
	said bytes.Buffer
}

// connect makes a stream from one namespace to an address, behind which the service
// at listen is, in another.
func (f *flows) connect(name string, from nettest.Netns, to string, in nettest.Netns, listen string) {
	f.t.Helper()
	var l net.Listener
	if err := in.Do(func() (err error) { l, err = net.Listen("tcp", listen); return err }); err != nil {
		f.t.Fatal(err)
	}
	defer l.Close()
	go func() {
		if c, err := l.Accept(); err == nil {
			_, _ = io.Copy(c, c)
			c.Close()
		}
	}()
	s := &stream{name: name, broken: make(chan error, 1)}
	err := from.Do(func() (err error) { s.conn, err = net.DialTimeout("tcp", to, 5*time.Second); return err })
	if err == nil {
		err = s.turn() // before the listener closes
	}
	if err != nil {
		f.t.Fatalf("%s: %v", name, err)
	}
	f.streams = append(f.streams, s)
	go func() { s.broken <- s.run() }()
}

// run sends until the connection is closed.
func (s *stream) run() error {
	for {
		if err := s.turn(); err != nil {
			if errors.Is(err, net.ErrClosed) {
				return nil
			}
			return err
		}
	}
}

// turn sends the next number and wants it back, soon enough for a way that is cut to
// show, and late enough for one lost packet to be sent again.
func (s *stream) turn() error {
	var out, in [8]byte
	next := s.count.Load() + 1
	binary.BigEndian.PutUint64(out[:], next)
	if err := s.conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return err
	}
	if _, err := s.conn.Write(out[:]); err != nil {
		return err
	}
	if _, err := io.ReadFull(s.conn, in[:]); err != nil {
		return err
	}
	if in != out {
		return fmt.Errorf("sent %d, came back %d", next, binary.BigEndian.Uint64(in[:]))
	}
	s.count.Store(next)
	return nil
}

// ping sends fifty packets a second.
func (f *flows) ping(name string, from nettest.Netns, to string) {
	f.t.Helper()
	p := &probe{name: name, cmd: exec.Command("ping", "-i", "0.02", to)}
	p.cmd.Stdout, p.cmd.Stderr = &p.said, &p.said
	if err := from.Do(p.cmd.Start); err != nil {
		f.t.Fatal(err)
	}
	f.pings = append(f.pings, p)
}

// alive wants every stream to have got on since it was called last.
func (f *flows) alive(when string) {
	f.t.Helper()
	for _, s := range f.streams {
		was := s.count.Load()
		for until := time.Now().Add(5 * time.Second); s.count.Load() == was; time.Sleep(time.Millisecond) {
			if time.Now().After(until) {
				f.t.Fatalf("%s: %s stands still", when, s.name) // the others would take minutes to say the same
			}
		}
	}
}

var pingCount = regexp.MustCompile(`(\d+) packets transmitted, (\d+) received`)

// unbroken ends them all and wants that nothing was lost but the last packet of a
// ping, which may be on its way.
func (f *flows) unbroken() {
	f.t.Helper()
	for _, s := range f.streams {
		s.conn.Close()
		if err := <-s.broken; err != nil {
			f.t.Errorf("%s: the connection broke after %d turns: %v", s.name, s.count.Load(), err)
		}
	}
	for _, p := range f.pings {
		_ = p.cmd.Process.Signal(syscall.SIGINT)
		_ = p.cmd.Wait() // its words tell
		m := pingCount.FindSubmatch(p.said.Bytes())
		if m == nil {
			f.t.Errorf("%s: ping said %s", p.name, &p.said)
			continue
		}
		sent, _ := strconv.Atoi(string(m[1]))
		received, _ := strconv.Atoi(string(m[2]))
		if received < sent-1 || received < 10 {
			f.t.Errorf("%s: %d pings sent, %d answered", p.name, sent, received)
		}
	}
}
