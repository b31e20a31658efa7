package nfset

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/enipool/enipool/pkg/nlmsg"
	"golang.org/x/sys/unix"
)

// socket is an nfnetlink socket.
type socket struct{ fd int }

func openSocket() (socket, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
	if err != nil {
		return socket{}, fmt.Errorf("open nfnetlink: %w", err)
	}
	return socket{fd}, nil
}

func (s socket) close() { _ = unix.Close(s.fd) }

// defaultBuffer is how many bytes a socket takes without being asked, on any system.
const defaultBuffer = 64 << 10

// answerSize is what an answer of the kernel takes of the receive buffer, with room to
// spare: an errno with the change that it is about.
const answerSize = 4 << 10

// makeRoom makes the buffers large enough for a request of that number of bytes, which the
// kernel takes as a whole or not at all, and for that number of answers. Without the right
// to do so, which changes need anyway, the kernel gives what it may.
func (s socket) makeRoom(request, answers int) {
	if request > defaultBuffer {
		s.growBuffer(unix.SO_SNDBUFFORCE, unix.SO_SNDBUF, request)
	}
	if answers*answerSize > defaultBuffer {
		s.growBuffer(unix.SO_RCVBUFFORCE, unix.SO_RCVBUF, answers*answerSize)
	}
}

func (s socket) growBuffer(force, ask, size int) {
	size = min(size, math.MaxInt32/2) // more the kernel does not count
	if unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, force, size) != nil {
		_ = unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, ask, size)
	}
}

// reply is a message of the kernel's.
type reply struct{ nlmsg.Message }

// attributes are what stands behind the nfnetlink header; none of a message that ends the answer.
func (r reply) attributes() []byte {
	if r.IsEnd() {
		return nil
	}
	return r.Body[nfnetlinkHeader:]
}

// nfnetlinkHeader is the length of struct nfgenmsg.
const nfnetlinkHeader = 4

// exchange sends and returns all that the kernel answers. It works on a request
// while it takes it, so its answers wait by the time sendto returns; a
// transaction that went well has none.
func (s socket) exchange(request []byte) ([]reply, error) {
	if err := unix.Sendto(s.fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, err
	}
	var replies []reply
	buf := make([]byte, 64<<10)
	for {
		n, _, err := unix.Recvfrom(s.fd, buf, unix.MSG_DONTWAIT|unix.MSG_TRUNC)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return replies, nil
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return nil, err
		case n > len(buf):
			return nil, nlmsg.ErrCut
		}
		// Copied: the replies are parts of it, and the next datagram goes into buf again.
		more, err := parseReplies(slices.Clone(buf[:n]))
		if err != nil {
			return nil, err
		}
		replies = append(replies, more...)
	}
}

// parseReplies takes the messages of one datagram apart.
func parseReplies(datagram []byte) (replies []reply, err error) {
	for m, err := range nlmsg.Messages(datagram) {
		if err != nil {
			return nil, err
		}
		if !m.IsEnd() && len(m.Body) < nfnetlinkHeader {
			return nil, nlmsg.ErrCut
		}
		replies = append(replies, reply{m})
	}
	return replies, nil
}
