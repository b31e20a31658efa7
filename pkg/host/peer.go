package host

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// peerReader reads the addresses at the other ends of veth pairs, in the namespaces
// of pods, without entering them: by the number that the kernel gives each of them
// in the node's. That needs CAP_NET_ADMIN, but neither CAP_SYS_ADMIN nor a path.
type peerReader struct{ socket *nl.SocketHandle }

// newPeerReader opens a socket that has the kernel look at all of a request: one
// that does not understand the number must say so, or it would show the node's own
// addresses for the pod's. Linux 4.20 is the first that does.
func newPeerReader() (*peerReader, error) {
	s, err := nl.GetNetlinkSocketAt(netns.None(), netns.None(), unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open netlink: %w", err)
	}
	if err := unix.SetsockoptInt(s.GetFd(), unix.SOL_NETLINK, unix.NETLINK_GET_STRICT_CHK, 1); err != nil {
		s.Close()
		return &peerReader{}, nil //nolint:nilerr // each read says that it can't
	}
	return &peerReader{&nl.SocketHandle{Socket: s}}, nil
}

func (r *peerReader) close() {
	if r != nil && r.socket != nil {
		r.socket.Close()
	}
}

// errNoPeerNumber is the answer of a kernel that can't say.
var errNoPeerNumber = errors.New("the kernel does not tell a pod's addresses by its namespace's number (Linux 4.20 does)")

// read returns the addresses at the other end of the link. A link whose other end is
// in the node's own namespace is no pod's, and has none.
func (r *peerReader) read(link linkState) ([]netip.Addr, error) {
	if link.netns < 0 {
		return nil, nil
	}
	if r.socket == nil {
		return nil, errNoPeerNumber
	}
	req := nl.NewNetlinkRequest(unix.RTM_GETADDR, unix.NLM_F_DUMP)
	msg := nl.NewIfAddrmsg(unix.AF_UNSPEC)
	msg.Index = uint32(link.peer)
	req.AddData(msg)
	req.AddData(nl.NewRtAttr(unix.IFA_TARGET_NETNSID, nl.Uint32Attr(uint32(link.netns))))
	req.Sockets = map[int]*nl.SocketHandle{unix.NETLINK_ROUTE: r.socket}
	replies, err := dump(func() ([][]byte, error) { return req.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWADDR) })
	if errors.Is(err, unix.EINVAL) {
		return nil, errNoPeerNumber
	}
	if err != nil {
		return nil, fmt.Errorf("list the addresses at the other end of %s: %w", link.name, err)
	}
	return peerAddrs(replies), nil
}

// peerAddrs reads the messages of a list of addresses.
func peerAddrs(list [][]byte) (addrs []netip.Addr) {
	for _, m := range list {
		if a, ok := parseAddr(m); ok {
			addrs = append(addrs, a.prefix.Addr())
		}
	}
	return addrs
}
