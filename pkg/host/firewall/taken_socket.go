package firewall

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/google/nftables"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// dumpBuffer is the most that the kernel puts into one part of a list. For each part it goes
// through a chain from the start, so that small ones make a long chain slow.
const dumpBuffer = 64 << 10

// dialNft opens a socket for requests that the library has no words for.
func dialNft() (*netlink.Conn, error) {
	c, err := netlink.Dial(unix.NETLINK_NETFILTER, nil)
	if err != nil {
		return nil, err
	}
	return c, errors.Join(c.SetReadBuffer(nftBuffer), c.SetDeadline(time.Now().Add(nftDeadline)))
}

// askNft sends a request about the table. There is no answer of another one.
func askNft(c *netlink.Conn, t *nftables.Table, kind uint16, flags netlink.HeaderFlags, attrs ...netlink.Attribute) ([]netlink.Message, error) {
	body, err := netlink.MarshalAttributes(attrs)
	if err != nil {
		return nil, err
	}
	m := netlink.Message{
		Header: netlink.Header{Type: netlink.HeaderType(unix.NFNL_SUBSYS_NFTABLES<<8 | kind), Flags: netlink.Request | flags},
		Data:   append([]byte{byte(t.Family), unix.NFNETLINK_V0, 0, 0}, body...),
	}
	if flags&netlink.Dump == 0 {
		return c.Execute(m)
	}
	if m, err = c.Send(m); err != nil {
		return nil, err
	}
	return receiveList(c, m.Header.Sequence)
}

// receiveList reads all parts of a list.
func receiveList(c *netlink.Conn, sequence uint32) (list []netlink.Message, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	for done := false; !done; {
		part := make([]byte, dumpBuffer) // the messages keep it
		var n int
		var failed error
		err := raw.Read(func(fd uintptr) bool {
			n, _, failed = unix.Recvfrom(int(fd), part, 0)
			return failed != unix.EAGAIN && failed != unix.EINTR
		})
		if err = errors.Join(err, failed); err != nil {
			return nil, err
		}
		if list, done, err = appendMessages(list, part[:n], sequence); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// appendMessages reads a part of a list; the last one says so.
func appendMessages(list []netlink.Message, part []byte, sequence uint32) (_ []netlink.Message, done bool, err error) {
	for len(part) >= unix.NLMSG_HDRLEN {
		length := int(binary.NativeEndian.Uint32(part))
		if length < unix.NLMSG_HDRLEN || length > len(part) {
			return nil, false, unix.EBADMSG
		}
		kind, body := binary.NativeEndian.Uint16(part[4:]), part[unix.NLMSG_HDRLEN:length]
		ours := binary.NativeEndian.Uint32(part[8:]) == sequence
		switch {
		case !ours:
		case kind == unix.NLMSG_DONE || kind == unix.NLMSG_ERROR:
			if len(body) >= 4 {
				if code := int32(binary.NativeEndian.Uint32(body)); code < 0 {
					return nil, true, unix.Errno(-code)
				}
			}
			return list, true, nil
		default:
			list = append(list, netlink.Message{Data: body})
		}
		part = part[min((length+3)&^3, len(part)):]
	}
	return list, false, nil
}
