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
	"sync"
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
	told    func(format string, args ...any) // of what went wrong; nil: only t is
	pause   time.Duration                    // between two turns of a connection
	streams []*stream
	pings   []*probe
}

func (f *flows) fail(format string, args ...any) {
	f.t.Helper()
	if f.told != nil {
		f.told(format, args...)
	} else {
		f.t.Errorf(format, args...)
	}
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
	said output
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
		f.fail("%s: %v", name, err)
		f.t.FailNow()
	}
	f.streams = append(f.streams, s)
	go func() { s.broken <- s.run(f.pause) }()
}

// run sends until the connection is closed.
func (s *stream) run(pause time.Duration) error {
	for ; ; time.Sleep(pause) {
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
	p := &probe{name: name, cmd: exec.Command("ping", "-q", "-i", "0.02", to)}
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
				f.fail("%s: %s stands still", when, s.name)
				f.t.FailNow() // the others would take minutes to say the same
			}
		}
	}
}

// pingCount is what ping says to SIGQUIT.
var pingCount = regexp.MustCompile(`(\d+)/(\d+) packets`)

// count asks the ping how many packets it has sent and how many were answered.
func (p *probe) count() (sent, answered int) {
	_ = p.cmd.Process.Signal(syscall.SIGQUIT)
	time.Sleep(5 * time.Millisecond) // it answers when it is next awake
	all := pingCount.FindAllStringSubmatch(p.said.String(), -1)
	if len(all) == 0 {
		return 0, 0
	}
	last := all[len(all)-1]
	answered, _ = strconv.Atoi(last[1])
	sent, _ = strconv.Atoi(last[2])
	return sent, answered
}

// unbroken ends them all and wants that nothing was lost. Packets may be on their way
// whenever a ping is asked: without a loss there is a moment at which none is.
func (f *flows) unbroken() {
	f.t.Helper()
	for _, s := range f.streams {
		s.conn.Close()
		if err := <-s.broken; err != nil {
			f.fail("%s: the connection broke after %d turns: %v", s.name, s.count.Load(), err)
		}
	}
	for _, p := range f.pings {
		sent, answered := p.count()
		for until := time.Now().Add(10 * time.Second); (answered < sent || sent < 10) && time.Now().Before(until); {
			sent, answered = p.count()
		}
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		if answered < sent || sent < 10 {
			f.fail("%s: %d pings sent, %d answered", p.name, sent, answered)
		}
	}
}

// output is a buffer that may be read while a program writes.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write appends.
func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

// String returns all of it.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
