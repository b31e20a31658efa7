package host

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// conn is an rtnetlink socket of one network namespace. It sends batches, which a
// Handle of package netlink can't: that asks the kernel for one thing at a time.
type conn struct {
	fd  int
	seq uint32 // of the last request
	buf []byte // for answers
}

// answerSize is more than the kernel's answer to any request of ours; a link with
// its settings and counters is the longest, with 2 kB.
const answerSize = 16 << 10

// dial opens a socket in the namespace of the calling thread.
func dial() (*conn, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
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
	first := c.seq + 1
	c.seq += uint32(len(asked))
	// The kernel works on a datagram while it takes it, request by request, and says
	// of each that failed that it did. Success it tells if asked: for the last request
	// that is enough, and costs one answer and not one for each.
	if err := unix.Sendto(c.fd, datagram(asked, first), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return fmt.Errorf("send to netlink: %w", err)
	}
	for last := asked[len(asked)-1]; !last.answered; {
		// All answers are there by now: a wait would be one without end.
		n, _, err := unix.Recvfrom(c.fd, c.buf, unix.MSG_DONTWAIT|unix.MSG_TRUNC)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return errNoAnswer
		case err != nil: // ENOBUFS: answers are lost
			return fmt.Errorf("receive from netlink: %w", err)
		case n > len(c.buf):
			return fmt.Errorf("receive from netlink: an answer of %d bytes is longer than expected", n)
		}
		if err := deliver(c.buf[:n], asked, first); err != nil {
			return err
		}
	}
	for _, r := range asked {
		r.answered = true
	}
	return b.failure()
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
	for len(b) >= unix.SizeofNlMsghdr {
		size := int(binary.NativeEndian.Uint32(b))
		if size < unix.SizeofNlMsghdr || size > len(b) {
			return fmt.Errorf("receive from netlink: a message of %d bytes in %d", size, len(b))
		}
		kind, seq, body := binary.NativeEndian.Uint16(b[4:]), binary.NativeEndian.Uint32(b[8:]), b[unix.SizeofNlMsghdr:size]
		if at := seq - first; at < uint32(len(asked)) {
			r := asked[at]
			switch {
			case kind != unix.NLMSG_ERROR:
				r.answer = append(r.answer, body...) // the buffer is used again
			case len(body) < 4:
				return errors.New("receive from netlink: an error without a number")
			default:
				if code := int32(binary.NativeEndian.Uint32(body)); code != 0 {
					r.err = unix.Errno(-code)
				}
			}
			r.answered = true
		}
		b = b[min(align(size), len(b)):]
	}
	return nil
}
