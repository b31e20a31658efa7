package nfset

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

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

// reply is a message of the kernel's; kind NLMSG_ERROR has an errno, 0 for "done".
type reply struct {
	kind     uint16
	flags    uint16
	sequence uint32
	errno    unix.Errno
	body     []byte // behind the nfnetlink header
}

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
		n, _, err := unix.Recvfrom(s.fd, buf, unix.MSG_DONTWAIT)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return replies, nil
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return nil, err
		}
		// Copied: the replies are parts of it, and the next datagram goes into buf again.
		more, err := parseReplies(append([]byte(nil), buf[:n]...))
		if err != nil {
			return nil, err
		}
		replies = append(replies, more...)
	}
}

var errShort = errors.New("the kernel's answer is cut short")

// parseReplies takes the messages of one datagram apart.
func parseReplies(datagram []byte) ([]reply, error) {
	var replies []reply
	for len(datagram) >= unix.SizeofNlMsghdr {
		length := int(binary.NativeEndian.Uint32(datagram))
		if length < unix.SizeofNlMsghdr || length > len(datagram) {
			return nil, errShort
		}
		r := reply{kind: binary.NativeEndian.Uint16(datagram[4:]), flags: binary.NativeEndian.Uint16(datagram[6:]), sequence: binary.NativeEndian.Uint32(datagram[8:])}
		// Four bytes are before every body: an errno, or struct nfgenmsg.
		payload := datagram[unix.SizeofNlMsghdr:length]
		switch {
		case len(payload) < 4:
			return nil, errShort
		case r.kind == unix.NLMSG_ERROR:
			r.errno = unix.Errno(-int32(binary.NativeEndian.Uint32(payload)))
		default:
			r.body = payload[4:]
		}
		replies = append(replies, r)
		datagram = datagram[min(padLength(length), len(datagram)):]
	}
	return replies, nil
}
