package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/enipool/enipool/pkg/nlmsg"
	"golang.org/x/sys/unix"
)

// conn is an rtnetlink socket of one network namespace. It sends batches, which a
// Handle of package netlink can't: that asks the kernel for one thing at a time. And
// it lists links, routes, addresses and neighbours. That package knows every kind of
// link and route there is: a twentieth of the plugin.
type conn struct {
	fd   int
	busy sync.Mutex
	seq  uint32 // of the last request
	buf  []byte // for answers
}

// answerSize is more than the kernel's answer to nearly any request of ours: a link
// with its settings takes 2 kB. One with many alternative names, or a network card's
// with much to say, can take more: then the buffer grows. The kernel puts as much of a
// list into one part as a reader had room for.
const answerSize = 16 << 10

// dial opens a socket in the namespace of the calling thread.
func dial() (*conn, error) { return dialTo(unix.NETLINK_ROUTE) }

// dialTo is dial for another part of the kernel.
func dialTo(protocol int) (*conn, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return nil, fmt.Errorf("open netlink: %w", err)
	}
	return &conn{fd: fd, buf: make([]byte, answerSize)}, nil
}

// dial opens a socket in the namespace.
func (n *Netns) dial() (c *conn, err error) {
	err = n.within(func() error {
		c, err = dial()
		return err
	})
	if err != nil {
		if c != nil { // opened, but the thread could not come back
			c.Close()
		}
		return nil, fmt.Errorf("open netlink in the pod's namespace: %w", err)
	}
	return c, nil
}

// Close closes the socket.
func (c *conn) Close() { _ = unix.Close(c.fd) }

// errNoAnswer is returned where the kernel did not answer to the last request of a
// batch. It can't, but to go on would be to take silence for success.
var errNoAnswer = errors.New("the kernel did not answer")

// send has the kernel do what the batch asks for and has not got, in order and in
// one datagram. The kernel goes on after a request that fails. send returns the
// first failure, unless that of a tolerated request; each request knows its own.
func (c *conn) send(b *batch) error {
	asked := b.unanswered()
	if len(asked) == 0 {
		return nil
	}
	c.busy.Lock()
	defer c.busy.Unlock()
	first := c.seq + 1
	c.seq += uint32(len(asked))
	// The kernel works on a datagram while it takes it, request by request, and says
	// of each that failed that it did. Success it tells if asked: for the last request
	// that is enough, and costs one answer and not one for each.
	if err := unix.Sendto(c.fd, datagram(asked, first), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return fmt.Errorf("send to netlink: %w", err)
	}
	for last := asked[len(asked)-1]; !last.answered; {
		b, err := c.receive()
		if err != nil {
			return err
		}
		if err := deliver(b, asked, first); err != nil {
			return err
		}
	}
	for _, r := range asked {
		r.answered = true
	}
	return b.failure()
}

// receive returns a datagram of the kernel's, which the next one overwrites.
func (c *conn) receive() ([]byte, error) {
	for {
		// A first look leaves the datagram where it is: what does not fit would be lost,
		// and what is changed already can't be asked for again.
		size, err := c.take(c.buf, unix.MSG_PEEK)
		if err == nil && size > len(c.buf) {
			c.buf = make([]byte, size)
			continue
		}
		if err == nil {
			_, err = c.take(nil, 0)
		}
		return c.buf[:size], err
	}
}

// take copies the datagram that is next to b and returns its size, which may be larger.
func (c *conn) take(b []byte, flags int) (size int, err error) {
	for {
		// All answers are there by now, of a list the next part: a wait would be one
		// without end.
		size, _, err = unix.Recvfrom(c.fd, b, flags|unix.MSG_DONTWAIT|unix.MSG_TRUNC)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			return 0, errNoAnswer
		case err != nil: // ENOBUFS: answers are lost
			return 0, fmt.Errorf("receive from netlink: %w", err)
		default:
			return size, nil
		}
	}
}

// list asks for all objects of a kind and returns their messages: the fixed part and
// the attributes. A list that a change tore is asked for again.
func (c *conn) list(m message) ([][]byte, error) {
	c.busy.Lock()
	defer c.busy.Unlock()
	return dump(func() ([][]byte, error) { return c.listOnce(m.done()) })
}

// listOnce fails with EINTR where the list is torn.
func (c *conn) listOnce(m message) (list [][]byte, err error) {
	c.seq++
	binary.NativeEndian.PutUint16(m[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	binary.NativeEndian.PutUint32(m[8:], c.seq)
	if err := unix.Sendto(c.fd, m, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, fmt.Errorf("send to netlink: %w", err)
	}
	torn := false
	for {
		part, err := c.receive()
		if err != nil {
			return nil, err
		}
		for a, err := range nlmsg.Messages(slices.Clone(part)) { // the buffer is used again
			if err != nil {
				return nil, fmt.Errorf("receive from netlink: %w", err)
			}
			if a.Sequence != c.seq {
				continue // the rest of a list that failed
			}
			torn = torn || a.IsTorn()
			switch {
			case !a.IsEnd():
				list = append(list, a.Body)
			case torn: // also where the kernel gave up because of the change
				return nil, unix.EINTR
			case a.Errno() != 0:
				return nil, a.Errno()
			default:
				return list, nil
			}
		}
	}
}

// datagram numbers the requests from first on and joins them.
func datagram(asked []*request, first uint32) []byte {
	var all []byte
	for i, r := range asked {
		r.answered, r.err, r.answer = false, nil, nil
		flags := binary.NativeEndian.Uint16(r.message[6:])
		if i == len(asked)-1 && !r.get {
			flags |= unix.NLM_F_ACK
		}
		at := len(all)
		all = append(all, r.message...)
		binary.NativeEndian.PutUint16(all[at+6:], flags)
		binary.NativeEndian.PutUint32(all[at+8:], first+uint32(i))
	}
	return all
}

// deliver hands the messages of one received datagram to the requests that they
// answer, of which the first has the number first.
func deliver(b []byte, asked []*request, first uint32) error {
	for a, err := range nlmsg.Messages(b) {
		if err != nil {
			return fmt.Errorf("receive from netlink: %w", err)
		}
		// What answers an earlier batch, of which an answer was lost, is far above: the
		// difference has no sign.
		if at := a.Sequence - first; at < uint32(len(asked)) {
			r := asked[at]
			switch {
			case a.Kind != unix.NLMSG_ERROR:
				r.answer = append(r.answer, a.Body...) // the buffer is used again
			case a.Errno() != 0:
				r.err = a.Errno()
			}
			r.answered = true
		}
	}
	return nil
}
