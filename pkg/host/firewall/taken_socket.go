package firewall

import (
	"errors"
	"syscall"
	"time"

	"github.com/enipool/enipool/pkg/nlmsg"
	"github.com/google/nftables"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// dumpBuffer is the most that the kernel puts into one part of a list. For each part it goes
// through a chain from the start, so that small ones make a long chain slow.
const dumpBuffer = 64 << 10

// listTries is how often a list is asked for that changes while it is sent.
const listTries = 20

// dialNft opens a socket for requests that the library has no words for.
func dialNft() (*netlink.Conn, error) {
	c, err := netlink.Dial(unix.NETLINK_NETFILTER, nil)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(c.SetReadBuffer(nftBuffer), c.SetDeadline(time.Now().Add(nftDeadline))); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// askNft sends a request about the table and returns what stands behind the headers of the
// answers. There is no answer of another one.
func askNft(c *netlink.Conn, t *nftables.Table, kind uint16, flags netlink.HeaderFlags, attrs ...netlink.Attribute) ([][]byte, error) {
	body, err := netlink.MarshalAttributes(attrs)
	if err != nil {
		return nil, err
	}
	m := netlink.Message{
		Header: netlink.Header{Type: netlink.HeaderType(unix.NFNL_SUBSYS_NFTABLES<<8 | kind), Flags: netlink.Request | flags},
		Data:   append([]byte{byte(t.Family), unix.NFNETLINK_V0, 0, 0}, body...),
	}
	if flags&netlink.Dump == 0 {
		answers, err := c.Execute(m)
		bodies := make([][]byte, len(answers))
		for i, a := range answers {
			bodies[i] = a.Data
		}
		return bodies, err
	}
	for try := 1; ; try++ {
		sent, err := c.Send(m)
		if err != nil {
			return nil, err
		}
		// A list that changed may lack a rule, and the one behind it would count.
		bodies, err := receiveList(c, sent.Header.Sequence)
		if !errors.Is(err, unix.EINTR) || try == listTries {
			return bodies, err
		}
	}
}

// receiveList reads all parts of a list. EINTR says that it changed meanwhile.
func receiveList(c *netlink.Conn, sequence uint32) ([][]byte, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	list := nftList{sequence: sequence}
	for done := false; !done; {
		part, err := receivePart(raw)
		if err != nil {
			return nil, err
		}
		if done, err = list.addPart(part); err != nil {
			return nil, err
		}
	}
	return list.bodies, nil
}

// receivePart waits for a part of a list. What it returns is not used again.
func receivePart(raw syscall.RawConn) (part []byte, err error) {
	part = make([]byte, dumpBuffer)
	var n int
	waitErr := raw.Read(func(fd uintptr) bool {
		for {
			// Interrupted it is tried again at once: nothing wakes who waits for what is there.
			if n, _, err = unix.Recvfrom(int(fd), part, unix.MSG_TRUNC); !errors.Is(err, unix.EINTR) {
				return !errors.Is(err, unix.EAGAIN)
			}
		}
	})
	switch err = errors.Join(waitErr, err); {
	case err != nil:
		return nil, err
	case n > len(part):
		return nil, nlmsg.ErrCut
	}
	return part[:n], nil
}

// nftList is a list that comes in parts.
type nftList struct {
	sequence uint32 // of the request
	bodies   [][]byte
	torn     bool // it changed since the first part
}

// addPart takes in a part; the last one says so, or why the list is not whole.
func (l *nftList) addPart(part []byte) (done bool, err error) {
	for m, err := range nlmsg.Messages(part) {
		if err != nil {
			return true, err
		}
		if m.Sequence != l.sequence {
			continue // the rest of a list that failed
		}
		l.torn = l.torn || m.IsTorn()
		switch errno := m.Errno(); {
		case m.IsEnd() && l.torn:
			return true, unix.EINTR
		case errno != 0:
			return true, errno
		case m.IsEnd():
			return true, nil
		}
		l.bodies = append(l.bodies, m.Body)
	}
	return false, nil
}
