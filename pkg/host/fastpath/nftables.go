package fastpath

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/enipool/enipool/pkg/nlmsg"
	"golang.org/x/sys/unix"
)

// nftables asks the kernel for what there is of nftables. It hands the answers over
// one by one: a list of rules may be megabytes, and takes twice as long by the small
// buffers of other libraries, because the kernel counts from the start for each part.
type nftables struct {
	fd       int
	sequence uint32
	buffer   []byte
}

// bufferSize is what the kernel's largest part of a list fits into.
const bufferSize = 64 << 10

func openNftables() (*nftables, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
	if err != nil {
		return nil, fmt.Errorf("open netlink: %w", err)
	}
	return &nftables{fd: fd, buffer: make([]byte, bufferSize)}, nil
}

// close closes the socket. A nil one is none.
func (n *nftables) close() {
	if n != nil {
		_ = unix.Close(n.fd)
	}
}

// errEnough ends a list early.
var errEnough = errors.New("enough")

// ask calls do for each message of the answer: its family and three more bytes, then
// the attributes. They are good until do returns. When do returns errEnough the rest
// is not read, and n must be closed.
func (n *nftables) ask(kind uint16, flags uint16, family uint8, attrs []byte, do func(message []byte) error) error {
	n.sequence++
	request := make([]byte, unix.SizeofNlMsghdr, 128)
	binary.NativeEndian.PutUint16(request[4:], unix.NFNL_SUBSYS_NFTABLES<<8|kind)
	binary.NativeEndian.PutUint16(request[6:], unix.NLM_F_REQUEST|flags)
	binary.NativeEndian.PutUint32(request[8:], n.sequence)
	request = append(append(request, family, unix.NFNETLINK_V0, 0, 0), attrs...)
	binary.NativeEndian.PutUint32(request, uint32(len(request)))
	if err := unix.Sendto(n.fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return fmt.Errorf("send to netlink: %w", err)
	}
	for {
		part, err := n.receivePart()
		if err != nil {
			return err
		}
		if last, err := deliverPart(part, do); last || err != nil {
			return err
		}
	}
}

func (n *nftables) receivePart() ([]byte, error) {
	for {
		// The kernel answers while it is asked: a wait would be one without end.
		size, _, err := unix.Recvfrom(n.fd, n.buffer, unix.MSG_DONTWAIT|unix.MSG_TRUNC)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return nil, fmt.Errorf("receive from netlink: %w", err)
		case size > len(n.buffer):
			return nil, fmt.Errorf("receive from netlink: an answer of %d bytes", size)
		default:
			return n.buffer[:size], nil
		}
	}
}

// deliverPart hands over the messages of a part of the answer, and tells whether it was
// the last one. A list that changed while it was sent is taken as it is: what comes of it
// counts only if the generation is the same before and after.
func deliverPart(part []byte, do func(message []byte) error) (last bool, err error) {
	for m, err := range nlmsg.Messages(part) {
		if err == nil && !m.IsEnd() && len(m.Body) < headSize {
			err = nlmsg.ErrCut
		}
		switch errno := m.Errno(); {
		case err != nil:
			return true, fmt.Errorf("receive from netlink: %w", err)
		case errno != 0:
			return true, errno
		case m.IsEnd():
			return true, nil
		}
		if err := do(m.Body); err != nil {
			return true, err
		}
		last = m.Flags&unix.NLM_F_MULTI == 0
	}
	return last, nil
}

// textAttribute is an attribute whose value is a text.
func textAttribute(kind uint16, value string) []byte {
	const attributeHead = unix.SizeofNlAttr
	length := attributeHead + len(value) + 1
	a := make([]byte, nlmsg.Align(length))
	binary.NativeEndian.PutUint16(a, uint16(length))
	binary.NativeEndian.PutUint16(a[2:], kind)
	copy(a[attributeHead:], value)
	return a
}

// nftGeneration returns the number that every change of nftables adds to.
func nftGeneration() (generation uint32, err error) {
	n, err := openNftables()
	if err != nil {
		return 0, fmt.Errorf("read nftables: %w", err)
	}
	defer n.close()
	return n.generation()
}

func (n *nftables) generation() (generation uint32, err error) {
	err = n.ask(unix.NFT_MSG_GETGEN, 0, unix.AF_UNSPEC, nil, func(message []byte) error {
		f, err := fields(message[headSize:])
		generation = decodeNumber(f[unix.NFTA_GEN_ID])
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("read nftables: %w", err)
	}
	return generation, nil
}
