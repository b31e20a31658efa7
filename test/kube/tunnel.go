package kube

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/enipool/enipool/test/lab"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Where a node finds the API server: the kubelet on loopback, pods at the address
// that every cluster gives the service "kubernetes", without a kube-proxy.
const (
	tunnelAddress  = "127.0.0.1:6443"
	serviceAddress = serviceIP + ":443"

	// endpointIP is the endpoint of that service: a kube-proxy, where there is one, refuses what
	// goes to a service without any.
	endpointIP      = "198.51.100.254"
	endpointAddress = endpointIP + ":443"
)

// tunnel passes connections from a node's network namespace to the API server. It
// needs no link that an agent could take for one of the node's.
type tunnel struct {
	lab.Relay
	n *Node
}

func (n *Node) openTunnel() (*tunnel, error) {
	t := &tunnel{n: n}
	err := n.Do(func() error {
		for _, ip := range []string{serviceIP, endpointIP} {
			if err := addToLoopback(netip.MustParseAddr(ip)); err != nil {
				return err
			}
		}
		for _, address := range []string{tunnelAddress, serviceAddress, endpointAddress} {
			l, err := net.Listen("tcp", address)
			if err != nil {
				return fmt.Errorf("listen on node %s: %w", n.Name, err)
			}
			t.Serve(l, t.connect)
		}
		return nil
	})
	return t, err
}

// connect connects one client. While the API server is away its connection is
// reset: a plain close would look like an empty answer.
func (t *tunnel) connect(client net.Conn) {
	server, err := net.Dial("tcp", t.n.c.host+":6443")
	if err == nil {
		t.Splice(client, client, server)
		return
	}
	if tcp, ok := client.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
}

// end closes the tunnel and takes its addresses off the node.
func (t *tunnel) end() {
	if t == nil {
		return
	}
	t.Close()
	// The namespace may be gone already, and the addresses with it.
	for _, ip := range []string{serviceIP, endpointIP} {
		_ = t.n.Do(func() error { return onLoopback(netip.MustParseAddr(ip), (*netlink.Handle).AddrDel) })
	}
}

// addToLoopback gives an address to the loopback of the calling thread's namespace.
func addToLoopback(ip netip.Addr) error { return onLoopback(ip, (*netlink.Handle).AddrReplace) }

func onLoopback(ip netip.Addr, change func(*netlink.Handle, netlink.Link, *netlink.Addr) error) error {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer h.Close()
	lo, err := h.LinkByName("lo")
	if err != nil {
		return err
	}
	return change(h, lo, &netlink.Addr{IPNet: &net.IPNet{IP: ip.AsSlice(), Mask: net.CIDRMask(ip.BitLen(), ip.BitLen())}})
}
